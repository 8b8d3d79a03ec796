// SPDX-License-Identifier: GPL-3.0-or-later
//! Watches the thread that writes the ledger: a disk that hangs blocks it without an error. This is logged, and the service manager gets no
//! heartbeat from a blocked daemon.

use super::supervisor::Supervisor;
use crate::control::DISK_PATIENCE;
use bulkmark_ledger::Ledger;
use sd_notify::NotifyState;
use std::time::Duration;

/// The time between two checks of the writer.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Watches while the tasks run.
pub(super) fn watch(ledger: &Ledger, tasks: &mut Supervisor) {
    let logged = ledger.clone();
    tasks.run("disk", move || log_disk(logged.clone()));
    if let Some(limit) = sd_notify::watchdog_enabled() {
        let ledger = ledger.clone();
        tasks.run("watchdog", move || beat(ledger.clone(), limit));
    }
}

/// Sends heartbeats to the service manager, unless the writer has been blocked for the whole `limit`.
async fn beat(ledger: Ledger, limit: Duration) {
    // Twice within the limit, as sd_watchdog_enabled(3) recommends.
    let mut beat = tokio::time::interval((limit / 2).max(Duration::from_millis(1)));
    loop {
        beat.tick().await;
        if ledger.busy_for() < limit {
            super::daemon::notify(&[NotifyState::Watchdog]);
        }
    }
}

/// The subject of log lines if the disk is the cause.
const DISK: &str = "the ledger's disk";

/// Logs that the disk, or the ledger itself, does not answer, after a while and each time that this took twice as long, and when it answers
/// again.
async fn log_disk(ledger: Ledger) {
    let (mut tick, mut next, mut longest) =
        (tokio::time::interval(CHECK_INTERVAL), DISK_PATIENCE, Duration::ZERO);
    let mut subject = DISK;
    loop {
        tick.tick().await;
        let busy = ledger.busy_for();
        if busy < longest {
            log::warn!("{subject} answers again, after {} s", longest.as_secs());
            (next, longest) = (DISK_PATIENCE, Duration::ZERO);
        }
        if busy >= DISK_PATIENCE {
            subject = if ledger.is_busy_with_disk() { DISK } else { "the ledger" };
            longest = busy;
        }
        if busy >= next {
            let seconds = busy.as_secs();
            if ledger.is_busy_with_disk() {
                log::error!("{DISK} has not answered for {seconds} s; nothing is counted until it does");
            } else {
                log::error!(
                    "the ledger has been busy with one piece of work for {seconds} s, which takes the processor's time and not the disk's; \
                     nothing else is counted meanwhile"
                );
            }
            next *= 2;
        }
    }
}
