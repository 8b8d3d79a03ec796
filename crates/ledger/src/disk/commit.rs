// SPDX-License-Identifier: GPL-3.0-or-later
//! Commits and checkpoints: from memory to the file, each in one transaction.

use crate::disk::bulk;
use crate::disk::errors::WriteError;
use crate::disk::past;
use crate::disk::rows::{
    ChunkKey, Record, SliceKey, chunk_key, chunks_of, encode_batch, encode_batch_record, encode_last_sent,
    encode_receipt, encode_spool, encode_waiting, merged_slice, seal, slice_key, unseal,
};
use crate::disk::schema::{
    BATCHES, CHECKPOINT, CUT, Cells, JOURNAL, LAST_SENT, LOCAL, MERGED, ORIGIN, RECEIPTS, RETRIES, SPOOL,
    SPOOL_STATE, UPDATES, VECTOR, put_meta,
};
use crate::disk::{cases, chain, held_back, layers, user_reports};
use bulkmark_counts::history::chunks::blocks_of;
use bulkmark_counts::history::window::Window;
use bulkmark_counts::state::changes::{Changes, NewWindow};
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::kept::KeptUpdate;
use bulkmark_counts::state::roles::State;
use bulkmark_counts::state::server::Server;
use bulkmark_counts::state::spool::{MAX_BATCH, Spool, SpoolChanges};
use bulkmark_counts::state::unwritten::{Merged, Unwritten};
use bulkmark_filter::Counting;
use redb::{Database, ReadableTable, WriteTransaction};

/// Commits the changes of a state; on return they are on disk.
pub(crate) fn commit(db: &Database, state: &State, changes: &Changes) -> Result<(), WriteError> {
    let txn = db.begin_write()?;
    write_changes(&txn, state, changes)?;
    txn.commit()?;
    Ok(())
}

fn write_changes(txn: &WriteTransaction, state: &State, changes: &Changes) -> Result<(), redb::Error> {
    write_begun(txn, &changes.begun)?;
    if !changes.entries.is_empty() {
        let mut first = state.counts().next - changes.entries.len() as u64;
        let mut table = txn.open_table(JOURNAL)?;
        // A row has reports of one limited client, or of all unlimited ones.
        for entries in changes.entries.chunk_by(|a, b| a.client == b.client) {
            table.insert(first, &*seal("journal", &first.to_le_bytes(), &encode_batch(entries)))?;
            first += entries.len() as u64;
        }
    }
    layers::write_clients(txn, state, changes)?;
    write_receipts(txn, changes)?;
    if !changes.refused.is_empty() {
        let mut table = txn.open_table(RETRIES)?;
        for (key, at) in &changes.refused {
            match at {
                Some(at) => drop(table.insert(key.bytes(), at)?),
                None => drop(table.remove(key.bytes())?),
            }
        }
    }
    write_updates(txn, state, &changes.updates)?;
    bulk::write_notes(txn, changes)?;
    user_reports::write(txn, state.counts(), changes)?;
    cases::write(txn, state.counts(), changes)?;
    chain::write_steps(txn, &changes.steps)?;
    state.spool().map_or(Ok(()), |spool| write_spool(txn, spool, &changes.spool))
}

/// Writes the sizes of new windows; their cells follow with the next checkpoint.
fn write_begun(txn: &WriteTransaction, begun: &[NewWindow]) -> Result<(), redb::Error> {
    if begun.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(LOCAL.slices)?;
    for &NewWindow { window, first, capacity } in begun {
        let record = Record { from: first, distinct: 0, chunks: 0, capacity };
        let (start, length) = window.key();
        table.insert((start, length, 0), &*seal(LOCAL.names[0], &slice_key(window, 0), &record.encode()))?;
    }
    Ok(())
}

fn write_receipts(txn: &WriteTransaction, changes: &Changes) -> Result<(), redb::Error> {
    if changes.receipts.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(RECEIPTS)?;
    for (reporter, last) in &changes.receipts {
        let place = (&*reporter.client, reporter.spool);
        match last {
            Some(last) => {
                let key = [reporter.client.as_bytes(), &reporter.spool.to_le_bytes()].concat();
                let row = seal("receipts", &key, &encode_receipt(*last));
                drop(table.insert(place, &*row)?);
            }
            None => drop(table.remove(place)?),
        }
    }
    Ok(())
}

fn write_updates(txn: &WriteTransaction, state: &State, updates: &[KeptUpdate]) -> Result<(), redb::Error> {
    if updates.is_empty() {
        return Ok(());
    }
    let mut table = txn.open_table(UPDATES)?;
    for KeptUpdate { origin, version, at, bytes } in updates {
        let value = [&at.to_le_bytes()[..], bytes].concat();
        let key = [origin.0.to_le_bytes(), version.to_le_bytes()].concat();
        table.insert((origin.0, *version), &*seal("updates", &key, &value))?;
    }
    match state {
        State::Server(server) => put_meta(txn, CUT, &encode_cut(server)),
        _ => Ok(()),
    }
}

/// Encodes the position of a server's own history, and the number of the first report that is not in it.
fn encode_cut(server: &Server) -> Vec<u8> {
    let mark = server.counts.local.mark();
    [&mark.version.to_le_bytes()[..], &server.cut_at.to_le_bytes(), &mark.chain.0].concat()
}

fn write_spool(txn: &WriteTransaction, spool: &Spool, changes: &SpoolChanges) -> Result<(), redb::Error> {
    if !changes.waiting.is_empty() {
        let first = spool.end() - changes.waiting.len() as u64;
        let row = seal("spool", &first.to_le_bytes(), &encode_waiting(&changes.waiting));
        txn.open_table(SPOOL)?.insert(first, &*row)?;
    }
    if let Some(below) = changes.renumbered {
        renumber(txn, spool, below)?;
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
        // Delete rows whose reports are all gone; a row reaches up to the next one.
        let starts: Vec<u64> = table
            .range(..=spool.first())?
            .map(|row| row.map(|(key, _)| key.value()))
            .collect::<Result<_, _>>()?;
        for start in starts.iter().rev().skip(1) {
            table.remove(start)?;
        }
        txn.open_table(BATCHES)?.retain(|number, _| spool.batches().any(|batch| batch.number == number))?;
    }
    if changes.settled || !changes.batches.is_empty() {
        put_meta(txn, SPOOL_STATE, &encode_spool(spool))?;
        put_meta(txn, LAST_SENT, &encode_last_sent(spool.last_sent()))?;
    }
    Ok(())
}

/// Rewrites the reports below this number from the spool.
fn renumber(txn: &WriteTransaction, spool: &Spool, below: u64) -> Result<(), redb::Error> {
    let mut table = txn.open_table(SPOOL)?;
    table.retain_in(..below, |_, _| false)?;
    // A row that begins below this number and reaches beyond it was deleted as well.
    let next = table.range(below..)?.next().transpose()?.map(|(start, _)| start.value());
    let mut first = spool.first();
    for reports in spool.below(next.unwrap_or_else(|| spool.end())).chunks(MAX_BATCH) {
        let row = seal("spool", &first.to_le_bytes(), &encode_waiting(reports));
        table.insert(first, &*row)?;
        first += reports.len() as u64;
    }
    Ok(())
}

/// Writes all changed chunks with their records, deletes what expired, and empties the journal, in one transaction.
pub(crate) fn checkpoint(
    db: &Database,
    state: &State,
    changes: &Changes,
    expired: &Expired,
) -> Result<(), WriteError> {
    let txn = db.begin_write()?;
    bulk::take_out_old(&txn, state)?;
    write_changes(&txn, state, changes)?;
    for (tables, expired) in [(&LOCAL, &expired.local), (&MERGED, &expired.merged)] {
        take_out(&txn, tables, expired)?;
        take_out(&txn, tables, &changes.over)?;
    }
    if state.counts().unwritten.merged == Merged::Replace {
        // Old rows that are not in the snapshot must not stay.
        txn.open_table(MERGED.slices)?.retain(|_, _| false)?;
        txn.open_table(MERGED.cells)?.retain(|_, _| false)?;
    }
    if let State::Server(server) = state
        && server.renewed
    {
        txn.open_table(LOCAL.slices)?.retain(|_, _| false)?;
        txn.open_table(LOCAL.cells)?.retain(|_, _| false)?;
        put_meta(&txn, ORIGIN, &server.counts.local.origin().0.to_le_bytes())?;
        put_meta(&txn, CUT, &encode_cut(server))?;
    }
    if let State::Server(server) = state {
        held_back::write(&txn, server)?;
    }
    write_local(&txn, state.counts())?;
    write_merged(&txn, state.counts())?;
    layers::write(&txn, state)?;
    bulk::write(&txn, state, expired)?;
    chain::write(&txn, state.counts())?;
    put_meta(&txn, CHECKPOINT, &state.counts().next.to_le_bytes())?;
    put_meta(&txn, VECTOR, state.vector().to_string().as_bytes())?;
    txn.open_table(JOURNAL)?.retain(|_, _| false)?;
    {
        let mut retries = txn.open_table(RETRIES)?;
        for key in &expired.retries {
            retries.remove(key.bytes())?;
        }
    }
    past::drop_updates(&txn, state, expired, &changes.past)?;
    txn.commit()?;
    Ok(())
}

/// Marks everything as written, after a checkpoint.
pub(crate) fn mark_clean(state: &mut State) {
    if let State::Server(server) = state {
        server.renewed = false;
        server.peer_check.changed = false;
    }
    layers::mark_clean(state);
    let counts = state.counts_mut();
    counts.unwritten = Unwritten::default();
    counts.held.mark_clean();
    counts.fleet.marks.mark_clean();
    for generation in counts.local.generations.iter_mut() {
        generation.dirty.iter_mut().for_each(|slice| slice.fill(false));
    }
    for window in counts.merged.windows_mut() {
        window.dirty.iter_mut().for_each(|slice| slice.fill(false));
    }
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

fn write_local(txn: &WriteTransaction, counts: &Counts) -> Result<(), redb::Error> {
    let mut rows = Rows::open(txn, &LOCAL)?;
    for generation in counts.local.generations.iter() {
        for ((number, slice), dirty) in (0..).zip(generation.row.slices()).zip(&generation.dirty) {
            let bytes = |chunk| slice.filter.bytes(blocks_of(chunk, slice.filter.blocks()));
            let record =
                Record { from: slice.from, distinct: slice.distinct, chunks: 0, capacity: slice.capacity };
            rows.write(generation.window, number, dirty, &record, bytes)?;
        }
    }
    Ok(())
}

fn write_merged(txn: &WriteTransaction, counts: &Counts) -> Result<(), redb::Error> {
    let mut rows = Rows::open(txn, &MERGED)?;
    for layer in counts.merged.windows() {
        for ((number, slice), dirty) in (0..).zip(&layer.slices).zip(&layer.dirty) {
            let bytes = |chunk| slice.bytes(blocks_of(chunk, slice.blocks()));
            let record = Record { from: 0, distinct: 0, chunks: 0, capacity: layer.capacity };
            rows.write(layer.window, merged_slice(layer.size, number), dirty, &record, bytes)?;
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

    /// Returns the number of a slice's chunks in the file, from its record, or by counting them if the record is damaged.
    fn chunks(&self, window: Window, number: u32) -> Result<u64, redb::Error> {
        let (start, length) = window.key();
        let record = self.slices.get((start, length, number))?.and_then(|row| {
            let row = unseal(self.names[0], &slice_key(window, number), row.value()).ok()?;
            Record::decode(row).ok()
        });
        match record {
            Some(record) => Ok(record.chunks),
            None => Ok(self.cells.range(chunks_of(window, number))?.count() as u64),
        }
    }

    /// Writes the changed chunks of a slice. The cost is proportional to their number.
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
        let mut chunks = self.chunks(window, number)?;
        for (chunk, _) in (0..).zip(dirty).filter(|(_, dirty)| **dirty) {
            let row = seal(cells, &chunk_key(window, number, chunk), &bytes(chunk as usize));
            let is_new = self.cells.insert((start, length, number, chunk), &*row)?.is_none();
            chunks += u64::from(is_new);
        }
        let row = seal(slices, &slice_key(window, number), &Record { chunks, ..*record }.encode());
        self.slices.insert((start, length, number), &*row)?;
        Ok(())
    }
}
