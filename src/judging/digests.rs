// SPDX-License-Identifier: GPL-3.0-or-later
//! Reports and look-ups of other programs' digests, without the message.

use super::report::{Refused, became, is_admitted, name_field, weighing};
use super::service::Service;
use crate::activity::ReportResult;
use bulkmark_counts::{Nominated, Side, Submission, Tally};
use bulkmark_ledger::{LedgerError, now};
use bulkmark_types::{FederationKey, ReporterId, Signature, nomination, revocation};
use bulkmark_verdict::Rules;
use tokio::time::timeout;

/// The user reports of one signature, in units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReportWeights {
    /// The weight of its nominations.
    pub nominated: u32,
    /// The weight of its revocations.
    pub revoked: u32,
}

impl ReportWeights {
    /// The nominations less the revocations.
    #[must_use]
    pub const fn left(self) -> u32 {
        self.nominated.saturating_sub(self.revoked)
    }
}

/// The user reports of signatures, by one question to the ledger for each key. `signatures` makes the signatures under a key. `None` if there
/// is no answer before the deadline of verdicts.
pub async fn report_weights(
    service: &Service,
    signatures: impl Fn(&FederationKey) -> Vec<Signature>,
) -> Option<Vec<ReportWeights>> {
    let rules = service.rules.load_full();
    let mut all = vec![ReportWeights::default(); signatures(&rules.key).len()];
    if !service.ledger.has_user_reports() {
        return Some(all);
    }
    let thousandths = rules.user_reports.trust.federation_weight.thousandths();
    for key in rules.key.all() {
        let both = |of: Signature| {
            let nomination = nomination(key, of);
            [nomination, revocation(nomination)]
        };
        let asked = signatures(key).into_iter().flat_map(both).collect();
        let weights = in_time(&rules, service.ledger.weighed(asked, thousandths, now())).await?;
        for (of, &[nominated, revoked]) in all.iter_mut().zip(weights.as_chunks().0) {
            of.nominated = of.nominated.saturating_add(nominated);
            of.revoked = of.revoked.saturating_add(revoked);
        }
    }
    Some(all)
}

/// The ledger's answer, if it comes before the deadline of verdicts.
pub(super) async fn in_time<T>(
    rules: &Rules,
    answer: impl Future<Output = Result<T, LedgerError>>,
) -> Option<T> {
    timeout(rules.deadline, answer).await.ok()?.ok()
}

/// Counts a report of a signature. On return it is on disk.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub async fn take_digest(
    service: &Service,
    of: Signature,
    (reporter, side): (&[u8], Side),
) -> Result<Tally, Refused> {
    let (rules, now) = (service.rules.load_full(), now());
    let by = ReporterId::of(&rules.key, reporter);
    if !is_admitted(service, &rules, (by, reporter), side, now) {
        service.activity.user_reports.add(side == Side::Spam, ReportResult::OverLimit);
        return Err(Refused::TooMany);
    }
    let tally = submit(service, &rules, of, (by, side), now).await?;
    log_name(&rules, by, reporter);
    Ok(tally)
}

/// Logs the reporter's name, if allowed. Reports of digests have no other log line: there may be hundreds a second.
pub(super) fn log_name(rules: &Rules, by: ReporterId, name: &[u8]) {
    if rules.user_reports.log_names {
        log::info!("reported: a digest by={by}{}", name_field(rules, name));
    }
}

/// Submits it to the ledger.
pub(super) async fn submit(
    service: &Service,
    rules: &Rules,
    of: Signature,
    (reporter, side): (ReporterId, Side),
    now: u64,
) -> Result<Tally, LedgerError> {
    let nominations =
        vec![Nominated { of, nomination: nomination(&rules.key, of), shared: are_shared(rules) }];
    let submission =
        Submission { reporter, side, nominations, weighing: weighing(rules), now, ..Submission::default() };
    let tally = service.ledger.submit(submission).await;
    service.activity.user_reports.add(side == Side::Spam, became(tally.as_ref().ok()));
    tally
}

/// Whether reports of digests are sent to other servers: a digest stands for the whole content, like a body's signature.
pub(super) const fn are_shared(rules: &Rules) -> bool {
    rules.shares_user_reports && rules.shares_exact
}
