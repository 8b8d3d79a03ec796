// SPDX-License-Identifier: GPL-3.0-or-later
//! All questions that the milter would ask about a message that it has not counted yet.

use super::super::shared::shared;
use super::super::verification::verify;
use super::ask::{Asking, UserReports, ask, look_up_reports};
use super::old_key::old_key_counts;
use super::source::{Case, Source};
use crate::lookup::Found;
use bulkmark_counts::Shared;
use bulkmark_policy::{Correspondence, Counts};
use bulkmark_signature::near;
use bulkmark_verdict::{
    Content, Counted, Envelope, Exempt, Finding, Inquiry, Mode, OldKeyCounts, Rules, questions,
};

/// The most pairs of a recipient and an address that are looked up: they fit a line of the control socket.
const MAX_PAIRS: usize = 500;

/// A judged message.
#[derive(Debug)]
pub struct Judged {
    /// The finding.
    pub finding: Finding,
    /// Its content, with its verified names.
    pub content: Content,
    /// Whether other servers may be asked about it, for counts that are not held here.
    pub may_ask: bool,
    /// The look-ups that failed, as sentences.
    pub troubles: Vec<String>,
    pub(super) counts: Counts,
    pub(super) old_key: OldKeyCounts,
    pub(super) near: Option<near::Judgement>,
    /// Its user reports, if there are any.
    pub(super) user_reports: Option<UserReports>,
    /// The results of verification.
    pub(super) verified: Vec<Found>,
}

/// The reason why the milter would not even read a message, as far as the envelope is known.
#[must_use]
pub fn exempt(rules: &Rules, envelope: &Envelope) -> Option<Exempt> {
    let client = rules.exempt_if_client_known(envelope);
    client.or_else(|| (!rules.judges_any(&rules.parties(envelope))).then_some(Exempt::Policy))
}

/// The finding of the milter for a message with this content that it has not counted yet, with all look-ups. Unknown parts of the envelope
/// match no white list and no policy.
///
/// # Errors
/// The counts are unavailable.
pub async fn find<S: Source>(source: &S, case: Case<'_>, content: &Content) -> Result<Judged, S::Error> {
    let Case { rules, envelope, .. } = case;
    // Other servers are not asked about signatures that are not sent to them.
    let may_ask = shared(rules, envelope, content) == Shared::All;
    let old_key = old_key_counts(source, case, content, may_ask).await?;
    let inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Ask).on_top_of(old_key.clone());
    let mut inquiry = content.about(inquiry, envelope, rules);
    ask(source, case, &mut inquiry, if may_ask { Asking::Always } else { Asking::Never }).await?;
    let user_reports = look_up_reports(source, case, (&content.signatures, &rules.key), &inquiry).await?;
    let spam = old_key.spam(user_reports.as_ref().map(|user_reports| user_reports.weight));
    let counts = Counts { spam, ..inquiry.counts() };
    let mut judged = Judged {
        finding: Finding::Exempt(Exempt::Policy),
        content: content.clone(),
        may_ask,
        troubles: Vec::new(),
        counts,
        old_key,
        near: inquiry.near().cloned(),
        user_reports,
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
    /// Decides by its counts.
    async fn decide<S: Source>(&mut self, source: &S, case: Case<'_>, inquiry: &Inquiry<'_>) -> Finding {
        let Case { rules, envelope, .. } = case;
        let mut envelope = envelope.clone();
        let (orders, now) = (source.orders(), bulkmark_ledger::now());
        (envelope.now, envelope.is_paused) = (now, orders.is_paused(now));
        self.counts = orders.without_forgotten(&self.content.signatures, inquiry, self.counts, now);
        let allowed = self.old_key.allowed.clone();
        self.content.allowed =
            allowed.or_else(|| orders.allows(&self.content.signatures, inquiry.seen(), now));
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

    /// Verifies the names that the milter would if the message were bulk.
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

/// The recipients who wrote to an address that it claims as its sender, as far as known.
async fn correspondences<S: Source>(
    source: &S,
    Case { rules, envelope, .. }: Case<'_>,
    content: &Content,
) -> Vec<Correspondence> {
    if rules.is_outbound(envelope) || !rules.spares_correspondents() {
        return Vec::new();
    }
    let mut all = content.possible_correspondences(envelope);
    all.truncate(MAX_PAIRS);
    let known = source.know(&rules.correspondences(&all)).await;
    rules.known_of(all, &known)
}
