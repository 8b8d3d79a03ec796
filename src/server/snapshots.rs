// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots that are being fetched: each stays unchanged, so that a reader can continue after an interruption.

use bulkmark_ledger::{Ledger, LedgerError, Snapshot, random_bytes};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a snapshot is kept after its last use. Until then, the file cannot reuse its space.
const KEPT_FOR: Duration = Duration::from_secs(300);

/// Maximum of snapshots; readers of the same state share one.
const MAX: usize = 4;

#[derive(Default)]
pub(super) struct Snapshots {
    kept: Mutex<HashMap<u64, (Arc<Snapshot>, Instant)>>,
}

impl Snapshots {
    /// Returns the snapshot with this id, if it is kept.
    pub(super) fn get(&self, id: u64) -> Option<Arc<Snapshot>> {
        let mut kept = self.kept.lock();
        let (snapshot, used) = kept.get_mut(&id).filter(|(snapshot, _)| snapshot.is_open())?;
        *used = Instant::now();
        Some(Arc::clone(snapshot))
    }

    /// Returns a snapshot of the newest state, with its id.
    pub(super) fn newest(&self, ledger: &Ledger) -> Result<(u64, Arc<Snapshot>), LedgerError> {
        let snapshot = ledger.reader()?.snapshot()?;
        if let Some(same) = self.same(&snapshot) {
            return Ok(same);
        }
        let id = random_bytes().map(u64::from_le_bytes);
        let id = id.map_err(|e| LedgerError::Unavailable(e.to_string()))?;
        let snapshot = Arc::new(snapshot);
        let mut kept = self.kept.lock();
        if kept.len() >= MAX {
            let oldest = kept.iter().min_by_key(|(_, (_, used))| *used).map(|(&id, _)| id);
            oldest.map(|id| kept.remove(&id));
        }
        kept.insert(id, (Arc::clone(&snapshot), Instant::now()));
        Ok((id, snapshot))
    }

    /// Returns the kept snapshot of the same state, if there is one.
    fn same(&self, snapshot: &Snapshot) -> Option<(u64, Arc<Snapshot>)> {
        self.tidy();
        let mut kept = self.kept.lock();
        let (&id, (same, used)) =
            kept.iter_mut().find(|(_, (other, _))| other.vector() == snapshot.vector())?;
        *used = Instant::now();
        Some((id, Arc::clone(same)))
    }

    /// Drops snapshots that nobody used for a while, and those whose file was closed after a failure of its disk.
    pub(super) fn tidy(&self) {
        self.kept.lock().retain(|_, (snapshot, used)| used.elapsed() < KEPT_FOR && snapshot.is_open());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_counts::{Reporter, Role, Settings};
    use bulkmark_ledger::now;
    use bulkmark_types::{FederationKey, Signature};

    /// A ledger whose disk failed is closed and opened again; snapshots of the closed file are no longer handed out.
    #[tokio::test]
    async fn a_snapshot_of_a_closed_file_is_not_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        let (settings, key) = (Settings::default(), FederationKey::public());
        let open = || Ledger::open(directory.path(), Role::Server, &settings, &key).unwrap();
        let ledger = open();
        let reporter = Reporter { client: "mx".to_owned(), spool: 1 };
        let reports = vec![(Signature::from_bytes([7; 16]), 3)];
        ledger.take_batch(reporter, 1, reports, None, now()).await.unwrap().unwrap();
        ledger.close().await.unwrap();
        let (snapshots, ledger) = (Snapshots::default(), open());
        let (first, _) = snapshots.newest(&ledger).unwrap();
        assert_eq!(snapshots.newest(&ledger).unwrap().0, first, "readers of the same state share it");
        ledger.close().await.unwrap();
        let ledger = open();
        let (second, snapshot) = snapshots.newest(&ledger).unwrap();
        assert_eq!(snapshot.rows(0, 9).map(|rows| rows.len()), Ok(1));
        assert!(second != first && snapshots.get(first).is_none(), "the closed one is still kept");
        ledger.close().await.unwrap();
    }
}
