// SPDX-License-Identifier: GPL-3.0-or-later
//! Members tell one another how they are, by way of the log. Nothing relies on it; it is for people.

use super::members::Members;
use super::state::Fleet;
use super::word::{Condition, FleetMailing, MemberRole, MemberWord};
use crate::log::{Log, LogError};
use bulkmark_ledger::{Ledger, LedgerError, now};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long the ledger may take to tell of itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// Before it is tried again, at most.
const AGAIN: Duration = Duration::from_secs(10);

/// Before those are looked for again who did not speak yet.
const SOON: Duration = Duration::from_secs(2);

/// How often something must fail in a row before the log is told.
const PATIENT: u32 = 3;

/// What is told besides what fleet and ledger know.
#[derive(Clone)]
pub struct Telling {
    /// How often.
    pub every: Duration,
    /// What this machine does.
    pub role: MemberRole,
    /// Its largest mailings; none if they are not to be told.
    pub mailings: Option<Arc<dyn Fn() -> Vec<FleetMailing> + Send + Sync>>,
}

/// Tells how this machine is, for as long as its ledger is open.
pub async fn tell<L: Log>(ledger: Ledger, log: Arc<L>, fleet: Arc<Fleet>, telling: Telling) {
    let mut complaint = Complaint::default();
    loop {
        let word = match word(&ledger, &fleet, &telling).await {
            Ok(word) => word.encode(),
            Err(LedgerError::Closed) => return,
            // It is said elsewhere; who is ill is silent.
            Err(_) => {
                sleep(AGAIN).await;
                continue;
            }
        };
        let done = log.tell(word).await;
        let pause = if done.is_ok() { telling.every } else { telling.every.min(AGAIN) };
        complaint.is(&fleet, "the other members are not told how this machine is", done);
        sleep(pause).await;
    }
}

/// Reads what all members tell, twice as often as this one tells it; for an aggregator.
pub async fn gather<L: Log>(log: Arc<L>, fleet: Arc<Fleet>, every: Duration) {
    let mut complaint = Complaint::default();
    loop {
        let mut pause = every / 2;
        let done = Members::read(&*log).await.map(|members| {
            if members.are_silent() {
                // They are about to speak.
                pause = pause.min(SOON);
            }
            fleet.gathers(members);
        });
        complaint.is(&fleet, "what other members tell cannot be read", done);
        sleep(pause).await;
    }
}

async fn word(ledger: &Ledger, fleet: &Fleet, telling: &Telling) -> Result<MemberWord, LedgerError> {
    let silent = || LedgerError::Unavailable("it does not answer".to_owned());
    let own = timeout(PATIENCE, ledger.status(None)).await.map_err(|_| silent())??;
    let is_aggregator = telling.role == MemberRole::Aggregator;
    let status = fleet.status(ledger.fleet(), is_aggregator);
    let condition = Condition {
        step: status.version,
        epoch: status.epoch,
        lag_seconds: fleet.staleness(),
        steps_behind: status.steps_behind,
        uncovered: own.spool as u64,
        waiting_seconds: own.spool_oldest.map(|oldest| now().saturating_sub(oldest)),
        ..Condition::new(telling.role)
    };
    Ok(MemberWord {
        in_step: status.in_step,
        mailings: telling.mailings.as_ref().map(|mailings| mailings()).unwrap_or_default(),
        ..MemberWord::new(condition, telling.every.as_secs())
    })
}

/// Says once what fails again and again, while the log itself is followed.
#[derive(Default)]
struct Complaint {
    failures: u32,
    made: bool,
}

impl Complaint {
    fn is(&mut self, fleet: &Fleet, what: &str, done: Result<(), LogError>) {
        let Err(error) = done else {
            self.failures = 0;
            return;
        };
        self.failures = self.failures.saturating_add(1);
        if self.made || self.failures < PATIENT || fleet.reached().borrow().is_none() {
            return;
        }
        self.made = true;
        log::warn!(
            "{}: {what}: {}; a log that an older version set up needs `bulkmark fleet setup` once more, all else works without",
            fleet.url(),
            bulkmark_types::remote_text(&error.to_string())
        );
    }
}
