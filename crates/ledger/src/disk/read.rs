// SPDX-License-Identifier: GPL-3.0-or-later
//! Reading what is on disk, beside the writer: updates for those who follow, and snapshots.

use crate::disk::backup;
use crate::disk::errors::Fault;
use crate::disk::layers::LayerRow;
use crate::disk::rows::{ChunkKey, LayerKey, Record, SliceKey, chunk_key, size_and_slice, slice_key, unseal};
use crate::disk::schema::{Cells, LAYERS, LOCAL, MERGED, META, UPDATES, VECTOR};
use crate::errors::LedgerError;
use bulkmark_counts::history::refusal::Refusal;
use bulkmark_counts::history::row::Row;
use bulkmark_counts::history::vector::{Chain, Origin, Vector};
use bulkmark_counts::history::window::Window;
use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTableMetadata as _, TableDefinition,
};
use std::sync::{Arc, Weak};

/// Reads the file as it was at a commit.
pub struct Reader {
    pub(crate) db: Arc<Database>,
    /// Those of the own counts.
    own: Arc<Vec<Origin>>,
}

/// Why a holder cannot be served with updates.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Behind {
    /// Those that it lacks are not kept any more.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

pub(crate) fn unavailable(error: impl Into<redb::Error>) -> LedgerError {
    LedgerError::Unavailable(error.into().to_string())
}

impl Reader {
    pub(crate) const fn new(db: Arc<Database>, own: Arc<Vec<Origin>>) -> Self {
        Self { db, own }
    }

    /// The updates that a holder of `theirs` lacks of what `ours` knows, oldest first for each origin, about `limit`
    /// bytes of them.
    ///
    /// # Errors
    /// When some of them are no longer kept, or the holder knows another history.
    pub fn updates(&self, ours: &Vector, theirs: &Vector, limit: usize) -> Result<Vec<Arc<[u8]>>, Behind> {
        let txn = self.db.begin_read().map_err(unavailable)?;
        let table = txn.open_table(UPDATES).map_err(unavailable)?;
        let (mut updates, mut bytes) = (Vec::new(), 0);
        // Before anything else, for what is missing is of no use to whoever knows another history.
        for (origin, mark) in ours.iter() {
            let known = theirs.get(origin);
            // Nobody can know more of what is counted here, unless it was forgotten here.
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

    /// Gives all of the ledger as it is at this moment, in pieces, for a [`Backup`](crate::Backup), until `take` wants no
    /// more. Meanwhile the file grows by what is written, and no more.
    ///
    /// # Errors
    /// When the disk failed or a row is damaged.
    pub fn backup(&self, mut take: impl FnMut(&[u8]) -> bool) -> Result<(), LedgerError> {
        backup::dump(&self.db, &mut take).map(drop).map_err(fault)
    }

    /// The cells as of the last checkpoint, as one state that stays while it is held.
    ///
    /// # Errors
    /// When the disk failed.
    pub fn snapshot(&self) -> Result<Snapshot, LedgerError> {
        let txn = self.db.begin_read().map_err(unavailable)?;
        let meta = txn.open_table(META).map_err(unavailable)?;
        let vector = match meta.get(VECTOR).map_err(unavailable)? {
            None => Vector::new(),
            Some(row) => unseal("meta", VECTOR.as_bytes(), row.value())
                .ok()
                .and_then(|row| std::str::from_utf8(row).ok()?.parse().ok())
                .ok_or_else(|| LedgerError::Unavailable("its version vector is damaged".to_owned()))?,
        };
        Ok(Snapshot { txn, vector, db: Arc::downgrade(&self.db) })
    }
}

/// An update without what it is kept with.
pub(crate) fn unsealed(origin: Origin, version: u64, row: &[u8]) -> Result<&[u8], LedgerError> {
    let key = [origin.0.to_le_bytes(), version.to_le_bytes()].concat();
    let value = unseal("updates", &key, row).map_err(fault)?;
    value.get(8..).ok_or_else(|| LedgerError::Unavailable("an update is too short".to_owned()))
}

pub(crate) fn fault(fault: Fault) -> LedgerError {
    fault.into()
}

/// The hash of the update before, which an update names.
pub(crate) fn before(update: &[u8]) -> Option<Chain> {
    update.get(16..32).and_then(|chain| chain.try_into().ok()).map(Chain)
}

/// All cells at a checkpoint, and of what they are.
pub struct Snapshot {
    txn: ReadTransaction,
    vector: Vector,
    /// Only to see whether it is open.
    db: Weak<Database>,
}

impl Snapshot {
    /// Whether the file is still open: it is closed when its disk failed. Then only such rows can be read as are in memory by
    /// chance.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.db.strong_count() > 0
    }

    /// How far each origin is in it.
    #[must_use]
    pub const fn vector(&self) -> &Vector {
        &self.vector
    }

    /// The rows from number `from` on, `most` of them; fewer at the end only.
    ///
    /// # Errors
    /// When the disk failed or a row is damaged.
    pub fn rows(&self, from: u64, most: usize) -> Result<Vec<Row>, LedgerError> {
        let mut rows = Vec::new();
        let mut skip = from;
        for tables in [&LOCAL, &MERGED] {
            self.rows_of(tables, &mut skip, most, &mut rows)?;
        }
        self.rows_of_clients(&mut skip, most, &mut rows)?;
        Ok(rows)
    }

    /// The number of rows.
    ///
    /// # Errors
    /// When the disk failed.
    pub fn count_rows(&self) -> Result<u64, LedgerError> {
        let len = |table: Option<ReadOnlyTable<ChunkKey, &'static [u8]>>| {
            table.map_or(Ok(0), |table| table.len().map_err(unavailable))
        };
        let layers = self.table(LAYERS)?.map_or(Ok(0), |table| table.len().map_err(unavailable))?;
        Ok(len(self.table(LOCAL.cells)?)? + len(self.table(MERGED.cells)?)? + layers)
    }

    /// None when nothing was ever written to it.
    fn table<K: redb::Key + 'static>(
        &self,
        table: TableDefinition<'static, K, &'static [u8]>,
    ) -> Result<Option<ReadOnlyTable<K, &'static [u8]>>, LedgerError> {
        match self.txn.open_table(table) {
            Ok(table) => Ok(Some(table)),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            Err(e) => Err(unavailable(e)),
        }
    }

    fn rows_of_clients(&self, skip: &mut u64, most: usize, rows: &mut Vec<Row>) -> Result<(), LedgerError> {
        let Some(layers) = self.table(LAYERS)? else { return Ok(()) };
        for row in layers.range::<LayerKey>(..).map_err(unavailable)? {
            if rows.len() >= most {
                return Ok(());
            }
            let (key, value) = row.map_err(unavailable)?;
            if *skip > 0 {
                *skip -= 1;
                continue;
            }
            let key = key.value();
            let LayerRow { capacity, bytes, .. } = LayerRow::decode(key, value.value()).map_err(fault)?;
            let (origin, start, length, chunk) = key;
            rows.push(Row {
                window: Window::from((start, length)),
                capacity,
                slice: 0,
                chunk,
                client: Some(Origin(origin)),
                bytes: bytes.to_vec(),
            });
        }
        Ok(())
    }

    fn rows_of(
        &self,
        tables: &Cells,
        skip: &mut u64,
        most: usize,
        rows: &mut Vec<Row>,
    ) -> Result<(), LedgerError> {
        let (Some(slices), Some(cells)) = (self.table(tables.slices)?, self.table(tables.cells)?) else {
            return Ok(());
        };
        let [slices_name, cells_name] = tables.names;
        for row in cells.range::<ChunkKey>(..).map_err(unavailable)? {
            if rows.len() >= most {
                return Ok(());
            }
            let (key, value) = row.map_err(unavailable)?;
            if *skip > 0 {
                *skip -= 1;
                continue;
            }
            let (start, length, number, chunk) = key.value();
            let window = Window::from((start, length));
            // All records of merged slices have the capacity of the first one; of others only that itself.
            let of: SliceKey = (start, length, if slices_name == LOCAL.names[0] { 0 } else { number });
            let record = slices.get(of).map_err(unavailable)?;
            let record =
                record.ok_or_else(|| LedgerError::Unavailable("a slice has no record".to_owned()))?;
            let record = unseal(slices_name, &slice_key(window, of.2), record.value())
                .and_then(Record::decode)
                .map_err(fault)?;
            let bytes =
                unseal(cells_name, &chunk_key(window, number, chunk), value.value()).map_err(fault)?;
            let bytes = bytes.to_vec();
            let (_, slice) = size_and_slice(number);
            rows.push(Row { window, capacity: record.capacity, slice, chunk, client: None, bytes });
        }
        Ok(())
    }
}
