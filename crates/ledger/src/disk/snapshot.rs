// SPDX-License-Identifier: GPL-3.0-or-later
//! A snapshot: the cells of the last checkpoint as rows, read beside the writer.

use crate::disk::errors::unavailable;
use crate::disk::layers::LayerRow;
use crate::disk::rows::{ChunkKey, LayerKey, Record, SliceKey, chunk_key, size_and_slice, slice_key, unseal};
use crate::disk::schema::{Cells, LAYERS, LOCAL, MERGED, META, VECTOR};
use crate::errors::LedgerError;
use bulkmark_counts::history::row::Row;
use bulkmark_counts::history::vector::{Origin, Vector};
use bulkmark_counts::history::window::Window;
use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTableMetadata as _, TableDefinition,
};
use std::sync::{Arc, Weak};

/// All cells at a checkpoint, and of what they are.
pub struct Snapshot {
    txn: ReadTransaction,
    vector: Vector,
    /// Only to see whether it is open.
    db: Weak<Database>,
}

impl Snapshot {
    /// The cells as of the last checkpoint.
    pub(crate) fn of(db: &Arc<Database>) -> Result<Self, LedgerError> {
        let txn = db.begin_read().map_err(unavailable)?;
        let meta = txn.open_table(META).map_err(unavailable)?;
        let vector = match meta.get(VECTOR).map_err(unavailable)? {
            None => Vector::new(),
            Some(row) => unseal("meta", VECTOR.as_bytes(), row.value())
                .ok()
                .and_then(|row| std::str::from_utf8(row).ok()?.parse().ok())
                .ok_or_else(|| LedgerError::Unavailable("its version vector is damaged".to_owned()))?,
        };
        Ok(Self { txn, vector, db: Arc::downgrade(db) })
    }

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
            let record =
                unseal(slices_name, &slice_key(window, of.2), record.value()).and_then(Record::decode)?;
            let bytes = unseal(cells_name, &chunk_key(window, number, chunk), value.value())?;
            let bytes = bytes.to_vec();
            let (_, slice) = size_and_slice(number);
            rows.push(Row { window, capacity: record.capacity, slice, chunk, client: None, bytes });
        }
        Ok(())
    }
}
