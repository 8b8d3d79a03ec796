// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks all that the milter would ask of a message that it had not counted yet.

use super::super::proofs::verify;
use super::source::{Case, Source};
use crate::lookup::Found;
use bulkmark_counts::Shares;
use bulkmark_policy::{Correspondence, Counts, Weight};
use bulkmark_signature::near;
use bulkmark_verdict::{
    Content, Counted, Envelope, Exempt, Finding, Hearing, Inquiry, Mode, Question, Rules, questions,
};
use serde::{Serialize, Serializer};

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
    pub(super) near: Option<near::Judgement>,
    /// User reports of it, if anybody called it spam.
    pub(super) user_reports: Option<UserReports>,
    /// What was verified.
    pub(super) verified: Vec<Found>,
}

/// User reports, in units of an eighth of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserReports {
    /// What it comes to, in people whose word weighs whole.
    #[serde(serialize_with = "as_text")]
    pub weight: Weight,
    /// Of the signature that was nominated most: the nominations.
    pub nominated: Shares,
    /// And the revocations.
    pub revoked: Shares,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn as_text<S: Serializer>(weight: &Weight, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(weight)
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
    let inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Ask);
    let mut inquiry = content.about(inquiry, envelope, rules);
    // What others are not told of a message they are not asked, either.
    let is_told = rules.shares_exact && !rules.is_outbound(envelope);
    let may_ask = is_told && !rules.private.names(&content.facts(envelope, rules));
    let is_partial = source.is_partial() && !rules.is_outbound(envelope);
    while let Some(Question { asked, .. }) = inquiry.ask() {
        let shares = source.shares(&asked, may_ask).await?;
        let counts: Vec<u32> = shares.iter().map(Shares::total).collect();
        let in_part = is_partial && shares.iter().any(|shares| shares.asked.is_none());
        if in_part && !inquiry.is_first() {
            inquiry.stop(rules.hold_from());
            break;
        }
        inquiry.answer(&counts);
        if in_part {
            inquiry.stop(rules.hold_from());
        }
    }
    let user_reports = hear(source, case, content, &inquiry).await?;
    let counts =
        Counts { spam: user_reports.as_ref().map(|user_reports| user_reports.weight), ..inquiry.counts() };
    let mut judged = Judged {
        finding: Finding::Exempt(Exempt::Policy),
        content: content.clone(),
        may_ask,
        troubles: Vec::new(),
        counts,
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
    /// What follows from its counts.
    async fn decide<S: Source>(&mut self, source: &S, case: Case<'_>, inquiry: &Inquiry<'_>) -> Finding {
        let Case { rules, envelope, .. } = case;
        let mut envelope = envelope.clone();
        let (orders, now) = (source.orders(), bulkmark_ledger::now());
        envelope.is_paused = orders.is_paused(now);
        self.counts = orders.without_forgotten(&self.content.signatures, inquiry.seen(), self.counts, now);
        self.content.is_allowed = orders.allow_message(&self.content.signatures, inquiry.seen(), now);
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

/// User reports of the message, as the milter hears it.
async fn hear<S: Source>(
    source: &S,
    Case { rules, envelope, .. }: Case<'_>,
    content: &Content,
    inquiry: &Inquiry<'_>,
) -> Result<Option<UserReports>, S::Error> {
    if content.signatures.is_empty() || rules.is_outbound(envelope) {
        return Ok(None);
    }
    let mut hearing = Hearing::new(&content.signatures, &rules.key);
    let thousandths = rules.user_reports.trust.federation_weight.thousandths();
    let weighed = |shares: &[Shares]| shares.iter().map(|of| of.weighed(thousandths)).collect::<Vec<_>>();
    // A milter with a partial copy asks nobody user reports, either.
    let nominated = source.shares(&hearing.nominations(), false).await?;
    let revocations = hearing.revocations(&weighed(&nominated));
    if revocations.is_empty() {
        return Ok(None);
    }
    let revoked = source.shares(&revocations, false).await?;
    hearing.revoked(&weighed(&revoked));
    // That of which most was said.
    let nominated = nominated.into_iter().filter(|shares| shares.weighed(thousandths) > 0).zip(revoked);
    let most = nominated.max_by_key(|(nominated, _)| nominated.total());
    let weight = hearing.weight(inquiry.seen());
    Ok(most.map(|(nominated, revoked)| UserReports { weight, nominated, revoked }))
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
    let pairs: Vec<u64> = all.iter().map(|of| rules.correspondence(of)).collect();
    let known = source.know(&pairs).await;
    all.into_iter().zip(known).filter_map(|(of, is_known)| is_known.then_some(of)).collect()
}
