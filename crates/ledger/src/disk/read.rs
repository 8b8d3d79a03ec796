// SPDX-License-Identifier: GPL-3.0-or-later
//! Reads data on disk beside the writer: updates for the ledgers that follow this one.

use crate::disk::backup;
use crate::disk::errors::unavailable;
use crate::disk::rows::unseal;
use crate::disk::schema::UPDATES;
use crate::disk::snapshot::Snapshot;
use crate::errors::LedgerError;
use bulkmark_counts::history::refusal::Refusal;
use bulkmark_counts::history::vector::{Chain, Origin, Vector};
use redb::{Database, ReadableDatabase};
use std::sync::Arc;

/// A reader of the file as of one commit.
pub struct Reader {
    pub(crate) db: Arc<Database>,
    /// The origins of the own counts.
    own: Arc<Vec<Origin>>,
}

/// The reason why a holder cannot be served with updates.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Behind {
    /// The updates that it lacks are no longer kept, or it has another history.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Reader {
    pub(crate) const fn new(db: Arc<Database>, own: Arc<Vec<Origin>>) -> Self {
        Self { db, own }
    }

    /// Returns the updates of `ours` that a holder at `theirs` lacks, oldest first for each origin, about `limit` bytes of them.
    ///
    /// # Errors
    /// If some of them are no longer kept, or the holder has another history.
    pub fn updates(&self, ours: &Vector, theirs: &Vector, limit: usize) -> Result<Vec<Arc<[u8]>>, Behind> {
        let txn = self.db.begin_read().map_err(unavailable)?;
        let table = txn.open_table(UPDATES).map_err(unavailable)?;
        let (mut updates, mut bytes) = (Vec::new(), 0);
        // This comes first: missing updates are useless to a holder with another history.
        for (origin, mark) in ours.iter() {
            let known = theirs.get(origin);
            // Nobody can have later versions of the own counts, unless this ledger lost them.
            let ahead = self.own.contains(&origin) && known.version > mark.version;
            if ahead || known.version == mark.version && known.chain != mark.chain {
                return Err(Refusal::Fork { origin, version: mark.version }.into());
            }
        }
        for (origin, mark) in ours.iter() {
            let known = theirs.get(origin);
            let mut next = known.version + 1;
            for row in
                table.range((origin.0, next)..=(origin.0, mark.version.max(next))).map_err(unavailable)?
            {
                let (key, value) = row.map_err(unavailable)?;
                let (_, version) = key.value();
                if version > mark.version || bytes >= limit {
                    break;
                }
                let update = unsealed(origin, version, value.value())?;
                if version != next {
                    return Err(Refusal::Gap { origin, have: known.version, version }.into());
                }
                if next == known.version + 1 && before(update) != Some(known.chain) {
                    return Err(Refusal::Fork { origin, version }.into());
                }
                bytes += update.len();
                updates.push(update.into());
                next += 1;
            }
            if next == known.version + 1 && known.version < mark.version && bytes < limit {
                return Err(Refusal::Gap { origin, have: known.version, version: mark.version }.into());
            }
        }
        Ok(updates)
    }

    /// Passes all of the ledger as of now, in pieces for a [`Backup`](crate::Backup), to `take`, until that returns false. Meanwhile
    /// the file grows, but only by new writes.
    ///
    /// # Errors
    /// If the disk failed or a row is damaged.
    pub fn backup(&self, mut take: impl FnMut(&[u8]) -> bool) -> Result<(), LedgerError> {
        backup::dump(&self.db, &mut take).map(drop).map_err(LedgerError::from)
    }

    /// Returns the cells as of the last checkpoint, a state that does not change while it is held.
    ///
    /// # Errors
    /// If the disk failed.
    pub fn snapshot(&self) -> Result<Snapshot, LedgerError> {
        Snapshot::of(&self.db)
    }
}

/// Extracts an update from its row.
pub(crate) fn unsealed(origin: Origin, version: u64, row: &[u8]) -> Result<&[u8], LedgerError> {
    let key = [origin.0.to_le_bytes(), version.to_le_bytes()].concat();
    let value = unseal("updates", &key, row)?;
    value.get(8..).ok_or_else(|| LedgerError::Unavailable("an update is too short".to_owned()))
}

/// Returns the hash of the update before, which an update contains.
pub(crate) fn before(update: &[u8]) -> Option<Chain> {
    update.get(16..32).and_then(|chain| chain.try_into().ok()).map(Chain)
}
