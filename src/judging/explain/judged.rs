// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks all that the milter would ask of a message that it had not counted yet.

use super::super::proofs::verify;
use super::ask::{Asking, People, ask, hear};
use super::earlier::earlier;
use super::source::{Case, Source};
use crate::lookup::Found;
use bulkmark_policy::{Correspondence, Counts};
use bulkmark_signature::near;
use bulkmark_verdict::{
    Content, Counted, Earlier, Envelope, Exempt, Finding, Inquiry, Mode, Rules, questions,
};

/// Pairs of a recipient and an address that are asked for: they fit a line of the control socket.
const MOST_PAIRS: usize = 500;

/// What is found of a message.
#[derive(Debug)]
pub struct Judged {
    /// How far the judging came.
    pub finding: Finding,
    /// What it says, with what is proven of it.
    pub content: Content,
    /// Whether others may be asked about it, where not all counts are held here.
    pub may_ask: bool,
    /// What did not answer, in words.
    pub troubles: Vec<String>,
    pub(super) counts: Counts,
    pub(super) earlier: Earlier,
    pub(super) near: Option<near::Judgement>,
    /// What people say of it, if anybody called it spam.
    pub(super) people: Option<People>,
    /// What was verified.
    pub(super) verified: Vec<Found>,
}

/// Why the milter would not even read a message, as far as that is known by what is told of it.
#[must_use]
pub fn exempt(rules: &Rules, envelope: &Envelope) -> Option<Exempt> {
    let client = rules.exempt_as_told(envelope);
    client.or_else(|| (!rules.judges_any(&rules.parties(envelope))).then_some(Exempt::Policy))
}

/// What the milter would find of a message with this content that it had not counted yet, and all that was asked for it. What is not told of
/// its envelope cannot be held against the white list, and has no policy.
///
/// # Errors
/// When counts cannot be had.
pub async fn find<S: Source>(source: &S, case: Case<'_>, content: &Content) -> Result<Judged, S::Error> {
    let Case { rules, envelope, .. } = case;
    // What others are not told of a message they are not asked, either.
    let is_told = rules.shares_exact && !rules.is_outbound(envelope);
    let may_ask = is_told && !rules.private.names(&content.facts(envelope, rules));
    let earlier = earlier(source, case, content, may_ask).await?;
    let inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Ask).on_top_of(earlier);
    let mut inquiry = content.about(inquiry, envelope, rules);
    ask(source, case, &mut inquiry, if may_ask { Asking::Always } else { Asking::Never }).await?;
    let people = hear(source, case, (&content.signatures, &rules.key), &inquiry).await?;
    let spam = earlier.spam(people.as_ref().map(|people| people.weight));
    let counts = Counts { spam, ..inquiry.counts() };
    let mut judged = Judged {
        finding: Finding::Exempt(Exempt::Policy),
        content: content.clone(),
        may_ask,
        troubles: Vec::new(),
        counts,
        earlier,
        near: inquiry.near().cloned(),
        people,
        verified: Vec::new(),
    };
    let known = exempt(rules, envelope).map(Finding::Exempt).or_else(|| Finding::uncounted(content));
    judged.finding = match known {
        Some(finding) => finding,
        None => judged.decide(source, case, &inquiry).await,
    };
    Ok(judged)
}

impl Judged {
    /// What follows from its counts.
    async fn decide<S: Source>(&mut self, source: &S, case: Case<'_>, inquiry: &Inquiry<'_>) -> Finding {
        let Case { rules, envelope, .. } = case;
        let mut envelope = envelope.clone();
        let (orders, now) = (source.orders(), bulkmark_ledger::now());
        envelope.is_paused = orders.is_paused(now);
        self.counts = orders.without_forgotten(&self.content.signatures, inquiry.seen(), self.counts, now);
        self.content.is_allowed =
            self.earlier.is_allowed || orders.allow_message(&self.content.signatures, inquiry.seen(), now);
        let (questions, _) =
            questions(rules, &rules.parties(&envelope), &envelope, &self.content, self.counts);
        if !questions.is_empty() {
            envelope.answers = source.tables().ask(questions, rules.table_timeout).await;
            if let Some(why) = &envelope.answers.failed {
                self.troubles.push(format!("a table of the white list did not answer: {why}"));
            }
        }
        self.content.correspondences = correspondences(source, case, &self.content).await;
        self.verify(source, Case { envelope: &envelope, ..case }).await;
        let known = (self.counts, inquiry.backings());
        match Counted::find(rules, &envelope, &self.content, known, None) {
            Finding::Counted(counted) => {
                Finding::Counted(Counted { unknown_below: inquiry.unknown_below(), ..counted })
            }
            other => other,
        }
    }

    /// Verifies what the milter would if the message were bulk.
    async fn verify<S: Source>(&mut self, source: &S, case: Case<'_>) {
        let Case { rules, envelope, evidence } = case;
        let bulk = Counts { body: Some(u32::MAX), near: Some(u32::MAX), spam: None };
        let (to, claims) = ((envelope, &*rules.parties(envelope)), (&mut self.content, evidence));
        let within = rules.authentication.timeout;
        let Some(verified) = verify(source.verifiers(), rules, to, claims, bulk, within).await else {
            return;
        };
        self.troubles.extend(verified.unverified.map(|unverified| unverified.detail));
        self.verified = verified.found;
    }
}

/// By which of its addresses a recipient wrote to it, as far as that is known.
async fn correspondences<S: Source>(
    source: &S,
    Case { rules, envelope, .. }: Case<'_>,
    content: &Content,
) -> Vec<Correspondence> {
    if rules.is_outbound(envelope) || !rules.spares_correspondents() {
        return Vec::new();
    }
    let mut all = content.possible_correspondences(envelope);
    all.truncate(MOST_PAIRS);
    let known = source.know(&rules.correspondences(&all)).await;
    rules.known_of(all, &known)
}
