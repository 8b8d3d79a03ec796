// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots that are being fetched: each stays as it was, so that a reader who was cut off can go on.

use crate::ledger::{Ledger, LedgerError, Snapshot};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For how long after its last use a snapshot is kept. As long as it is, the file cannot use the space that it needs.
const KEPT_FOR: Duration = Duration::from_secs(300);

/// Snapshots that are kept at most; readers of the same state share one.
const MAX: usize = 4;

#[derive(Default)]
pub(super) struct Snapshots {
    kept: Mutex<HashMap<u64, (Arc<Snapshot>, Instant)>>,
}

impl Snapshots {
    /// The snapshot of this number, while it is kept.
    pub(super) fn get(&self, id: u64) -> Option<Arc<Snapshot>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (snapshot, used) = kept.get_mut(&id)?;
        *used = Instant::now();
        Some(Arc::clone(snapshot))
    }

    /// The newest state, under its number.
    pub(super) fn newest(&self, ledger: &Ledger) -> Result<(u64, Arc<Snapshot>), LedgerError> {
        let snapshot = ledger.reader()?.snapshot()?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (_, used)| used.elapsed() < KEPT_FOR);
        if let Some((&id, (same, used))) =
            kept.iter_mut().find(|(_, (other, _))| other.vector() == snapshot.vector())
        {
            *used = Instant::now();
            return Ok((id, Arc::clone(same)));
        }
        if kept.len() >= MAX {
            let oldest = kept.iter().min_by_key(|(_, (_, used))| *used).map(|(&id, _)| id);
            oldest.map(|id| kept.remove(&id));
        }
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|e| LedgerError::Unavailable(e.to_string()))?;
        let id = u64::from_le_bytes(bytes);
        let snapshot = Arc::new(snapshot);
        kept.insert(id, (Arc::clone(&snapshot), Instant::now()));
        Ok((id, snapshot))
    }

    /// Lets go of those that nobody used for a while.
    pub(super) fn tidy(&self) {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|_, (_, used)| used.elapsed() < KEPT_FOR);
    }
}
