// SPDX-License-Identifier: GPL-3.0-or-later
//! Publishes this member's state in the log, and reads those of the others. Nothing relies on it; it is for people.

use super::members::Members;
use super::state::Fleet;
use super::state_report::{Condition, FleetMailing, MemberRole, ReportBody};
use crate::log::{Log, LogError};
use bulkmark_ledger::{Ledger, LedgerError, now};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long the ledger may take to return its status.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest pause before another attempt.
const AGAIN: Duration = Duration::from_secs(10);

/// The pause before looking again for members that have not reported yet.
const SOON: Duration = Duration::from_secs(2);

/// How often in a row an act must fail before it is logged.
const MIN_FAILURES: u32 = 3;

/// The parts of a state report that neither fleet nor ledger know.
#[derive(Clone)]
pub struct PublishSettings {
    /// The time between two reports.
    pub every: Duration,
    /// The role of this machine.
    pub role: MemberRole,
    /// Its largest mailings; none if they are not published.
    pub mailings: Option<Arc<dyn Fn() -> Vec<FleetMailing> + Send + Sync>>,
}

/// Publishes the state of this machine, as long as its ledger is open.
pub async fn publish_state<L: Log>(
    ledger: Ledger,
    log: Arc<L>,
    fleet: Arc<Fleet>,
    settings: PublishSettings,
) {
    let mut repeated = RepeatedFailure::default();
    loop {
        let report = match report(&ledger, &fleet, &settings).await {
            Ok(report) => report.encode(),
            Err(LedgerError::Closed) => return,
            // Other tasks log the error; a member with a broken ledger is silent.
            Err(_) => {
                sleep(AGAIN).await;
                continue;
            }
        };
        let done = log.publish_state(report).await;
        let pause = if done.is_ok() { settings.every } else { settings.every.min(AGAIN) };
        repeated.note(&fleet, "the other members do not receive the state of this machine", done);
        sleep(pause).await;
    }
}

/// Reads the states of all members, twice as often as this one publishes its own; for an aggregator.
pub async fn gather<L: Log>(log: Arc<L>, fleet: Arc<Fleet>, every: Duration) {
    let mut repeated = RepeatedFailure::default();
    loop {
        let mut pause = every / 2;
        let done = Members::read(&*log).await.map(|members| {
            if members.are_silent() {
                // They will report soon.
                pause = pause.min(SOON);
            }
            fleet.set_members(members);
        });
        repeated.note(&fleet, "the states of the other members cannot be read", done);
        sleep(pause).await;
    }
}

async fn report(
    ledger: &Ledger,
    fleet: &Fleet,
    settings: &PublishSettings,
) -> Result<ReportBody, LedgerError> {
    let silent = || LedgerError::Unavailable("it does not answer".to_owned());
    let own = timeout(PATIENCE, ledger.status(None)).await.map_err(|_| silent())??;
    let is_aggregator = settings.role == MemberRole::Aggregator;
    let status = fleet.status(ledger.fleet(), is_aggregator);
    let condition = Condition {
        step: status.version,
        epoch: status.epoch,
        lag_seconds: fleet.staleness(),
        steps_behind: status.steps_behind,
        uncovered: own.spool as u64,
        waiting_seconds: own.spool_oldest.map(|oldest| now().saturating_sub(oldest)),
        ..Condition::new(settings.role)
    };
    Ok(ReportBody {
        in_step: status.in_step,
        mailings: settings.mailings.as_ref().map(|mailings| mailings()).unwrap_or_default(),
        ..ReportBody::new(condition, settings.every.as_secs())
    })
}

/// Logs a repeated failure once, if the log itself can be followed.
#[derive(Default)]
struct RepeatedFailure {
    failures: u32,
    logged: bool,
}

impl RepeatedFailure {
    fn note(&mut self, fleet: &Fleet, what: &str, done: Result<(), LogError>) {
        let Err(error) = done else {
            self.failures = 0;
            return;
        };
        self.failures = self.failures.saturating_add(1);
        if self.logged || self.failures < MIN_FAILURES || fleet.reached().borrow().is_none() {
            return;
        }
        self.logged = true;
        log::warn!(
            "{}: {what}: {}; a log that an older version set up needs `bulkmark fleet setup` once more, all else works without",
            fleet.url(),
            bulkmark_types::told(&error.to_string())
        );
    }
}
