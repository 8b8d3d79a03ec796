// SPDX-License-Identifier: GPL-3.0-or-later
//! Commits and checkpoints: from memory to the file, each in one transaction.

use crate::ledger::disk::errors::WriteError;
use crate::ledger::disk::load::ORIGIN;
use crate::ledger::disk::rows::{
    ChunkKey, Record, SliceKey, chunk_key, chunks_of, encode_batch, encode_batch_record, encode_receipt,
    encode_waiting, seal, slice_key,
};
use crate::ledger::disk::schema::{
    BATCHES, Cells, JOURNAL, OTHERS, OWN, RECEIPTS, RETRIES, SPOOL, UPDATES, put_meta,
};
use crate::ledger::history::chunks::blocks_of;
use crate::ledger::history::vector::{Mark, Vector};
use crate::ledger::history::window::Window;
use crate::ledger::settings::Role;
use crate::ledger::state::book::{Book, Changes, Kept};
use crate::ledger::state::retries::RetryKey;
use crate::ledger::state::spool::Spool;
use bulkmark_filter::Counting;
use redb::{Database, ReadableTable, WriteTransaction};

/// The rows of `meta` that move.
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const CUT: &str = "cut";
pub(crate) const VECTOR: &str = "vector";
pub(crate) const SPOOL_STATE: &str = "spool";

/// Commits what changed; on return it is on disk. `next` is the number of the report after `changes.entries`.
pub(crate) fn commit(db: &Database, book: &Book, changes: &Changes) -> Result<(), WriteError> {
    let txn = db.begin_write()?;
    write_changes(&txn, book, changes)?;
    txn.commit()?;
    Ok(())
}

fn write_changes(txn: &WriteTransaction, book: &Book, changes: &Changes) -> Result<(), redb::Error> {
    if !changes.entries.is_empty() {
        let first = book.next - changes.entries.len() as u64;
        let batch = seal("journal", &first.to_le_bytes(), &encode_batch(&changes.entries));
        txn.open_table(JOURNAL)?.insert(first, &*batch)?;
    }
    if !changes.receipts.is_empty() {
        let mut table = txn.open_table(RECEIPTS)?;
        for (reporter, number, receipt) in &changes.receipts {
            let key = [reporter.client.as_bytes(), &reporter.spool.to_le_bytes()].concat();
            let row = seal("receipts", &key, &encode_receipt(*number, *receipt));
            table.insert((&*reporter.client, reporter.spool), &*row)?;
        }
        for reporter in &changes.forgotten {
            table.remove((&*reporter.client, reporter.spool))?;
        }
    }
    if !changes.refused.is_empty() {
        let mut table = txn.open_table(RETRIES)?;
        for (key, at) in &changes.refused {
            table.insert(key.bytes(), at)?;
        }
    }
    write_updates(txn, book, &changes.updates)?;
    write_spool(txn, &book.spool, book.spool_id, changes)
}

fn write_updates(txn: &WriteTransaction, book: &Book, updates: &[Kept]) -> Result<(), redb::Error> {
    if updates.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(UPDATES)?;
    for Kept { origin, version, at, bytes } in updates {
        let value = [&at.to_le_bytes()[..], bytes].concat();
        let key = [origin.0.to_le_bytes(), version.to_le_bytes()].concat();
        table.insert((origin.0, *version), &*seal("updates", &key, &value))?;
    }
    if updates.iter().any(|update| update.origin == book.own.origin()) {
        put_meta(txn, CUT, &encode_cut(book.own.mark(), book.cut_at))?;
    }
    Ok(())
}

/// Where the own history stands, and the number of the first report that is not in it.
fn encode_cut(mark: Mark, next: u64) -> Vec<u8> {
    [&mark.version.to_le_bytes()[..], &next.to_le_bytes(), &mark.chain.0].concat()
}

fn write_spool(txn: &WriteTransaction, spool: &Spool, id: u64, changes: &Changes) -> Result<(), redb::Error> {
    if !changes.waiting.is_empty() {
        let first = spool.end() - changes.waiting.len() as u64;
        let row = seal("spool", &first.to_le_bytes(), &encode_waiting(&changes.waiting));
        txn.open_table(SPOOL)?.insert(first, &*row)?;
    }
    if !changes.batches.is_empty() {
        let mut table = txn.open_table(BATCHES)?;
        for batch in spool.batches().filter(|batch| changes.batches.contains(&batch.number)) {
            table.insert(
                batch.number,
                &*seal("batches", &batch.number.to_le_bytes(), &encode_batch_record(batch)),
            )?;
        }
    }
    if changes.settled {
        let mut table = txn.open_table(SPOOL)?;
        // Rows whose reports are all gone; a row reaches up to the next one.
        let starts: Vec<u64> = table
            .range(..=spool.first())?
            .map(|row| row.map(|(key, _)| key.value()))
            .collect::<Result<_, _>>()?;
        for start in starts.iter().rev().skip(1) {
            table.remove(start)?;
        }
        let oldest = spool.batches().next().map_or_else(|| spool.next_batch(), |batch| batch.number);
        txn.open_table(BATCHES)?.retain(|number, _| number >= oldest)?;
    }
    if changes.settled || !changes.batches.is_empty() {
        let state = [id, spool.first(), spool.next_batch()].map(u64::to_le_bytes).concat();
        put_meta(txn, SPOOL_STATE, &state)?;
    }
    Ok(())
}

/// What a checkpoint takes out.
#[derive(Default)]
pub(crate) struct Expired {
    pub(crate) own: Vec<Window>,
    pub(crate) others: Vec<Window>,
    pub(crate) retries: Vec<RetryKey>,
    /// Updates that came before this time are not kept for others; none says that all are.
    pub(crate) updates_before: Option<u64>,
}

/// Writes all changed chunks with what they are of, takes out what expired, and empties the journal, in one transaction.
pub(crate) fn checkpoint(db: &Database, book: &mut Book, expired: &Expired) -> Result<(), WriteError> {
    let changes = std::mem::take(&mut book.changes);
    let txn = db.begin_write()?;
    write_changes(&txn, book, &changes)?;
    take_out(&txn, &OWN, &expired.own)?;
    take_out(&txn, &OTHERS, &expired.others)?;
    if book.adopted {
        // What is not in the snapshot must not stay.
        txn.open_table(OTHERS.slices)?.retain(|_, _| false)?;
        txn.open_table(OTHERS.cells)?.retain(|_, _| false)?;
    }
    if book.renewed {
        txn.open_table(OWN.slices)?.retain(|_, _| false)?;
        txn.open_table(OWN.cells)?.retain(|_, _| false)?;
        put_meta(&txn, ORIGIN, &book.own.origin().0.to_le_bytes())?;
        put_meta(&txn, CUT, &encode_cut(book.own.mark(), book.cut_at))?;
    }
    write_own(&txn, book)?;
    write_others(&txn, book)?;
    put_meta(&txn, CHECKPOINT, &book.next.to_le_bytes())?;
    put_meta(&txn, VECTOR, book.vector().to_string().as_bytes())?;
    txn.open_table(JOURNAL)?.retain(|_, _| false)?;
    {
        let mut retries = txn.open_table(RETRIES)?;
        for key in &expired.retries {
            retries.remove(key.bytes())?;
        }
    }
    drop_updates(&txn, book, expired.updates_before)?;
    txn.commit()?;
    (book.adopted, book.renewed) = (false, false);
    for generation in book.own.generations.iter_mut() {
        generation.dirty.iter_mut().for_each(|slice| slice.fill(false));
    }
    for layer in book.others.layers_mut() {
        layer.dirty.iter_mut().for_each(|slice| slice.fill(false));
    }
    Ok(())
}

/// Whoever keeps no updates for others needs none after a checkpoint. The newest of each origin stays: it is the proof of
/// the history.
fn drop_updates(txn: &WriteTransaction, book: &Book, before: Option<u64>) -> Result<(), redb::Error> {
    let before = match (book.role, before) {
        (Role::Server, None) => return Ok(()),
        (Role::Server, Some(before)) => before,
        _ => u64::MAX,
    };
    let vector: Vector = book.vector();
    txn.open_table(UPDATES)?.retain(|(origin, version), row| {
        let at = row.first_chunk().map_or(0, |at| u64::from_le_bytes(*at));
        at >= before
            || book.role == Role::Server
                && vector.get(crate::ledger::history::vector::Origin(origin)).version == version
    })?;
    Ok(())
}

fn take_out(txn: &WriteTransaction, tables: &Cells, windows: &[Window]) -> Result<(), redb::Error> {
    if windows.is_empty() {
        return Ok(());
    }
    let mut slices = txn.open_table(tables.slices)?;
    let mut cells = txn.open_table(tables.cells)?;
    for window in windows {
        let (start, length) = window.key();
        slices.retain_in((start, length, 0)..=(start, length, u32::MAX), |_, _| false)?;
        cells.retain_in((start, length, 0, 0)..=(start, length, u32::MAX, u32::MAX), |_, _| false)?;
    }
    Ok(())
}

fn write_own(txn: &WriteTransaction, book: &Book) -> Result<(), redb::Error> {
    let mut rows = Rows::open(txn, &OWN)?;
    for generation in book.own.generations.iter() {
        for ((number, slice), dirty) in (0..).zip(generation.row.slices()).zip(&generation.dirty) {
            let bytes = |chunk| slice.filter.bytes(blocks_of(chunk, slice.filter.blocks()));
            let record =
                Record { from: slice.from, distinct: slice.distinct, chunks: 0, capacity: slice.capacity };
            rows.write(generation.window, number, dirty, &record, bytes)?;
        }
    }
    Ok(())
}

fn write_others(txn: &WriteTransaction, book: &Book) -> Result<(), redb::Error> {
    let mut rows = Rows::open(txn, &OTHERS)?;
    for layer in book.others.layers() {
        for ((number, slice), dirty) in (0..).zip(&layer.slices).zip(&layer.dirty) {
            let bytes = |chunk| slice.bytes(blocks_of(chunk, slice.blocks()));
            let record = Record { from: 0, distinct: 0, chunks: 0, capacity: layer.capacity };
            rows.write(layer.window, number, dirty, &record, bytes)?;
        }
    }
    Ok(())
}

/// The tables of one kind of cells, open for writing.
struct Rows<'a> {
    slices: redb::Table<'a, SliceKey, &'static [u8]>,
    cells: redb::Table<'a, ChunkKey, &'static [u8]>,
    names: [&'static str; 2],
}

impl<'a> Rows<'a> {
    fn open(txn: &'a WriteTransaction, tables: &Cells) -> Result<Self, redb::Error> {
        let (slices, cells) = (txn.open_table(tables.slices)?, txn.open_table(tables.cells)?);
        Ok(Self { slices, cells, names: tables.names })
    }

    /// Writes the chunks of a slice that changed.
    fn write(
        &mut self,
        window: Window,
        number: u32,
        dirty: &[bool],
        record: &Record,
        bytes: impl Fn(usize) -> Vec<u8>,
    ) -> Result<(), redb::Error> {
        if !dirty.contains(&true) {
            return Ok(());
        }
        let (start, length) = window.key();
        let [slices, cells] = self.names;
        for (chunk, _) in (0..).zip(dirty).filter(|(_, dirty)| **dirty) {
            let row = seal(cells, &chunk_key(window, number, chunk), &bytes(chunk as usize));
            self.cells.insert((start, length, number, chunk), &*row)?;
        }
        let chunks = self.cells.range(chunks_of(window, number))?.count() as u64;
        let row = seal(slices, &slice_key(window, number), &Record { chunks, ..*record }.encode());
        self.slices.insert((start, length, number), &*row)?;
        Ok(())
    }
}
