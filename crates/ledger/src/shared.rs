// SPDX-License-Identifier: GPL-3.0-or-later
//! The data of a ledger that other threads read without the writer.

use crate::busy::Busy;
use crate::condition::Condition;
use crate::disk::load::Loaded;
use arc_swap::{ArcSwap, ArcSwapOption};
use bulkmark_counts::history::bulk::BulkMark;
use bulkmark_counts::history::fleet_mark::FleetMark;
use bulkmark_counts::history::step::Step;
use bulkmark_counts::history::vector::{Chain, MAX_ORIGINS, Origin, Vector};
use bulkmark_counts::state::retries::Retries;
use bulkmark_counts::state::roles::State;
use parking_lot::Mutex;
use redb::Database;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{RwLock, watch};

/// The data of a ledger that other threads read without the writer.
pub(crate) struct Shared {
    /// The counts. Only the writer changes them; while the disk works, it only reads them, too.
    pub(crate) condition: RwLock<Condition>,
    /// The number of remembered refused messages.
    pub(crate) remembered: AtomicUsize,
    /// The open file, for readers.
    pub(crate) db: ArcSwapOption<Database>,
    /// The version up to which each origin is counted and on disk.
    pub(crate) vector: watch::Sender<Arc<Vector>>,
    /// The position of the list of bulk on disk.
    pub(crate) bulk: watch::Sender<BulkMark>,
    /// The position of a fleet's chain on disk.
    pub(crate) fleet: Mutex<FleetMark>,
    /// The last drafted step, with the hash of its bytes.
    pub(crate) drafted: ArcSwapOption<(Chain, Step)>,
    /// The id of the key, and the length of a window in seconds.
    pub(crate) parameters: (u64, u64),
    /// The origins whose history only this ledger writes.
    pub(crate) own: ArcSwap<Vec<Origin>>,
    /// Whether the disk failed, and no write succeeded since.
    pub(crate) failed: AtomicBool,
    /// Whether a server still waits for the vectors of some peers since its start.
    pub(crate) awaits_peers: AtomicBool,
    /// Whether the ledger was closed, and will answer no more requests.
    pub(crate) closed: AtomicBool,
    /// Whether any user report may still count.
    pub(crate) has_user_reports: AtomicBool,
    /// The time that the writer has spent on one piece of work.
    pub(crate) busy: Busy,
}

/// Whether there are so many origins now, and were not before, that the administrator must know. Snapshots bring thousands at a time.
const fn is_passed(before: usize, now: usize) -> bool {
    const MANY: usize = MAX_ORIGINS / 4 * 3;
    before < MANY && now >= MANY
}

impl Shared {
    /// Returns the shared data of a ledger that was read; `parameters` are the id of its key and the length of a window in seconds.
    pub(crate) fn new(loaded: Loaded, parameters: (u64, u64)) -> Self {
        let shared = Self {
            condition: RwLock::new(Condition::Open(Box::new(loaded))),
            remembered: AtomicUsize::new(0),
            db: ArcSwapOption::empty(),
            vector: watch::Sender::new(Arc::default()),
            bulk: watch::Sender::new(BulkMark::default()),
            fleet: Mutex::default(),
            drafted: ArcSwapOption::empty(),
            parameters,
            own: ArcSwap::default(),
            failed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            awaits_peers: AtomicBool::new(false),
            has_user_reports: AtomicBool::new(false),
            busy: Busy::new(),
        };
        // No other thread has it yet.
        if let Ok(condition) = shared.condition.try_read()
            && let Some(loaded) = condition.readable()
        {
            shared.publish(loaded);
        }
        shared
    }

    /// Publishes the state that is on disk now.
    pub(crate) fn publish(&self, loaded: &Loaded) {
        let Loaded { db, state, .. } = loaded;
        self.remembered.store(state.retries().map_or(0, Retries::remembered), Ordering::Relaxed);
        self.vector.send_if_modified(|shared| {
            let vector = state.vector();
            let moved = **shared != vector;
            if moved {
                if is_passed(shared.len(), vector.len()) {
                    let known = vector.len();
                    log::warn!("{known} origins are known now; at {MAX_ORIGINS} no new one is counted");
                }
                *shared = Arc::new(vector);
            }
            let own = state.own_origins();
            if **self.own.load() != own {
                self.own.store(Arc::new(own));
            }
            moved
        });
        let bulk = state.counts().bulk;
        self.bulk.send_if_modified(|shared| std::mem::replace(shared, bulk) != bulk);
        *self.fleet.lock() = state.counts().fleet.mark;
        let awaits_peers =
            matches!(state, State::Server(server) if server.peer_check.peers().next().is_some());
        self.awaits_peers.store(awaits_peers, Ordering::Relaxed);
        self.has_user_reports.store(state.counts().has_user_reports(), Ordering::Relaxed);
        if self.db.load().is_none() {
            self.db.store(Some(Arc::clone(db)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The administrator learns once, and at each start, that there are many origins, however many come at a time.
    #[test]
    fn many_origins_are_noticed() {
        let passed = [(0, 49_151), (49_151, 49_152), (40_000, 60_000), (0, 49_152), (49_152, 49_153)];
        assert_eq!(passed.map(|(before, now)| is_passed(before, now)), [false, true, true, true, false]);
    }
}
