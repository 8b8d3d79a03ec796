// SPDX-License-Identifier: GPL-3.0-or-later
//! All questions that the milter would ask about a message that it has not counted yet.

use super::super::verification::verify;
use super::source::{Case, Source};
use crate::lookup::Found;
use bulkmark_counts::Shares;
use bulkmark_policy::{Correspondence, Counts, Weight};
use bulkmark_signature::near;
use bulkmark_verdict::{
    Content, Counted, Envelope, Exempt, Finding, Inquiry, Mode, Question, ReportInquiry, Rules, questions,
};
use serde::{Serialize, Serializer};

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
    pub(super) near: Option<near::Judgement>,
    /// Its user reports, if there are any.
    pub(super) user_reports: Option<UserReports>,
    /// The results of verification.
    pub(super) verified: Vec<Found>,
}

/// The user reports, in units of an eighth of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserReports {
    /// The resulting weight, in fully trusted users.
    #[serde(serialize_with = "as_text")]
    pub weight: Weight,
    /// The nominations of the signature that was nominated most.
    pub nominated: Shares,
    /// The revocations of that signature.
    pub revoked: Shares,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn as_text<S: Serializer>(weight: &Weight, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(weight)
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
    let inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Ask);
    let mut inquiry = content.about(inquiry, envelope, rules);
    // Other servers are not asked about signatures that are not sent to them.
    let is_sent = rules.shares_exact && !rules.is_outbound(envelope);
    let may_ask = is_sent && !rules.private.names(&content.facts(envelope, rules));
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
    let user_reports = look_up_reports(source, case, content, &inquiry).await?;
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
    /// Decides by its counts.
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

/// Looks up the user reports of the message, as the milter does.
async fn look_up_reports<S: Source>(
    source: &S,
    Case { rules, envelope, .. }: Case<'_>,
    content: &Content,
    inquiry: &Inquiry<'_>,
) -> Result<Option<UserReports>, S::Error> {
    if content.signatures.is_empty() || rules.is_outbound(envelope) {
        return Ok(None);
    }
    let mut reports = ReportInquiry::new(&content.signatures, &rules.key);
    let thousandths = rules.user_reports.trust.federation_weight.thousandths();
    let weighed = |shares: &[Shares]| shares.iter().map(|of| of.weighed(thousandths)).collect::<Vec<_>>();
    // A milter with a partial copy does not ask other servers for user reports, either.
    let nominated = source.shares(&reports.nominations(), false).await?;
    let revocations = reports.revocations(&weighed(&nominated));
    if revocations.is_empty() {
        return Ok(None);
    }
    let revoked = source.shares(&revocations, false).await?;
    reports.revoked(&weighed(&revoked));
    // The signature with the most nominations.
    let nominated = nominated.into_iter().filter(|shares| shares.weighed(thousandths) > 0).zip(revoked);
    let most = nominated.max_by_key(|(nominated, _)| nominated.total());
    let weight = reports.weight(inquiry.seen());
    Ok(most.map(|(nominated, revoked)| UserReports { weight, nominated, revoked }))
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
    let pairs: Vec<u64> = all.iter().map(|of| rules.correspondence(of)).collect();
    let known = source.know(&pairs).await;
    all.into_iter().zip(known).filter_map(|(of, is_known)| is_known.then_some(of)).collect()
}
