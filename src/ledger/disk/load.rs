// SPDX-License-Identifier: GPL-3.0-or-later
//! Reading the ledger's file: cells as of the last checkpoint, and what came since.
//!
//! Every value that counts are made of carries a CRC-32 over its table, key and content, so that a damaged, truncated
//! or misplaced one is found when the file is opened. The format is described in docs/ledger.md.

use crate::ledger::disk::commit::{CHECKPOINT, CUT, SPOOL_STATE, VECTOR};
use crate::ledger::disk::errors::{Fault, OpenError, damaged, no_memory};
use crate::ledger::disk::rows::{
    Entry, Record, SliceKey, chunk_key, chunks_of, decode_batch, decode_batch_record, decode_receipt,
    decode_waiting, slice_key, unseal,
};
use crate::ledger::disk::schema;
use crate::ledger::disk::schema::{
    BATCHES, Cells, FILE_NAME, JOURNAL, OTHERS, OWN, RECEIPTS, RETRIES, SPOOL, UPDATES, get_meta, put_meta,
};
use crate::ledger::history::chunks::blocks_of;
use crate::ledger::history::fields::Fields;
use crate::ledger::history::update::Update;
use crate::ledger::history::vector::{Chain, Mark, Origin, Vector};
use crate::ledger::history::window::Window;
use crate::ledger::settings::Role;
use crate::ledger::settings::Settings;
use crate::ledger::state::book::{Book, Changes};
use crate::ledger::state::generations::{Generation, Generations};
use crate::ledger::state::influence::Influence;
use crate::ledger::state::local::Local;
use crate::ledger::state::merged::MergedCounts;
use crate::ledger::state::receipts::{Receipts, Reporter};
use crate::ledger::state::retries::{Retries, RetryKey};
use crate::ledger::state::shares::Shares;
use crate::ledger::state::spool::Spool;
use crate::signature::{FederationKey, Signature};
use bulkmark_filter::{Counting, ParameterError};
use redb::{Database, ReadableTable, WriteTransaction};
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The row of `meta` with the random number of a server's own community.
pub(crate) const ORIGIN: &str = "origin";

/// All that the file holds.
pub(crate) struct Loaded {
    pub(crate) db: Arc<Database>,
    pub(crate) book: Book,
    /// The number of the first report in the journal.
    pub(crate) checkpoint: u64,
}

/// Opens the ledger in `directory`, or begins a new one when there is none, and reads all of it. `random` is a number
/// for what needs a new name: a new server, a new spool.
///
/// # Errors
/// See [`OpenError`]. A file that fails any check is never used and never replaced.
pub(crate) fn open(
    directory: &Path,
    role: Role,
    settings: &Settings,
    key: &FederationKey,
    random: [u64; 2],
) -> Result<Loaded, OpenError> {
    let path = directory.join(FILE_NAME);
    // redb may panic on pages that no version of it has written.
    catch_unwind(AssertUnwindSafe(|| load(schema::open(&path, role, key)?, role, settings, random)))
        .unwrap_or_else(|_| Err(damaged("its structure is not valid")))
        .map_err(|fault| fault.at(path))
}

/// Reads all of a ledger whose disk takes nothing. What is done to it is forgotten.
pub(crate) fn open_overlay(
    directory: &Path,
    role: Role,
    settings: &Settings,
    random: [u64; 2],
) -> Result<Loaded, OpenError> {
    let path = directory.join(FILE_NAME);
    catch_unwind(AssertUnwindSafe(|| load(schema::open_overlay(&path)?, role, settings, random)))
        .unwrap_or_else(|_| Err(damaged("its structure is not valid")))
        .map_err(|fault| fault.at(path))
}

/// Reads the counts of `signatures` at the time `now` from the ledger in `directory`, which no daemon may have open.
///
/// # Errors
/// See [`OpenError`]; a ledger that is not there is an error.
pub fn read(
    directory: &Path,
    settings: &Settings,
    key: &FederationKey,
    signatures: &[Signature],
    now: u64,
) -> Result<Vec<Shares>, OpenError> {
    let path = directory.join(FILE_NAME);
    if let Err(reason) = path.metadata() {
        return Err(OpenError::Io { path, reason });
    }
    // Numbers that are only for what is new.
    let book = open(directory, Role::Site, settings, key, [0; 2])?.book;
    Ok(signatures.iter().map(|&signature| book.shares(signature, now)).collect())
}

/// Opens a ledger that is there, whatever its role and key; the latter's number is returned. The settings are those that
/// the file itself tells.
pub(crate) fn open_any(path: &Path, random: [u64; 2]) -> Result<(Loaded, u64), OpenError> {
    let load_any = || {
        let (db, role, key) = schema::open_any(path)?;
        let window = Duration::from_secs(window_length(&db)?);
        let settings = Settings { window, retention: window.saturating_mul(366), ..Settings::default() };
        Ok((load(db, role, &settings, random)?, key))
    };
    catch_unwind(AssertUnwindSafe(load_any))
        .unwrap_or_else(|_| Err(damaged("its structure is not valid")))
        .map_err(|fault: Fault| fault.at(path.to_owned()))
}

/// The length of the newest window; a day when there is none.
fn window_length(db: &Database) -> Result<u64, Fault> {
    let txn = db.begin_write()?;
    let mut newest = None;
    for tables in [&OWN, &OTHERS] {
        let last = txn.open_table(tables.slices)?.last()?.map(|(key, _)| key.value());
        newest = newest.max(last.map(|(start, length, _)| (start, length)));
    }
    txn.commit()?;
    Ok(newest.map_or_else(|| Settings::default().window.as_secs(), |(_, length)| length))
}

fn load(
    db: Database,
    role: Role,
    settings: &Settings,
    [new_origin, new_spool]: [u64; 2],
) -> Result<Loaded, Fault> {
    let txn = db.begin_write()?;
    let origin = Origin(meta_number(&txn, ORIGIN, new_origin)?);
    let checkpoint = match get_meta(&txn, CHECKPOINT)? {
        Some(row) => Fields(&row).u64()?,
        None => 0,
    };
    let (mark, cut_at) = load_cut(&txn)?;
    let mut own = load_own(&txn, settings)?;
    let end = if role.is_server() { cut_at } else { u64::MAX };
    let mut next =
        replay(&txn, checkpoint, checkpoint..end, |id, e| own.add(e.window, id, e.signature, e.times))?;
    let mut own =
        if role.is_server() { Local::recording(own, origin, mark) } else { Local::new(own, origin, mark) };
    if role.is_server() {
        // What was counted after the last update makes the next one.
        next = replay(&txn, checkpoint, next..u64::MAX, |id, e| own.add(e.window, id, e.signature, e.times))?;
    }
    let mut others = load_others(&txn, settings, origin)?;
    replay_updates(&txn, &mut others, origin)?;
    let influence = Influence::new(own.generations.iter().map(|generation| generation.window).collect());
    let (spool_id, mut spool) = load_spool(&txn, new_spool)?;
    spool.settle(others.vector());
    let book = Book {
        role,
        own,
        others,
        acknowledged: load_receipts(&txn)?,
        spool,
        spool_id,
        retries: load_retries(&txn)?,
        influence,
        next,
        cut_at,
        changes: Changes::default(),
        adopted: false,
        renewed: false,
        broken: None,
        clock: 0,
        settings: settings.clone(),
    };
    txn.commit()?;
    Ok(Loaded { db: Arc::new(db), book, checkpoint })
}

/// A number that was drawn once and stays.
fn meta_number(txn: &WriteTransaction, name: &str, new: u64) -> Result<u64, Fault> {
    if let Some(row) = get_meta(txn, name)? {
        return Ok(Fields(&row).u64()?);
    }
    put_meta(txn, name, &new.to_le_bytes())?;
    Ok(new)
}

fn load_cut(txn: &WriteTransaction) -> Result<(Mark, u64), Fault> {
    let Some(row) = get_meta(txn, CUT)? else { return Ok((Mark::default(), 0)) };
    let mut reader = Fields(&row);
    let (version, at) = (reader.u64()?, reader.u64()?);
    Ok((Mark { version, chain: Chain(reader.take()?) }, at))
}

/// What a row of cells is: window, number of the slice, its record, and its chunks.
fn each_slice(
    txn: &WriteTransaction,
    tables: &Cells,
    mut join: impl FnMut(Window, u32, &Record) -> Result<(), Fault>,
    mut chunk: impl FnMut(Window, u32, u32, &[u8]) -> Result<bool, Fault>,
) -> Result<(), Fault> {
    let slices = txn.open_table(tables.slices)?;
    let cells = txn.open_table(tables.cells)?;
    let [slices_name, cells_name] = tables.names;
    for row in slices.range::<SliceKey>(..)? {
        let (key, record) = row?;
        let (start, length, number) = key.value();
        let window = Window::from((start, length));
        let record = Record::decode(unseal(slices_name, &slice_key(window, number), record.value())?)?;
        join(window, number, &record)?;
        let mut chunks = 0;
        for row in cells.range(chunks_of(window, number))? {
            let (key, bytes) = row?;
            let at = key.value().3;
            let bytes = unseal(cells_name, &chunk_key(window, number, at), bytes.value())?;
            if !chunk(window, number, at, bytes)? {
                return Err(damaged(format!("chunk {at} of the window {window} does not fit its filter")));
            }
            chunks += 1;
        }
        if chunks != record.chunks {
            return Err(damaged(format!("the window {window} has {chunks} chunks of {}", record.chunks)));
        }
    }
    Ok(())
}

fn load_own(txn: &WriteTransaction, settings: &Settings) -> Result<Generations, Fault> {
    let loaded = std::cell::RefCell::new(Vec::<Generation>::new());
    let join = |window, number: u32, record: &Record| {
        let mut loaded = loaded.borrow_mut();
        if loaded.last().is_none_or(|generation| generation.window != window) {
            loaded.push(Generation::new(window, record.capacity));
        }
        let Some(generation) = loaded.last_mut().filter(|g| g.row.slices().len() == number as usize) else {
            return Err(damaged(format!("the window {window} has no slice before {number}")));
        };
        generation.join(record.from, record.capacity).map_err(no_memory)?;
        if let Some(slice) = generation.row.slice_mut(number as usize) {
            slice.distinct = record.distinct;
        }
        Ok(())
    };
    let chunk = |_, number: u32, chunk: u32, bytes: &[u8]| {
        let mut loaded = loaded.borrow_mut();
        let slice = loaded.last_mut().and_then(|generation| generation.row.slice_mut(number as usize));
        let Some(slice) = slice else { return Ok(false) };
        Ok(slice.filter.restore(blocks_of(chunk as usize, slice.filter.blocks()), bytes))
    };
    each_slice(txn, &OWN, join, chunk)?;
    let mut generations = Generations::new(settings);
    loaded.into_inner().into_iter().for_each(|generation| generations.restore(generation));
    Ok(generations)
}

fn load_others(txn: &WriteTransaction, settings: &Settings, own: Origin) -> Result<MergedCounts, Fault> {
    let mut view = MergedCounts::new(settings);
    let capacity = std::cell::Cell::new(1);
    let join = |_, _, record: &Record| {
        // The row has the capacity of the window's first slice, whatever slice it is of.
        capacity.set(record.capacity);
        Ok(())
    };
    each_slice(txn, &OTHERS, join, |window, number, chunk, bytes| {
        view.merge_chunk(window, capacity.get(), number, chunk, bytes).map_err(no_memory)
    })?;
    view.layers_mut().iter_mut().for_each(|layer| layer.dirty.iter_mut().for_each(|slice| slice.fill(false)));
    if let Some(row) = get_meta(txn, VECTOR)? {
        let text = String::from_utf8_lossy(&row);
        let vector: Vector = text.parse().map_err(|e| damaged(format!("its version vector: {e}")))?;
        for (origin, mark) in vector.iter().filter(|&(origin, _)| origin != own) {
            view.vector_mut().set(origin, mark);
        }
    }
    Ok(view)
}

/// Applies the updates that came after the last checkpoint.
fn replay_updates(txn: &WriteTransaction, others: &mut MergedCounts, own: Origin) -> Result<(), Fault> {
    for row in txn.open_table(UPDATES)?.range::<(u64, u64)>(..)? {
        let (key, value) = row?;
        let (origin, version) = key.value();
        if Origin(origin) == own || version <= others.vector().get(Origin(origin)).version {
            continue;
        }
        let key = [origin.to_le_bytes(), version.to_le_bytes()].concat();
        let mut reader = Fields(unseal("updates", &key, value.value())?);
        let at = reader.u64()?;
        let update = Update::decode(reader.0).map_err(|e| damaged(format!("{e}")))?;
        others.apply(&update, reader.0, at).map_err(|e| damaged(format!("{e}")))?;
    }
    Ok(())
}

/// Adds the reports of the journal whose numbers are in `range`; returns the number behind the last of them. The journal
/// must begin at the checkpoint and have no gap.
fn replay(
    txn: &WriteTransaction,
    checkpoint: u64,
    range: Range<u64>,
    mut add: impl FnMut(u64, Entry) -> Result<(), ParameterError>,
) -> Result<u64, Fault> {
    let (mut next, mut end) = (checkpoint, range.start);
    for row in txn.open_table(JOURNAL)?.range::<u64>(..)? {
        let (key, batch) = row?;
        let first = key.value();
        if first != next {
            return Err(damaged(format!("the journal goes on at report {first} instead of {next}")));
        }
        for entry in decode_batch(unseal("journal", &first.to_le_bytes(), batch.value())?)? {
            if range.contains(&next) {
                add(next, entry).map_err(no_memory)?;
                end = next + 1;
            }
            next += 1;
        }
    }
    Ok(end)
}

fn load_receipts(txn: &WriteTransaction) -> Result<Receipts, Fault> {
    let mut acknowledged = Receipts::default();
    for row in txn.open_table(RECEIPTS)?.range::<(&str, u64)>(..)? {
        let (key, value) = row?;
        let (client, spool) = key.value();
        let row_key = [client.as_bytes(), &spool.to_le_bytes()].concat();
        let (number, receipt) = decode_receipt(unseal("receipts", &row_key, value.value())?)?;
        // There are no more in the file than are remembered.
        let _ = acknowledged.set(Reporter { client: client.to_owned(), spool }, number, receipt);
    }
    Ok(acknowledged)
}

/// The spool's random number, and what is in it.
fn load_spool(txn: &WriteTransaction, new: u64) -> Result<(u64, Spool), Fault> {
    let (id, first, next_batch) = match get_meta(txn, SPOOL_STATE)? {
        Some(row) => {
            let mut reader = Fields(&row);
            (reader.u64()?, reader.u64()?, reader.u64()?)
        }
        None => {
            put_meta(txn, SPOOL_STATE, &[new, 0, 1].map(u64::to_le_bytes).concat())?;
            (new, 0, 1)
        }
    };
    let mut reports = VecDeque::new();
    for row in txn.open_table(SPOOL)?.range::<u64>(..)? {
        let (key, value) = row?;
        let start = key.value();
        for (number, report) in
            (start..).zip(decode_waiting(unseal("spool", &start.to_le_bytes(), value.value())?)?)
        {
            if number < first {
                continue;
            }
            if number != first + reports.len() as u64 {
                return Err(damaged(format!("the spool goes on at report {number}")));
            }
            reports.push_back(report);
        }
    }
    let mut batches = VecDeque::new();
    for row in txn.open_table(BATCHES)?.range::<u64>(..)? {
        let (key, value) = row?;
        let number = key.value();
        batches.push_back(decode_batch_record(
            number,
            unseal("batches", &number.to_le_bytes(), value.value())?,
        )?);
    }
    Ok((id, Spool::restore(reports, first, batches, next_batch)))
}

fn load_retries(txn: &WriteTransaction) -> Result<Retries, Fault> {
    let mut rows = Vec::new();
    for row in txn.open_table(RETRIES)?.range::<&[u8; 16]>(..)? {
        let (key, at) = row?;
        rows.push((at.value(), RetryKey::from_bytes(*key.value())));
    }
    rows.sort_by_key(|&(at, _)| at);
    let mut retries = Retries::default();
    for (at, key) in rows {
        retries.remember(key, at);
    }
    Ok(retries)
}
