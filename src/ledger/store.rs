// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger's file: cells in chunks as of the last checkpoint, and a journal of the reports since.
//!
//! Every value that counts are made of carries a CRC-32 over its table, key and content, so that a damaged, truncated
//! or misplaced one is found when the file is opened. The format is described in docs/ledger.md.

use super::Settings;
use super::errors::{Fault, OpenError, WriteError, damaged, no_memory};
use super::format::{
    ChunkKey, Entry, Reader, Record, SliceKey, chunk_key, chunks_of, decode_batch, encode_batch, seal,
    slice_key, unseal,
};
use super::generations::{Generation, Generations, blocks_of};
use super::retries::{Retries, RetryKey};
use super::window::Window;
use crate::filter::{Counting, Refined};
use crate::signature::{FederationKey, Signature};
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The name of the ledger's file in the state directory.
pub const FILE_NAME: &str = "ledger.redb";

const FORMAT: &str = "bulkmark ledger 3";

/// The row of `meta` that has the sequence number of the last checkpoint.
const CHECKPOINT: &str = "checkpoint";

/// The row of `meta` that is there when the file was once found damaged.
const DAMAGED: &str = "damaged";

const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const SLICES: TableDefinition<'_, SliceKey, &[u8]> = TableDefinition::new("slices");
const CELLS: TableDefinition<'_, ChunkKey, &[u8]> = TableDefinition::new("cells");
const JOURNAL: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("journal");
const RETRIES: TableDefinition<'_, &[u8; 16], u64> = TableDefinition::new("retries");

/// The page cache of the database. All counts are in memory anyway; this is for the pages of one checkpoint.
const CACHE_BYTES: usize = 4 << 20;

/// The open file.
///
/// Every report has a sequence number, one more than that of the report before it. What the cells hold is that of all
/// reports before `checkpoint`, and the journal goes on from there without a gap: so the position to replay from is
/// known, and a half-written state is none, since a transaction has all of it or nothing (dablooms' change sequence
/// numbers, by other means).
pub(super) struct Store {
    db: Database,
    checkpoint: u64,
    /// The number of the next report.
    next: u64,
}

/// All that the file holds.
pub(super) struct Loaded {
    pub(super) store: Store,
    pub(super) generations: Generations,
    pub(super) retries: Retries,
}

/// Opens the ledger in `directory`, or begins a new one when there is none, and reads all of it.
///
/// # Errors
/// See [`OpenError`]. A file that fails any check is never used and never replaced.
pub(super) fn open(directory: &Path, settings: &Settings, key: &FederationKey) -> Result<Loaded, OpenError> {
    let path = directory.join(FILE_NAME);
    // redb may panic on pages that no version of it has written.
    catch_unwind(AssertUnwindSafe(|| open_checked(&path, settings, key)))
        .unwrap_or_else(|_| Err(damaged("its structure is not valid")))
        .map_err(|fault| fault.at(path))
}

/// Reads the count of `signature` at the time `now` from the ledger in `directory`, which no daemon may have open.
///
/// # Errors
/// See [`OpenError`]; a ledger that is not there is an error.
pub fn read(
    directory: &Path,
    settings: &Settings,
    key: &FederationKey,
    signature: Signature,
    now: u64,
) -> Result<u32, OpenError> {
    let path = directory.join(FILE_NAME);
    if let Err(reason) = path.metadata() {
        return Err(OpenError::Io { path, reason });
    }
    Ok(open(directory, settings, key)?.generations.count(signature, now))
}

fn open_checked(path: &Path, settings: &Settings, key: &FederationKey) -> Result<Loaded, Fault> {
    match path.metadata() {
        Ok(_) => (),
        Err(e) if e.kind() == io::ErrorKind::NotFound => create(path, key)?,
        Err(e) => return Err(Fault::Io(e)),
    }
    let mut db = builder().open(path)?;
    let sound = db.check_integrity()?;
    let txn = db.begin_write()?;
    if !sound {
        // redb went back to an older state that is whole. That must not pass for the ledger at the next start.
        txn.open_table(META)?.insert(DAMAGED, &[][..])?;
        txn.commit()?;
        return Err(damaged("pages failed their checksums"));
    }
    check_parameters(&txn, key)?;
    let mut generations = Generations::new(settings);
    load_generations(&txn, &mut generations)?;
    let checkpoint = load_checkpoint(&txn)?;
    let next = replay(&txn, &mut generations, checkpoint)?;
    let store = Store { db, checkpoint, next };
    let retries = load_retries(&txn)?;
    txn.commit()?;
    Ok(Loaded { store, generations, retries })
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Makes an empty ledger. It gets its name once it is complete, so that a crash at the first start leaves none rather
/// than half of one.
fn create(path: &Path, key: &FederationKey) -> Result<(), Fault> {
    let unfinished = path.with_extension("new");
    match fs::remove_file(&unfinished) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Fault::Io(e)),
        _ => (),
    }
    let db = builder().create(&unfinished)?;
    let txn = db.begin_write()?;
    {
        let mut meta = txn.open_table(META)?;
        for (name, value) in parameters(key) {
            meta.insert(name, &*seal("meta", name.as_bytes(), value.as_bytes()))?;
        }
        meta.insert(CHECKPOINT, &*seal("meta", CHECKPOINT.as_bytes(), &0u64.to_le_bytes()))?;
    }
    txn.commit()?;
    drop(db);
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    fs::rename(&unfinished, path).and_then(|()| fs::File::open(directory)?.sync_all()).map_err(Fault::Io)
}

/// What a ledger's cells are only right for.
fn parameters(key: &FederationKey) -> [(&'static str, String); 3] {
    [
        ("format", FORMAT.to_owned()),
        ("layout", Refined::layout()),
        ("federation key id", format!("{:016x}", key.id())),
    ]
}

fn check_parameters(txn: &WriteTransaction, key: &FederationKey) -> Result<(), Fault> {
    let meta = txn.open_table(META)?;
    if meta.get(DAMAGED)?.is_some() {
        return Err(damaged("pages failed their checksums at an earlier start"));
    }
    for (name, expected) in parameters(key) {
        let row = meta.get(name)?.ok_or_else(|| damaged(format!("it has no {name}")))?;
        let found = String::from_utf8_lossy(unseal("meta", name.as_bytes(), row.value())?).into_owned();
        if found != expected {
            return Err(Fault::Other { name, found, expected });
        }
    }
    Ok(())
}

fn load_checkpoint(txn: &WriteTransaction) -> Result<u64, Fault> {
    let meta = txn.open_table(META)?;
    let row = meta.get(CHECKPOINT)?.ok_or_else(|| damaged("it has no checkpoint"))?;
    Reader(unseal("meta", CHECKPOINT.as_bytes(), row.value())?).u64()
}

fn load_generations(txn: &WriteTransaction, generations: &mut Generations) -> Result<(), Fault> {
    let slices = txn.open_table(SLICES)?;
    let cells = txn.open_table(CELLS)?;
    let mut loaded: Vec<Generation> = Vec::new();
    for row in slices.range::<SliceKey>(..)? {
        let (key, record) = row?;
        let (start, length, number) = key.value();
        let window = Window::from((start, length));
        let record = Record::decode(unseal("slices", &slice_key(window, number), record.value())?)?;
        if loaded.last().is_none_or(|generation| generation.window != window) {
            loaded.push(Generation::new(window, record.capacity));
        }
        let Some(generation) = loaded.last_mut().filter(|g| g.row.slices().len() == number as usize) else {
            return Err(damaged(format!("the window {window} has no slice before {number}")));
        };
        load_slice(&cells, generation, number, &record)?;
    }
    loaded.into_iter().for_each(|generation| generations.restore(generation));
    Ok(())
}

fn load_slice(
    cells: &impl ReadableTable<ChunkKey, &'static [u8]>,
    generation: &mut Generation,
    number: u32,
    record: &Record,
) -> Result<(), Fault> {
    let window = generation.window;
    generation.join(record.from, record.capacity).map_err(no_memory)?;
    let Some(slice) = generation.row.slice_mut(number as usize) else {
        return Err(damaged("a slice is missing"));
    };
    slice.distinct = record.distinct;
    let mut chunks = 0;
    for row in cells.range(chunks_of(window, number))? {
        let (key, bytes) = row?;
        let chunk = key.value().3;
        let bytes = unseal("cells", &chunk_key(window, number, chunk), bytes.value())?;
        if !slice.filter.restore(blocks_of(chunk as usize, slice.filter.blocks()), bytes) {
            return Err(damaged(format!("chunk {chunk} of the window {window} does not fit its filter")));
        }
        chunks += 1;
    }
    if chunks == record.chunks {
        Ok(())
    } else {
        Err(damaged(format!("the window {window} has {chunks} chunks of {}", record.chunks)))
    }
}

/// Applies the journal; returns the number of the next report.
fn replay(txn: &WriteTransaction, generations: &mut Generations, checkpoint: u64) -> Result<u64, Fault> {
    let mut next = checkpoint;
    for row in txn.open_table(JOURNAL)?.range::<u64>(..)? {
        let (key, batch) = row?;
        let key = key.value();
        if key != next {
            return Err(damaged(format!("the journal goes on at report {key} instead of {next}")));
        }
        for entry in decode_batch(unseal("journal", &key.to_le_bytes(), batch.value())?)? {
            generations.add(entry.window, next, entry.signature, entry.times).map_err(no_memory)?;
            next += 1;
        }
    }
    Ok(next)
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

impl Store {
    /// Reports since the last checkpoint.
    pub(super) const fn journalled(&self) -> u64 {
        self.next - self.checkpoint
    }

    /// The number of the next report.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Commits a batch of reports and of refused messages; on return they are on disk.
    pub(super) fn append(
        &mut self,
        entries: &[Entry],
        refused: &[(RetryKey, u64)],
    ) -> Result<(), WriteError> {
        let txn = self.db.begin_write()?;
        if !entries.is_empty() {
            let batch = seal("journal", &self.next.to_le_bytes(), &encode_batch(entries));
            txn.open_table(JOURNAL)?.insert(self.next, &*batch)?;
        }
        if !refused.is_empty() {
            let mut table = txn.open_table(RETRIES)?;
            for (key, at) in refused {
                table.insert(key.bytes(), at)?;
            }
        }
        txn.commit()?;
        self.next += entries.len() as u64;
        Ok(())
    }

    /// Writes all changed chunks, takes out what expired, and empties the journal, in one transaction.
    pub(super) fn checkpoint(
        &mut self,
        generations: &mut Generations,
        expired: &[Window],
        forgotten: &[RetryKey],
    ) -> Result<(), WriteError> {
        let txn = self.db.begin_write()?;
        {
            let mut slices = txn.open_table(SLICES)?;
            let mut cells = txn.open_table(CELLS)?;
            for window in expired {
                let (start, length) = window.key();
                slices.retain_in((start, length, 0)..=(start, length, u32::MAX), |_, _| false)?;
                cells.retain_in((start, length, 0, 0)..=(start, length, u32::MAX, u32::MAX), |_, _| false)?;
            }
            for generation in generations.iter() {
                write_generation(generation, &mut slices, &mut cells)?;
            }
            let checkpoint = seal("meta", CHECKPOINT.as_bytes(), &self.next.to_le_bytes());
            txn.open_table(META)?.insert(CHECKPOINT, &*checkpoint)?;
            txn.open_table(JOURNAL)?.retain(|_, _| false)?;
            let mut retries = txn.open_table(RETRIES)?;
            for key in forgotten {
                retries.remove(key.bytes())?;
            }
        }
        txn.commit()?;
        for generation in generations.iter_mut() {
            generation.dirty.iter_mut().for_each(|slice| slice.fill(false));
        }
        self.checkpoint = self.next;
        Ok(())
    }
}

type Rows<'a, K> = redb::Table<'a, K, &'static [u8]>;

fn write_generation(
    generation: &Generation,
    slices: &mut Rows<'_, SliceKey>,
    cells: &mut Rows<'_, ChunkKey>,
) -> Result<(), WriteError> {
    let window = generation.window;
    let (start, length) = window.key();
    for ((number, slice), dirty) in (0..).zip(generation.row.slices()).zip(&generation.dirty) {
        if !dirty.contains(&true) {
            continue;
        }
        for (chunk, _) in (0..).zip(dirty).filter(|(_, dirty)| **dirty) {
            let bytes = slice.filter.bytes(blocks_of(chunk as usize, slice.filter.blocks()));
            cells.insert(
                (start, length, number, chunk),
                &*seal("cells", &chunk_key(window, number, chunk), &bytes),
            )?;
        }
        let record = Record {
            from: slice.from,
            distinct: slice.distinct,
            chunks: cells.range(chunks_of(window, number))?.count() as u64,
            capacity: slice.capacity,
        };
        slices.insert(
            (start, length, number),
            &*seal("slices", &slice_key(window, number), &record.encode()),
        )?;
    }
    Ok(())
}
