// SPDX-License-Identifier: GPL-3.0-or-later
//! The explanation: all that is known of a message and its signatures, as programs get it.

use super::ask::People;
use super::judged::Judged;
use super::made_of::{of_thing, outline, words};
use super::statement::Statement;
use bulkmark_counts::Shares;
use bulkmark_mail::RawMessage;
use bulkmark_policy::{By, Verdict};
use bulkmark_signature::near::{self, Bound, Judgement, Known};
use bulkmark_types::{Signature, outbound};
use bulkmark_verdict::{Answer, Envelope, Finding, FromWhere, Missed, Rules, because};
use serde::Serialize;

/// Everything that is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The verdict.
    pub verdict: String,
    /// Why, as a sentence.
    pub because: String,
    /// The policy that decides, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The one of another recipient for whose sake less is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milder: Option<String>,
    /// From which counts on it is bulk or spam.
    pub thresholds: Thresholds,
    /// How often it was seen.
    pub counts: Counted,
    /// How often of these under the federation key before, while the key changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Counted>,
    /// The entry that wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whitelist: Option<String>,
    /// Entries of the white list that nearly match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
    /// What mail servers say of DKIM, SPF and DMARC, or what was verified here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authentication: Vec<Statement>,
    /// From where the count comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<FromWhere>,
    /// Why it is only marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The action that it would get, where that is only rehearsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<String>,
    /// Why it is only rehearsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<String>,
    /// The signature of all its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Explained>,
    /// Those of what it is like.
    pub near: Vec<Explained>,
    /// What people say of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub people: Option<People>,
}

/// From which count or weight on a message is bulk or spam.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thresholds {
    /// Of the body count.
    pub body: u32,
    /// Of the near count.
    pub near: u32,
    /// Of the weight of what people say.
    pub spam: u32,
}

impl From<&bulkmark_policy::Thresholds> for Thresholds {
    fn from(of: &bulkmark_policy::Thresholds) -> Self {
        Self { body: of.body.get(), near: of.near.get(), spam: of.spam.get() }
    }
}

/// The party whose thresholds decide, or would if the message were counted.
#[must_use]
pub fn decides(rules: &Rules, envelope: &Envelope, finding: &Finding) -> By {
    match finding {
        Finding::Counted(counted) => counted.decision.by,
        _ => rules.parties(envelope).first().map(|party| party.by).unwrap_or_default(),
    }
}

/// How often a message was seen.
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
    /// What it was made of.
    pub made_of: String,
    /// How often it was seen.
    pub count: u32,
    /// Of what the count is made up.
    pub seen: Shares,
    /// Messages in which it was found below new text.
    pub strays: u32,
    /// Messages in which it was found with what may be new text, as far as that was asked for.
    pub unsure: u32,
    /// Those of them that this sender sent: the domain of its author or its network, whichever sent more.
    pub by_sender: u32,
    /// Whether it says anything of this message.
    pub counts: bool,
}

impl Explanation {
    /// Of what was found of this message. `shares` are the counts of [`Judged::signatures`].
    #[must_use]
    pub fn new(
        (rules, envelope): (&Rules, &Envelope),
        message: &RawMessage,
        judged: &Judged,
        shares: Vec<Shares>,
    ) -> Self {
        let Judged { finding, counts, earlier, near, people, content, verified, .. } = judged;
        let by = decides(rules, envelope, finding);
        let limits = rules.terms(by).thresholds;
        let (verdict, mut because) = because(finding, limits, content.signatures.body.err());
        if verdict == Verdict::Clean {
            let why = match near {
                Some(near) => why(near),
                None => rules.signature.near.then_some(NO_NEAR),
            };
            because.extend(why.into_iter().flat_map(|why| ["; ", why]));
        }
        let Answer { milder, whitelist, missed, sources, held, would, rehearsal, .. } =
            Answer::of(rules, envelope, Some(content), finding);
        let is_counted = matches!(finding, Finding::Counted(_));
        let missed = if is_counted { missed } else { Missed::all(rules, envelope, content) };
        let (body, of_near) = explained(rules, message, judged, shares);
        Self {
            verdict: verdict.to_string(),
            because,
            policy: rules.name(by).map(str::to_owned),
            milder,
            thresholds: limits.into(),
            counts: Counted { body: counts.body, near: counts.near },
            earlier: rules
                .key
                .before()
                .map(|_| Counted { body: earlier.counts.body, near: earlier.counts.near }),
            whitelist,
            missed,
            authentication: Statement::all(rules, message, verified),
            sources,
            held,
            would,
            rehearsal,
            body,
            near: of_near,
            people: people.clone(),
        }
    }
}

impl Judged {
    /// The signatures of which an [`Explanation`] tells, as they are counted: that of the body, if there is one, and then the others.
    #[must_use]
    pub fn signatures(&self, rules: &Rules, envelope: &Envelope) -> Vec<Signature> {
        let signatures = &self.content.signatures;
        let mut all: Vec<Signature> = signatures.body.ok().into_iter().collect();
        if let Some(judged) = &self.near {
            let slots = signatures.near.slots.iter().zip(&judged.slots);
            all.extend(slots.map(|(slot, said)| slot.passages[said.passage].1));
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

/// The signatures one by one: that of the body, and the others.
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
    let (near, positions) = near::traced(message, &rules.key);
    let mut all = Vec::new();
    for (slot, said) in near.slots.iter().zip(&of_near.slots) {
        let (passage, signature) = slot.passages[said.passage];
        all.push(explained(signature, words(&passage, &positions), said.known, said.counts));
    }
    for (&(thing, signature), &known) in near.things.iter().zip(&of_near.things) {
        all.push(explained(signature, of_thing(thing), known, !known.is_block()));
    }
    if let Some((signature, known)) = judged.content.signatures.near.payload.zip(of_near.payload) {
        all.push(explained(signature, OF_PAYLOAD.to_owned(), known, of_near.by_payload));
    }
    (body, all)
}

/// What a payload signature is made of.
const OF_PAYLOAD: &str = "where it wants its readers to turn: the page, number, address or account that is rarest in it; \
                          it counts where passages agree with it, too";

/// Why a message has no near signatures.
const NO_NEAR: &str = "it has no near signatures, since it has too little text of its own for them, and a picture, file or \
                       link that stands below a few words is not the message";

/// Why text that was seen often does not make a message bulk, for a postmaster.
fn why(near: &Judgement) -> Option<&'static str> {
    Some(match near.bound? {
        Bound::Letter => {
            "new text stands above or below what was seen before, as in a letter above a signature or a disclaimer"
        }
        Bound::Unlike => {
            "new text stands above or below what was seen before, and the others that have this have no new text with it"
        }
        Bound::Block if near.slots.iter().any(|said| !said.counts && said.known.is_own_block()) => {
            "what it shares with others comes from this sender with ever other text, as a signature or a disclaimer does"
        }
        Bound::Block => {
            "what it shares with others keeps coming below new text, as a signature, a disclaimer or a form does"
        }
        Bound::Part => "what it shares with others is too small a part of it",
    })
}
