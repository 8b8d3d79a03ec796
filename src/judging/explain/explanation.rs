// SPDX-License-Identifier: GPL-3.0-or-later
//! The explanation of a message and its signatures, for programs.

use super::ask::UserReports;
use super::describe::{describe_thing, outline, words};
use super::judged::Judged;
use super::statement::Statement;
use bulkmark_counts::Shares;
use bulkmark_mail::RawMessage;
use bulkmark_policy::{PolicyRef, Verdict};
use bulkmark_signature::near::{self, Bound, Judgement, Known};
use bulkmark_types::{Signature, outbound};
use bulkmark_verdict::{Circumstances, Envelope, Finding, Missed, Rules, sentence};
use serde::Serialize;

/// The explanation of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The verdict.
    pub verdict: String,
    /// The reason, as a sentence.
    pub because: String,
    /// The policy that decides, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The thresholds of bulk and spam.
    pub thresholds: Thresholds,
    /// The count.
    pub counts: Counted,
    /// The part of these counts that is under the old federation key, during a change of keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Counted>,
    /// The results of DKIM, SPF and DMARC, by mail servers or verified here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authentication: Vec<Statement>,
    /// White list, sources, orders and rehearsal.
    #[serde(flatten)]
    pub circumstances: Circumstances,
    /// The signature of all its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Explained>,
    /// The near signatures.
    pub near: Vec<Explained>,
    /// Its user reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_reports: Option<UserReports>,
}

/// The thresholds of bulk and spam.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thresholds {
    /// Of the body count.
    pub body: u32,
    /// Of the near count.
    pub near: u32,
    /// Of the weight of user reports.
    pub spam: u32,
}

impl From<&bulkmark_policy::Thresholds> for Thresholds {
    fn from(of: &bulkmark_policy::Thresholds) -> Self {
        Self { body: of.body.get(), near: of.near.configured(), spam: of.spam.get() }
    }
}

/// The policy whose thresholds decide, or would if the message were counted.
#[must_use]
pub fn decides(rules: &Rules, envelope: &Envelope, finding: &Finding) -> PolicyRef {
    match finding {
        Finding::Counted(counted) => counted.decision.by,
        _ => rules.parties(envelope).first().map(|party| party.by).unwrap_or_default(),
    }
}

/// The counts of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// The body count.
    pub body: Option<u32>,
    /// The near count.
    pub near: Option<u32>,
}

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The signature.
    pub signature: String,
    /// The content that it was made from.
    pub made_of: String,
    /// The count.
    pub count: u32,
    /// The shares of the count.
    pub seen: Shares,
    /// The number of messages in which it was below new text.
    pub strays: u32,
    /// The number of messages in which it was beside text that may be new, as far as that was looked up.
    pub unsure: u32,
    /// The number of those from this sender: from its domain or its network, whichever is greater.
    pub by_sender: u32,
    /// Whether it counts for this message.
    pub counts: bool,
}

impl Explanation {
    /// The explanation of a finding. `shares` are the counts of [`Judged::signatures`].
    #[must_use]
    pub fn new(
        (rules, envelope): (&Rules, &Envelope),
        message: &RawMessage,
        judged: &Judged,
        shares: Vec<Shares>,
    ) -> Self {
        let Judged { finding, counts, old_key, near, user_reports, content, verified, .. } = judged;
        let by = decides(rules, envelope, finding);
        let limits = rules.terms(by).thresholds;
        let (verdict, mut because) = sentence(finding, limits, content.signatures.body.err());
        if verdict == Verdict::Clean {
            let why = match near {
                Some(near) => why(near),
                None => rules.signature.near.then_some(NO_NEAR),
            };
            because.extend(why.into_iter().flat_map(|why| ["; ", why]));
        }
        let circumstances = match finding {
            Finding::Counted(counted) => Circumstances::of(rules, envelope, content, &counted.decision),
            _ => Circumstances { missed: Missed::all(rules, envelope, content), ..Circumstances::default() },
        };
        let (body, of_near) = explained(rules, message, judged, shares);
        Self {
            verdict: verdict.to_string(),
            because,
            policy: rules.name(by).map(str::to_owned),
            thresholds: limits.into(),
            counts: Counted { body: counts.body, near: counts.near },
            earlier: rules
                .key
                .old()
                .map(|_| Counted { body: old_key.counts.body, near: old_key.counts.near }),
            authentication: Statement::all(rules, message, verified),
            circumstances,
            body,
            near: of_near,
            user_reports: user_reports.clone(),
        }
    }
}

impl Judged {
    /// The signatures of an [`Explanation`], as they are counted: first the body's, if there is one, and then the others.
    #[must_use]
    pub fn signatures(&self, rules: &Rules, envelope: &Envelope) -> Vec<Signature> {
        let signatures = &self.content.signatures;
        let mut all: Vec<Signature> = signatures.body.ok().into_iter().collect();
        if let Some(judged) = &self.near {
            let slots = signatures.near.slots.iter().zip(&judged.slots);
            all.extend(slots.map(|(slot, found)| slot.passages[found.passage].1));
            let things = signatures.near.things.iter().zip(&judged.things);
            all.extend(things.map(|(&(_, signature), _)| signature));
            all.extend(signatures.near.payload);
        }
        if rules.is_outbound(envelope) {
            all.iter_mut().for_each(|signature| *signature = outbound(&rules.key, *signature));
        }
        all
    }
}

/// The signatures one by one: the body's, and the others.
fn explained(
    rules: &Rules,
    message: &RawMessage,
    judged: &Judged,
    shares: Vec<Shares>,
) -> (Option<Explained>, Vec<Explained>) {
    let mut shares = shares.into_iter();
    let mut explained = |signature: Signature, made_of, Known { count, strays, unsure }, counts| Explained {
        signature: signature.to_string(),
        made_of,
        count,
        seen: shares.next().unwrap_or_default(),
        strays,
        unsure: unsure.all,
        by_sender: unsure.domain.max(unsure.network),
        counts,
    };
    let body = judged.content.signatures.body.ok().map(|signature| {
        let known = Known { count: judged.counts.body.unwrap_or(0), ..Known::default() };
        explained(signature, outline(message), known, true)
    });
    let Some(of_near) = &judged.near else { return (body, Vec::new()) };
    let (near, positions) = (&judged.content.signatures.near, near::positions(message, &rules.key));
    let mut all = Vec::new();
    for (slot, found) in near.slots.iter().zip(&of_near.slots) {
        let (passage, signature) = slot.passages[found.passage];
        all.push(explained(signature, words(&passage, &positions), found.known, found.counts));
    }
    for (&(thing, signature), &known) in near.things.iter().zip(&of_near.things) {
        all.push(explained(signature, describe_thing(thing), known, !known.is_block()));
    }
    if let Some((signature, known)) = near.payload.zip(of_near.payload) {
        all.push(explained(signature, OF_PAYLOAD.to_owned(), known, of_near.by_payload));
    }
    (body, all)
}

/// The content of a payload signature.
const OF_PAYLOAD: &str = "where it wants its readers to turn: the page, number, address or account that is rarest in it; \
                          it counts where passages agree with it, too";

/// The reason why a message has no near signatures.
const NO_NEAR: &str = "it has no near signatures, since it has too little text of its own for them, and a picture, file or \
                       link that stands below a few words is not the message";

/// The reason why frequent text does not make a message bulk.
fn why(near: &Judgement) -> Option<&'static str> {
    Some(match near.bound? {
        Bound::Letter => {
            "new text stands above or below what was seen before, as in a letter above a signature or a disclaimer"
        }
        Bound::Unlike => {
            "new text stands above or below what was seen before, and the others that have this have no new text with it"
        }
        Bound::Block if near.slots.iter().any(|slot| !slot.counts && slot.known.is_own_block()) => {
            "what it shares with others comes from this sender with ever other text, as a signature or a disclaimer does"
        }
        Bound::Block => {
            "what it shares with others keeps coming below new text, as a signature, a disclaimer or a form does"
        }
        Bound::Part => "what it shares with others is too small a part of it",
    })
}
