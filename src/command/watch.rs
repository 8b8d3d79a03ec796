// SPDX-License-Identifier: GPL-3.0-or-later
//! Watches the thread that writes the ledger: a disk that hangs holds it, and nothing fails. The log tells of it, and the
//! service manager hears no beat of a daemon that can do nothing.

use super::supervisor::Supervisor;
use crate::control::DISK_PATIENCE;
use bulkmark_ledger::Ledger;
use sd_notify::NotifyState;
use std::time::Duration;

/// How often the writer is checked.
const LOOK: Duration = Duration::from_secs(1);

/// Watches for as long as the tasks live.
pub(super) fn watch(ledger: &Ledger, tasks: &mut Supervisor) {
    let of_log = ledger.clone();
    tasks.run("disk", move || tell_of_disk(of_log.clone()));
    if let Some(limit) = sd_notify::watchdog_enabled() {
        let ledger = ledger.clone();
        tasks.run("watchdog", move || beat(ledger.clone(), limit));
    }
}

/// Tells the service manager that the daemon lives, unless its writer has been held for the whole `limit`.
async fn beat(ledger: Ledger, limit: Duration) {
    // Twice in the time, as sd_watchdog_enabled(3) recommends.
    let mut beat = tokio::time::interval((limit / 2).max(Duration::from_millis(1)));
    loop {
        beat.tick().await;
        if ledger.busy_for() < limit {
            super::daemon::notify(&[NotifyState::Watchdog]);
        }
    }
}

/// What does not answer where it is the disk's fault.
const DISK: &str = "the ledger's disk";

/// Says in the log that the disk, or the ledger itself, does not answer, after a while and each time that this took twice as long, and when it does again.
async fn tell_of_disk(ledger: Ledger) {
    let (mut look, mut next, mut longest) = (tokio::time::interval(LOOK), DISK_PATIENCE, Duration::ZERO);
    let mut whose = DISK;
    loop {
        look.tick().await;
        let busy = ledger.busy_for();
        if busy < longest {
            log::warn!("{whose} answers again, after {} s", longest.as_secs());
            (next, longest) = (DISK_PATIENCE, Duration::ZERO);
        }
        if busy >= DISK_PATIENCE {
            whose = if ledger.is_busy_with_disk() { DISK } else { "the ledger" };
            longest = busy;
        }
        if busy >= next {
            let seconds = busy.as_secs();
            if ledger.is_busy_with_disk() {
                log::error!("{DISK} has not answered for {seconds} s; nothing is counted until it does");
            } else {
                log::error!(
                    "the ledger has been counting what it was told for {seconds} s, which takes the processor's time and not the disk's; \
                     nothing else is counted meanwhile"
                );
            }
            next *= 2;
        }
    }
}
