// SPDX-License-Identifier: GPL-3.0-or-later
//! What is told and asked of digests that other programs made, without the message.

use super::report::{Refused, became, is_heard, named, weighing};
use super::service::Service;
use crate::activity::Became;
use bulkmark_counts::{Nominated, Said, Saying, Side};
use bulkmark_ledger::{LedgerError, now};
use bulkmark_types::{FederationKey, ReporterId, Signature, nomination, revocation};
use bulkmark_verdict::Rules;
use tokio::time::timeout;

/// What people say of one signature, in units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opinion {
    /// What those weigh who called it spam.
    pub nominated: u32,
    /// And those who spoke against that.
    pub revoked: u32,
}

impl Opinion {
    /// What is left of the nominations.
    #[must_use]
    pub const fn left(self) -> u32 {
        self.nominated.saturating_sub(self.revoked)
    }
}

/// What people say of signatures, which these are under a key, by one question to the ledger for each key. None when there is no answer
/// before the deadline of verdicts.
pub async fn opinions(
    service: &Service,
    signatures: impl Fn(&FederationKey) -> Vec<Signature>,
) -> Option<Vec<Opinion>> {
    let rules = service.rules.load_full();
    let mut all = vec![Opinion::default(); signatures(&rules.key).len()];
    if !service.ledger.has_people() {
        return Some(all);
    }
    let thousandths = rules.people.trust.federation_weight.thousandths();
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

/// Counts what somebody says of a signature. What was answered is on disk.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub async fn take_digest(
    service: &Service,
    of: Signature,
    (reporter, side): (&[u8], Side),
) -> Result<Said, Refused> {
    let (rules, now) = (service.rules.load_full(), now());
    let by = ReporterId::of(&rules.key, reporter);
    if !is_heard(service, &rules, (by, reporter), side, now) {
        service.activity.words.add(side == Side::Spam, Became::OverLimit);
        return Err(Refused::TooMany);
    }
    let said = say(service, &rules, of, (by, side), now).await?;
    name(&rules, by, reporter);
    Ok(said)
}

/// Has the log name who said something of a digest, where it may. It says so of nothing else: there may be hundreds in a second.
pub(super) fn name(rules: &Rules, by: ReporterId, name: &[u8]) {
    if rules.people.log_names {
        log::info!("reported: a digest by={by}{}", named(rules, name));
    }
}

/// Has the ledger count it.
pub(super) async fn say(
    service: &Service,
    rules: &Rules,
    of: Signature,
    (reporter, side): (ReporterId, Side),
    now: u64,
) -> Result<Said, LedgerError> {
    let nominations =
        vec![Nominated { of, nomination: nomination(&rules.key, of), shared: are_shared(rules) }];
    let saying = Saying { reporter, side, nominations, weighing: weighing(rules), now, ..Saying::default() };
    let said = service.ledger.say(saying).await;
    service.activity.words.add(side == Side::Spam, became(said.as_ref().ok()));
    said
}

/// Whether other servers are told of digests: one stands for the whole content, as a body's signature does.
pub(super) const fn are_shared(rules: &Rules) -> bool {
    rules.people.share_nominations && rules.shares_exact
}
