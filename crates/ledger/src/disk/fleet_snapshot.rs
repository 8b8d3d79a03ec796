// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's snapshot, read from disk beside the writer: the marks and the list of bulk of the last checkpoint, for members that keep
//! no cells; then the merged cells and the layers.

use crate::disk::bulk::section_of;
use crate::disk::chain;
use crate::disk::errors::{Fault, damaged};
use crate::disk::layers::LayerRow;
use crate::disk::rows::{ChunkKey, LayerKey, Record, SliceKey, chunk_key, size_and_slice, slice_key, unseal};
use crate::disk::schema::{BULK, FLEET, LAYERS, MARKS, MERGED, META, VECTOR};
use crate::errors::LedgerError;
use bulkmark_counts::history::fleet_mark::FleetMark;
use bulkmark_counts::history::row::Row;
use bulkmark_counts::history::vector::{Origin, Vector};
use bulkmark_counts::history::window::Window;
use bulkmark_counts::state::fleet::fold::Fleet;
use bulkmark_counts::state::fleet::parts::{Entry, Head, Packer};
use redb::{Database, Key, ReadOnlyTable, ReadTransaction, ReadableDatabase, TableDefinition};
use std::ops::Bound;

/// The approximate size in bytes of the rows that are read at a time.
const AT_A_TIME: usize = 1 << 20;

/// The rows to read next: those after this key, or all.
enum Next {
    Head(Box<Head>),
    Marks(Option<(String, u64)>),
    Bulk(Option<SliceKey>),
    Cells(Option<ChunkKey>),
    Layers(Option<LayerKey>),
    End,
    Nothing,
}

/// The parts of a snapshot, in order. They show one state, however long reading takes; meanwhile the file grows by new writes.
pub struct FleetSnapshot {
    txn: ReadTransaction,
    mark: FleetMark,
    /// The count from which bulk is listed.
    bound: u32,
    sections: u64,
    next: Next,
    packer: Packer,
    rows: u64,
    marks: u64,
}

/// Returns the range of all keys after this one, or of all keys.
pub(crate) fn behind<K>(key: Option<K>) -> (Bound<K>, Bound<K>) {
    (key.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

impl FleetSnapshot {
    /// Begins the snapshot of the last checkpoint; `None` if that is before the first step.
    pub(crate) fn new(db: &Database, key_id: u64, window: u64) -> Result<Option<Self>, Fault> {
        let txn = db.begin_read()?;
        let meta = txn.open_table(META)?;
        let text = |name: &str| -> Result<Option<Vec<u8>>, Fault> {
            let Some(row) = meta.get(name)? else { return Ok(None) };
            Ok(Some(unseal("meta", name.as_bytes(), row.value())?.to_vec()))
        };
        let Some(row) = text(FLEET)? else { return Ok(None) };
        let (Fleet { mark, origin, time, bound, .. }, _) = chain::decode(&row)?;
        let vector = match text(VECTOR)? {
            None => Vector::new(),
            Some(row) => Vector::from_own(&String::from_utf8_lossy(&row))
                .map_err(|e| damaged(format!("its version vector: {e}")))?,
        };
        let head = Head { mark, origin, time, key_id, window, vector };
        let snapshot = Self {
            txn,
            mark,
            bound,
            sections: 0,
            next: Next::Head(Box::new(head)),
            packer: Packer::default(),
            rows: 0,
            marks: 0,
        };
        Ok((mark.version > 0).then_some(snapshot))
    }

    /// Returns the position of the chain in the snapshot.
    #[must_use]
    pub const fn mark(&self) -> FleetMark {
        self.mark
    }

    /// Returns `None` if nothing was ever written to the table.
    fn table<K: Key + 'static>(
        &self,
        table: TableDefinition<'static, K, &'static [u8]>,
    ) -> Result<Option<ReadOnlyTable<K, &'static [u8]>>, Fault> {
        match self.txn.open_table(table) {
            Ok(table) => Ok(Some(table)),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Reads the next rows.
    fn read(&mut self) -> Result<(), Fault> {
        self.next = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Head(head) => {
                self.packer.push(&Entry::Head(*head));
                Next::Marks(None)
            }
            Next::Marks(last) => {
                self.read_marks(last.as_ref())?.map_or(Next::Bulk(None), |key| Next::Marks(Some(key)))
            }
            Next::Bulk(last) => match self.read_bulk(last)? {
                Some(key) => Next::Bulk(Some(key)),
                None => {
                    let Self { marks, sections, bound, .. } = *self;
                    self.packer.push(&Entry::Partial { marks, sections, bound });
                    Next::Cells(None)
                }
            },
            Next::Cells(last) => {
                self.read_cells(last)?.map_or(Next::Layers(None), |key| Next::Cells(Some(key)))
            }
            Next::Layers(last) => self.read_layers(last)?.map_or(Next::End, |key| Next::Layers(Some(key))),
            Next::End => {
                self.packer.push(&Entry::End { rows: self.rows, marks: self.marks });
                Next::Nothing
            }
            Next::Nothing => Next::Nothing,
        };
        Ok(())
    }

    /// Reads some rows after this one. Returns the last of them; `None` if there are no more.
    fn read_cells(&mut self, last: Option<ChunkKey>) -> Result<Option<ChunkKey>, Fault> {
        let (Some(slices), Some(cells)) = (self.table(MERGED.slices)?, self.table(MERGED.cells)?) else {
            return Ok(None);
        };
        let [slices_name, cells_name] = MERGED.names;
        let mut bytes = 0;
        for row in cells.range::<ChunkKey>(behind(last))? {
            let (key, value) = row?;
            let key = key.value();
            let (start, length, number, chunk) = key;
            let window = Window::from((start, length));
            let record =
                slices.get((start, length, number))?.ok_or_else(|| damaged("a slice has no record"))?;
            let record = Record::decode(unseal(slices_name, &slice_key(window, number), record.value())?)?;
            let cells = unseal(cells_name, &chunk_key(window, number, chunk), value.value())?.to_vec();
            let (_, slice) = size_and_slice(number);
            bytes += cells.len();
            let row = Row { window, capacity: record.capacity, slice, chunk, client: None, bytes: cells };
            self.packer.push(&Entry::Row(row));
            self.rows += 1;
            if bytes >= AT_A_TIME {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    fn read_bulk(&mut self, last: Option<SliceKey>) -> Result<Option<SliceKey>, Fault> {
        let Some(bulk) = self.table(BULK)?.filter(|_| self.bound > 0) else { return Ok(None) };
        let mut read = 0;
        for row in bulk.range::<SliceKey>(behind(last))? {
            let (key, value) = row?;
            read += value.value().len();
            self.packer.push(&Entry::Bulk(section_of(key.value(), value.value())?));
            self.sections += 1;
            if read >= AT_A_TIME {
                return Ok(Some(key.value()));
            }
        }
        Ok(None)
    }

    fn read_layers(&mut self, last: Option<LayerKey>) -> Result<Option<LayerKey>, Fault> {
        let Some(layers) = self.table(LAYERS)? else { return Ok(None) };
        let mut read = 0;
        for row in layers.range::<LayerKey>(behind(last))? {
            let (key, value) = row?;
            let key = key.value();
            let (origin, start, length, chunk) = key;
            let LayerRow { capacity, bytes, .. } = LayerRow::decode(key, value.value())?;
            read += bytes.len();
            let (window, client) = (Window::from((start, length)), Some(Origin(origin)));
            let row = Row { window, capacity, slice: 0, chunk, client, bytes: bytes.to_vec() };
            self.packer.push(&Entry::Row(row));
            self.rows += 1;
            if read >= AT_A_TIME {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    fn read_marks(&mut self, last: Option<&(String, u64)>) -> Result<Option<(String, u64)>, Fault> {
        let Some(marks) = self.table(MARKS)? else { return Ok(None) };
        let mut read = 0;
        let last = last.map(|(client, spool)| (client.as_str(), *spool));
        for row in marks.range::<(&str, u64)>(behind(last))? {
            let (key, value) = row?;
            let (client, spool) = key.value();
            read += value.value().len();
            let known = chain::decode_mark(client, spool, value.value())?;
            self.packer.push(&Entry::Mark { client: client.to_owned(), spool, known });
            self.marks += 1;
            if read >= AT_A_TIME {
                return Ok(Some((client.to_owned(), spool)));
            }
        }
        Ok(None)
    }
}

impl Iterator for FleetSnapshot {
    type Item = Result<Vec<u8>, LedgerError>;

    /// Returns the next part. After an error of the disk, the parts before it are useless.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let last = matches!(self.next, Next::Nothing);
            if let Some(part) = self.packer.take(last) {
                return Some(Ok(part));
            }
            if last {
                return None;
            }
            if let Err(fault) = self.read() {
                // The parts stop before the last one, so that no reader takes them for complete.
                self.packer = Packer::default();
                return Some(Err(fault.into()));
            }
        }
    }
}
