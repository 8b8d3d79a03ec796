// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks a source the questions about a message, without counting it.

use super::source::{Case, Source};
use bulkmark_counts::Shares;
use bulkmark_policy::Weight;
use bulkmark_signature::Signatures;
use bulkmark_types::FederationKey;
use bulkmark_verdict::{Inquiry, Question, ReportInquiry};
use serde::{Serialize, Serializer};

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

/// When other servers are asked for counts that are not held here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    Never,
    /// If counts of the first question are held here, so that the message may be bulk.
    IfHeld,
    Always,
}

/// Asks a source the questions of an inquiry.
pub(super) async fn ask<S: Source>(
    source: &S,
    Case { rules, envelope, .. }: Case<'_>,
    inquiry: &mut Inquiry<'_>,
    asking: Asking,
) -> Result<(), S::Error> {
    let is_partial = source.is_partial() && !rules.is_outbound(envelope);
    let mut may_ask = asking == Asking::Always || asking == Asking::IfHeld && !is_partial;
    while let Some(Question { asked, .. }) = inquiry.ask() {
        let mut shares = source.shares(&asked, may_ask).await?;
        let is_bulk = |shares: &Shares| shares.total() >= rules.hold_from();
        if asking == Asking::IfHeld && !may_ask && inquiry.is_first() && shares.iter().any(is_bulk) {
            may_ask = true;
            shares = source.shares(&asked, true).await?;
        }
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
    Ok(())
}

/// Looks up the user reports of the message under one key, as the milter does.
pub(super) async fn look_up_reports<S: Source>(
    source: &S,
    Case { rules, envelope, .. }: Case<'_>,
    (signatures, key): (&Signatures, &FederationKey),
    inquiry: &Inquiry<'_>,
) -> Result<Option<UserReports>, S::Error> {
    if signatures.is_empty() || rules.is_outbound(envelope) {
        return Ok(None);
    }
    let mut reports = ReportInquiry::new(signatures, key);
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
