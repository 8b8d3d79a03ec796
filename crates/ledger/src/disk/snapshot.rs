// SPDX-License-Identifier: GPL-3.0-or-later
//! A snapshot: the cells of the last checkpoint as rows, read beside the writer.

use crate::disk::errors::unavailable;
use crate::disk::fleet_snapshot::behind;
use crate::disk::layers::LayerRow;
use crate::disk::rows::{ChunkKey, LayerKey, Record, SliceKey, chunk_key, size_and_slice, slice_key, unseal};
use crate::disk::schema::{Cells, LAYERS, LOCAL, MERGED, META, VECTOR};
use crate::errors::LedgerError;
use bulkmark_counts::history::row::Row;
use bulkmark_counts::history::vector::{Origin, Vector};
use bulkmark_counts::history::window::Window;
use parking_lot::Mutex;
use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTableMetadata as _, TableDefinition,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// All cells at a checkpoint, with their windows and clients.
pub struct Snapshot {
    txn: ReadTransaction,
    vector: Vector,
    /// To check whether the file is open.
    db: Weak<Database>,
    /// Where earlier readings ended, by number of the row.
    ends: Mutex<BTreeMap<u64, After>>,
    #[cfg(test)]
    read: std::sync::atomic::AtomicU64,
}

/// The row after which a reading continues; `None`: begin with the first.
#[derive(Clone, Copy)]
enum After {
    Local(Option<ChunkKey>),
    Merged(Option<ChunkKey>),
    Clients(Option<LayerKey>),
}

/// The rows that a reading returns, and how many it passed in front of them.
struct Wanted {
    from: u64,
    passed: u64,
    most: usize,
}

/// Of rows that are passed, each one with a multiple of this number is noted.
const NOTED: u64 = 64;

impl Snapshot {
    /// Returns the cells as of the last checkpoint.
    pub(crate) fn of(db: &Arc<Database>) -> Result<Self, LedgerError> {
        let txn = db.begin_read().map_err(unavailable)?;
        let meta = txn.open_table(META).map_err(unavailable)?;
        let vector = match meta.get(VECTOR).map_err(unavailable)? {
            None => Vector::new(),
            Some(row) => unseal("meta", VECTOR.as_bytes(), row.value())
                .ok()
                .and_then(|row| Vector::from_own(std::str::from_utf8(row).ok()?).ok())
                .ok_or_else(|| LedgerError::Unavailable("its version vector is damaged".to_owned()))?,
        };
        let (db, ends) = (Arc::downgrade(db), Mutex::default());
        Ok(Self {
            txn,
            vector,
            db,
            ends,
            #[cfg(test)]
            read: std::sync::atomic::AtomicU64::default(),
        })
    }

    /// Whether the file is still open: it is closed when its disk fails. Then only rows that happen to be in memory can be read.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.db.strong_count() > 0
    }

    /// Returns the version of each origin in the snapshot.
    #[must_use]
    pub const fn vector(&self) -> &Vector {
        &self.vector
    }

    /// Returns the rows from number `from` on, at most `most`; fewer only at the end. The end of each reading is noted, so that a reader
    /// that continues there reads no row twice; of rows that are skipped each 64th is noted, so that a reading anywhere skips each row once.
    ///
    /// # Errors
    /// If the disk failed or a row is damaged.
    pub fn rows(&self, from: u64, most: usize) -> Result<Vec<Row>, LedgerError> {
        let known = self.ends.lock().range(..=from).next_back().map(|(&number, after)| (number, *after));
        let (number, mut after) = known.unwrap_or((0, After::Local(None)));
        let (mut rows, mut wanted) = (Vec::new(), Wanted { from, passed: number, most });
        loop {
            after = match after {
                After::Local(last) => match self.rows_of(&LOCAL, last, &mut wanted, &mut rows)? {
                    None => After::Merged(None),
                    last => After::Local(last),
                },
                After::Merged(last) => match self.rows_of(&MERGED, last, &mut wanted, &mut rows)? {
                    None => After::Clients(None),
                    last => After::Merged(last),
                },
                After::Clients(last) => match self.rows_of_clients(last, &mut wanted, &mut rows)? {
                    None => return Ok(rows),
                    last => After::Clients(last),
                },
            };
            if rows.len() >= most {
                self.ends.lock().insert(from + rows.len() as u64, after);
                return Ok(rows);
            }
        }
    }

    /// Returns the number of rows.
    ///
    /// # Errors
    /// If the disk failed.
    pub fn count_rows(&self) -> Result<u64, LedgerError> {
        let len = |table: Option<ReadOnlyTable<ChunkKey, &'static [u8]>>| {
            table.map_or(Ok(0), |table| table.len().map_err(unavailable))
        };
        let layers = self.table(LAYERS)?.map_or(Ok(0), |table| table.len().map_err(unavailable))?;
        Ok(len(self.table(LOCAL.cells)?)? + len(self.table(MERGED.cells)?)? + layers)
    }

    /// Returns `None` if nothing was ever written to the table.
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

    /// Reads some rows after this one. Returns the last of them if there may be more.
    fn rows_of_clients(
        &self,
        last: Option<LayerKey>,
        wanted: &mut Wanted,
        rows: &mut Vec<Row>,
    ) -> Result<Option<LayerKey>, LedgerError> {
        let Some(layers) = self.table(LAYERS)? else { return Ok(None) };
        for row in layers.range::<LayerKey>(behind(last)).map_err(unavailable)? {
            let (key, value) = row.map_err(unavailable)?;
            self.count_read();
            let key = key.value();
            if self.passes(wanted, After::Clients(Some(key))) {
                continue;
            }
            let LayerRow { capacity, bytes, .. } = LayerRow::decode(key, value.value())?;
            let (origin, start, length, chunk) = key;
            rows.push(Row {
                window: Window::from((start, length)),
                capacity,
                slice: 0,
                chunk,
                client: Some(Origin(origin)),
                bytes: bytes.to_vec(),
            });
            if rows.len() >= wanted.most {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Reads some rows after this one. Returns the last of them if there may be more.
    fn rows_of(
        &self,
        tables: &Cells,
        last: Option<ChunkKey>,
        wanted: &mut Wanted,
        rows: &mut Vec<Row>,
    ) -> Result<Option<ChunkKey>, LedgerError> {
        let (Some(slices), Some(cells)) = (self.table(tables.slices)?, self.table(tables.cells)?) else {
            return Ok(None);
        };
        let [slices_name, cells_name] = tables.names;
        let is_local = slices_name == LOCAL.names[0];
        for row in cells.range::<ChunkKey>(behind(last)).map_err(unavailable)? {
            let (key, value) = row.map_err(unavailable)?;
            self.count_read();
            let key = key.value();
            if self.passes(wanted, if is_local { After::Local(Some(key)) } else { After::Merged(Some(key)) })
            {
                continue;
            }
            let (start, length, number, chunk) = key;
            let window = Window::from((start, length));
            // The records of all merged slices have the capacity of the first one; the records of other slices have their own.
            let of: SliceKey = (start, length, if is_local { 0 } else { number });
            let record = slices.get(of).map_err(unavailable)?;
            let record =
                record.ok_or_else(|| LedgerError::Unavailable("a slice has no record".to_owned()))?;
            let record =
                unseal(slices_name, &slice_key(window, of.2), record.value()).and_then(Record::decode)?;
            let bytes = unseal(cells_name, &chunk_key(window, number, chunk), value.value())?;
            let bytes = bytes.to_vec();
            let (_, slice) = size_and_slice(number);
            rows.push(Row { window, capacity: record.capacity, slice, chunk, client: None, bytes });
            if rows.len() >= wanted.most {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Whether this row is in front of the wanted ones.
    fn passes(&self, wanted: &mut Wanted, row: After) -> bool {
        if wanted.passed == wanted.from {
            return false;
        }
        wanted.passed += 1;
        if wanted.passed.is_multiple_of(NOTED) {
            self.ends.lock().insert(wanted.passed, row);
        }
        true
    }

    /// Counts the rows that were read or passed, for tests.
    fn count_read(&self) {
        #[cfg(test)]
        self.read.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::NOTED;
    use crate::Ledger;
    use bulkmark_counts::settings::{Role, Settings};
    use bulkmark_counts::state::receipts::Reporter;
    use bulkmark_types::{FederationKey, Signature};
    use std::sync::atomic::Ordering;

    /// Reading a snapshot in portions reads each row once; a reader that continues elsewhere reads the rows in between.
    #[tokio::test]
    async fn a_row_is_read_once() {
        let directory = tempfile::tempdir().unwrap();
        let (settings, now) = (Settings::default(), 1_790_000_000);
        let ledger =
            Ledger::open(directory.path(), Role::Server, &settings, &FederationKey::public()).unwrap();
        let signature = |n: u64| {
            let mixed = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            Signature::from_bytes((mixed ^ mixed >> 61).to_le_bytes())
        };
        let reporter = Reporter { client: "mx".to_owned(), spool: 1 };
        let reports = (0..8192).map(|n| (signature(n), 1)).collect();
        ledger.take_batch(reporter, 1, reports, None, now).await.unwrap().unwrap();
        ledger.close().await.unwrap();
        let ledger =
            Ledger::open(directory.path(), Role::Server, &settings, &FederationKey::public()).unwrap();
        let snapshot = ledger.reader().unwrap().snapshot().unwrap();
        let all = snapshot.count_rows().unwrap();
        assert!(all > 50, "{all} rows");
        let whole = snapshot.rows(0, usize::MAX).unwrap();
        snapshot.read.store(0, Ordering::Relaxed);
        let mut rows = Vec::new();
        while rows.len() < whole.len() {
            rows.extend(snapshot.rows(rows.len() as u64, 8).unwrap());
        }
        assert_eq!(rows, whole);
        let read = snapshot.read.load(Ordering::Relaxed);
        assert!(read <= all, "{read} rows were read for {all}");
        assert_eq!(snapshot.rows(13, 2).unwrap(), whole[13..15]);
        assert!(snapshot.read.load(Ordering::Relaxed) <= read + 8);
        // A reader from the end backwards passes at most 63 rows for each that it reads.
        let snapshot = ledger.reader().unwrap().snapshot().unwrap();
        for from in (0..whole.len()).rev() {
            assert_eq!(snapshot.rows(from as u64, 1).unwrap(), whole[from..=from]);
        }
        let read = snapshot.read.load(Ordering::Relaxed);
        assert!(read <= all * (1 + NOTED / 2 + 1), "{read} rows were read for {all}");
        ledger.close().await.unwrap();
    }
}
