// SPDX-License-Identifier: GPL-3.0-or-later
//! What others see of a ledger without asking its writer.

use crate::busy::Busy;
use crate::condition::Condition;
use crate::disk::load::Loaded;
use arc_swap::{ArcSwap, ArcSwapOption};
use bulkmark_counts::history::bulk::BulkMark;
use bulkmark_counts::history::fleet_mark::FleetMark;
use bulkmark_counts::history::step::Step;
use bulkmark_counts::history::vector::{Chain, Origin, Vector};
use bulkmark_counts::state::retries::Retries;
use bulkmark_counts::state::roles::State;
use parking_lot::Mutex;
use redb::Database;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{RwLock, watch};

/// What others see of a ledger without asking its writer.
pub(crate) struct Shared {
    /// What was counted. Only the writer changes it; while the disk works, it only reads, too.
    pub(crate) condition: RwLock<Condition>,
    /// Refused messages that are remembered.
    pub(crate) remembered: AtomicUsize,
    /// The open file, for readers.
    pub(crate) db: ArcSwapOption<Database>,
    /// How far each origin is counted and on disk.
    pub(crate) vector: watch::Sender<Arc<Vector>>,
    /// How far the list of bulk is, on disk.
    pub(crate) bulk: watch::Sender<BulkMark>,
    /// Where a fleet's chain stands on disk.
    pub(crate) fleet: Mutex<FleetMark>,
    /// The step that was drafted last, by the hash of its bytes.
    pub(crate) drafted: ArcSwapOption<(Chain, Step)>,
    /// The number of the key, and the length of a window in seconds.
    pub(crate) parameters: (u64, u64),
    /// The origins whose history only this ledger writes.
    pub(crate) own: ArcSwap<Vec<Origin>>,
    /// Whether the disk failed, and nothing was written since.
    pub(crate) failed: AtomicBool,
    /// Whether a server still has to hear from peers since its start.
    pub(crate) listens: AtomicBool,
    /// Whether it was closed, and will answer nothing any more.
    pub(crate) closed: AtomicBool,
    /// Whether people said anything of any message that may still count.
    pub(crate) has_user_reports: AtomicBool,
    /// How long the writer has been at one piece of work.
    pub(crate) busy: Busy,
}

impl Shared {
    /// Of a ledger that was read; `parameters` are the number of its key, and the length of a window in seconds.
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
            listens: AtomicBool::new(false),
            has_user_reports: AtomicBool::new(false),
            busy: Busy::new(),
        };
        // Nobody else has it yet.
        if let Ok(condition) = shared.condition.try_read()
            && let Some(loaded) = condition.readable()
        {
            shared.tell(loaded);
        }
        shared
    }

    /// Tells what is on disk now.
    pub(crate) fn tell(&self, loaded: &Loaded) {
        let Loaded { db, state, .. } = loaded;
        self.remembered.store(state.retries().map_or(0, Retries::remembered), Ordering::Relaxed);
        self.vector.send_if_modified(|shared| {
            let vector = state.vector();
            let moved = **shared != vector;
            if moved {
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
        let listens = matches!(state, State::Server(server) if server.peer_check.peers().next().is_some());
        self.listens.store(listens, Ordering::Relaxed);
        self.has_user_reports.store(state.counts().has_user_reports(), Ordering::Relaxed);
        if self.db.load().is_none() {
            self.db.store(Some(Arc::clone(db)));
        }
    }
}
