// SPDX-License-Identifier: GPL-3.0-or-later
//! What people say of signatures that other programs made: they are told and asked without the message.

use super::report::{Refused, Word, weighing};
use super::service::Service;
use crate::ledger::{Nominated, Said, Saying};
use crate::signature::{ReporterId, Signature, nomination, revocation};
use tokio::time::{Instant, timeout_at};

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

/// What people say of these signatures, by one question to the ledger, and one more where any was nominated. None when there is no answer
/// before the deadline of verdicts.
pub async fn opinions(service: &Service, signatures: &[Signature]) -> Option<Vec<Opinion>> {
    let mut opinions = vec![Opinion::default(); signatures.len()];
    if !service.ledger.has_people() {
        return Some(opinions);
    }
    let rules = service.rules.load_full();
    let (now, deadline) = (crate::ledger::now(), Instant::now() + rules.deadline);
    let thousandths = rules.people.federation_weight.thousandths();
    let ask =
        async |asked| timeout_at(deadline, service.ledger.weighed(asked, thousandths, now)).await.ok()?.ok();
    let nominations: Vec<Signature> = signatures.iter().map(|&of| nomination(&rules.key, of)).collect();
    let weights: Vec<u32> = ask(nominations.clone()).await?;
    let said: Vec<usize> = (0..weights.len()).filter(|&at| weights[at] > 0).collect();
    opinions.iter_mut().zip(weights).for_each(|(opinion, weight)| opinion.nominated = weight);
    if !said.is_empty() {
        let revoked = ask(said.iter().map(|&at| revocation(nominations[at])).collect()).await?;
        said.iter().zip(revoked).for_each(|(&at, weight)| opinions[at].revoked = weight);
    }
    Some(opinions)
}

/// Counts what somebody says of a signature. What was answered is on disk.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub async fn take_digest(service: &Service, of: Signature, word: Word) -> Result<Said, Refused> {
    let rules = service.rules.load_full();
    let now = crate::ledger::now();
    let Word { reporter, side, only_back, .. } = word;
    let reporter = ReporterId::of(&rules.key, &reporter);
    if !service.daily.admits(reporter, now) {
        return Err(Refused::TooMany);
    }
    // It stands for the whole content, as a body's signature does.
    let shared = rules.people.share_nominations && rules.shares_exact;
    let nominations = vec![Nominated { of, nomination: nomination(&rules.key, of), shared }];
    let weighing = weighing(&rules);
    let saying =
        Saying { reporter, side, nominations, fixed: None, weighing, subject: String::new(), only_back, now };
    Ok(service.ledger.say(saying).await?)
}
