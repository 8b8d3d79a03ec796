// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots that are being fetched: each stays unchanged, so that a reader can continue after an interruption. Meanwhile the file grows
//! with every write, since it cannot reuse the space of what a snapshot shows; so it is dropped as soon as all its readers have all of it.

use super::limits::Principal;
use bulkmark_ledger::{Ledger, LedgerError, Snapshot, random_bytes};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a snapshot is kept after its last use, for readers that were interrupted.
const KEPT_FOR: Duration = Duration::from_secs(300);

/// How long a snapshot may be read at any speed. A reader that takes longer must take a megabyte a second on average: the file cannot reuse
/// space while somebody reads, so it would grow as long as a reader likes.
const LEISURE: Duration = Duration::from_mins(30);
const BYTES_A_SECOND: u64 = 1_000_000;

/// Maximum of snapshots; readers of the same state share one.
const MAX: usize = 4;

/// Readers of a snapshot that are known by name.
const MAX_READERS: usize = 1024;

/// Returns until when a reader that began at `began` must have taken so many bytes.
pub(super) fn deadline(began: Instant, bytes: u64) -> Instant {
    began + LEISURE + Duration::from_secs(bytes / BYTES_A_SECOND)
}

/// A snapshot that is kept.
struct Kept {
    snapshot: Arc<Snapshot>,
    made: Instant,
    used: Instant,
    /// The readers that began it and have not been sent its end.
    readers: HashSet<Principal>,
}

impl Kept {
    /// Whether readers may begin or continue to read it.
    fn is_good(&self) -> bool {
        self.used.elapsed() < KEPT_FOR && self.made.elapsed() < LEISURE && self.snapshot.is_open()
    }

    /// Notes a reader. Of very many the others may have to begin again after an interruption.
    fn begin(&mut self, reader: &Principal) {
        self.used = Instant::now();
        if self.readers.len() < MAX_READERS {
            self.readers.insert(reader.clone());
        }
    }
}

#[derive(Default)]
pub(super) struct Snapshots {
    kept: Mutex<HashMap<u64, Kept>>,
}

impl Snapshots {
    /// Returns the snapshot with this id, if it is kept.
    pub(super) fn get(&self, id: u64) -> Option<Arc<Snapshot>> {
        let mut kept = self.kept.lock();
        let found = kept.get_mut(&id).filter(|found| found.is_good())?;
        found.used = Instant::now();
        Some(Arc::clone(&found.snapshot))
    }

    /// Returns a snapshot of the newest state for a reader, with its id.
    pub(super) fn newest(
        &self,
        ledger: &Ledger,
        reader: &Principal,
    ) -> Result<(u64, Arc<Snapshot>), LedgerError> {
        let snapshot = ledger.reader()?.snapshot()?;
        if let Some(same) = self.same(&snapshot, reader) {
            return Ok(same);
        }
        let id = random_bytes().map(u64::from_le_bytes);
        let id = id.map_err(|e| LedgerError::Unavailable(e.to_string()))?;
        let snapshot = Arc::new(snapshot);
        let mut kept = self.kept.lock();
        if kept.len() >= MAX {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.used).map(|(&id, _)| id);
            oldest.map(|id| kept.remove(&id));
        }
        let (now, readers) = (Instant::now(), HashSet::from([reader.clone()]));
        kept.insert(id, Kept { snapshot: Arc::clone(&snapshot), made: now, used: now, readers });
        Ok((id, snapshot))
    }

    /// Returns the kept snapshot of the same state, if there is one.
    fn same(&self, snapshot: &Snapshot, reader: &Principal) -> Option<(u64, Arc<Snapshot>)> {
        self.tidy();
        let mut kept = self.kept.lock();
        let (&id, same) = kept.iter_mut().find(|(_, other)| other.snapshot.vector() == snapshot.vector())?;
        same.begin(reader);
        Some((id, Arc::clone(&same.snapshot)))
    }

    /// Drops a snapshot if this reader, which was sent its end, was the last one.
    pub(super) fn finished(&self, id: u64, reader: &Principal) {
        let mut kept = self.kept.lock();
        let Some(read) = kept.get_mut(&id) else { return };
        if read.readers.remove(reader) && read.readers.is_empty() {
            kept.remove(&id);
        }
    }

    /// Drops snapshots that nobody used for a while, old ones, and those whose file was closed after a failure of its disk.
    pub(super) fn tidy(&self) {
        self.kept.lock().retain(|_, kept| kept.is_good());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_counts::{Reporter, Role, Settings};
    use bulkmark_ledger::now;
    use bulkmark_types::{FederationKey, Signature};

    /// A snapshot is not held for longer, however often its reader continues.
    #[tokio::test]
    async fn nobody_holds_the_file_for_long() {
        let directory = tempfile::tempdir().unwrap();
        let key = FederationKey::public();
        let ledger = Ledger::open(directory.path(), Role::Server, &Settings::default(), &key).unwrap();
        let snapshots = Snapshots::default();
        let (id, _) = snapshots.newest(&ledger, &Principal::Here).unwrap();
        assert!(snapshots.get(id).is_some());
        snapshots.kept.lock().get_mut(&id).unwrap().made = Instant::now().checked_sub(LEISURE).unwrap();
        assert!(snapshots.get(id).is_none() && snapshots.newest(&ledger, &Principal::Here).unwrap().0 != id);
        let began = Instant::now();
        assert_eq!(deadline(began, 60_000_000), began + Duration::from_mins(31));
        ledger.close().await.unwrap();
    }

    /// As soon as its last reader has it, nothing holds the file; one that was interrupted can continue all the same.
    #[tokio::test]
    async fn a_snapshot_is_dropped_when_all_have_it() {
        let directory = tempfile::tempdir().unwrap();
        let key = FederationKey::public();
        let ledger = Ledger::open(directory.path(), Role::Server, &Settings::default(), &key).unwrap();
        let snapshots = Snapshots::default();
        let [one, other, third] = ["one", "other", "third"].map(|name| Principal::Client(name.into()));
        let (id, snapshot) = snapshots.newest(&ledger, &one).unwrap();
        assert_eq!(snapshots.newest(&ledger, &other).unwrap().0, id, "readers of the same state share it");
        for not_all in [&one, &one, &third] {
            snapshots.finished(id, not_all);
            assert!(snapshots.get(id).is_some(), "the other reader has not all of it");
        }
        snapshots.finished(id, &other);
        assert!(snapshots.get(id).is_none());
        assert_eq!(Arc::strong_count(&snapshot), 1, "somebody holds the file");
        drop(snapshot);
        ledger.close().await.unwrap();
    }

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
        let (first, _) = snapshots.newest(&ledger, &Principal::Here).unwrap();
        ledger.close().await.unwrap();
        let ledger = open();
        let (second, snapshot) = snapshots.newest(&ledger, &Principal::Here).unwrap();
        assert_eq!(snapshot.rows(0, 9).map(|rows| rows.len()), Ok(1));
        assert!(second != first && snapshots.get(first).is_none(), "the closed one is still kept");
        ledger.close().await.unwrap();
    }
}
