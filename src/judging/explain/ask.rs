// SPDX-License-Identifier: GPL-3.0-or-later
//! Puts the questions about a message to a source, without counting it.

use super::source::{Case, Source};
use bulkmark_counts::Shares;
use bulkmark_policy::Weight;
use bulkmark_signature::Signatures;
use bulkmark_types::FederationKey;
use bulkmark_verdict::{Hearing, Inquiry, Question};
use serde::{Serialize, Serializer};

/// What people say, in units of an eighth of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct People {
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

/// When others are asked for counts that are not held here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    Never,
    /// Where some of the first question are held, which may be bulk therefore.
    IfHeld,
    Always,
}

/// Puts the questions of an inquiry to a source.
pub(super) async fn ask<S: Source>(
    source: &S,
    Case { rules, envelope, .. }: Case<'_>,
    inquiry: &mut Inquiry<'_>,
    asking: Asking,
) -> Result<(), S::Error> {
    let is_thin = source.is_thin() && !rules.is_outbound(envelope);
    let mut may_ask = asking == Asking::Always || asking == Asking::IfHeld && !is_thin;
    while let Some(Question { asked, .. }) = inquiry.ask() {
        let mut shares = source.shares(&asked, may_ask).await?;
        let is_bulk = |shares: &Shares| shares.total() >= rules.hold_from();
        if asking == Asking::IfHeld && !may_ask && inquiry.is_first() && shares.iter().any(is_bulk) {
            may_ask = true;
            shares = source.shares(&asked, true).await?;
        }
        let counts: Vec<u32> = shares.iter().map(Shares::total).collect();
        let in_part = is_thin && shares.iter().any(|shares| shares.asked.is_none());
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

/// What people say of the message, as the milter hears it.
pub(super) async fn hear<S: Source>(
    source: &S,
    Case { rules, envelope, .. }: Case<'_>,
    (signatures, key): (&Signatures, &FederationKey),
    inquiry: &Inquiry<'_>,
) -> Result<Option<People>, S::Error> {
    if signatures.is_empty() || rules.is_outbound(envelope) {
        return Ok(None);
    }
    let mut hearing = Hearing::new(signatures, key);
    let thousandths = rules.people.trust.federation_weight.thousandths();
    let weighed = |shares: &[Shares]| shares.iter().map(|of| of.weighed(thousandths)).collect::<Vec<_>>();
    // A thin milter asks nobody what people say, either.
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
    Ok(most.map(|(nominated, revoked)| People { weight, nominated, revoked }))
}
