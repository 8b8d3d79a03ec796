// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger's file: cells in chunks as of the last checkpoint, and a journal of the reports since.
//!
//! Every value that counts are made of carries a CRC-32 over its table, key and content, so that a damaged, truncated
//! or misplaced one is found when the file is opened. The format is described in docs/ledger.md.

use super::Settings;
use super::generations::{Generation, Generations, blocks_of};
use super::retries::{Retries, RetryKey};
use super::window::Window;
use crate::filter::{Counting, Refined};
use crate::signature::{FederationKey, Signature};
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The name of the ledger's file in the state directory.
pub const FILE_NAME: &str = "ledger.redb";

const FORMAT: &str = "bulkmark ledger 2";

/// Beginning and length of the window, and number of the slice.
type SliceKey = (u64, u64, u32);

/// The same, and number of the chunk.
type ChunkKey = (u64, u64, u32, u32);

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

/// The ledger's file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory or file cannot be used at all.
    #[error("cannot open the ledger {path}: {reason}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// Another process holds it.
    #[error(
        "the ledger {path} is in use by another process; is a milter already running on this state directory?"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Its content is not what was written.
    #[error(
        "the ledger {path} is damaged ({what}). Restore it from a backup, or move it away to begin with empty counts"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// It was written under other parameters.
    #[error("the ledger {path} has {name} {found}, but this configuration needs {expected}")]
    Other {
        /// The file.
        path: PathBuf,
        /// The parameter.
        name: &'static str,
        /// Its value in the file.
        found: String,
        /// The value that is needed.
        expected: String,
    },
}

/// A change did not reach the disk.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the ledger: {0}")]
pub(super) struct WriteError(String);

impl<E: Into<redb::Error>> From<E> for WriteError {
    fn from(error: E) -> Self {
        Self(error.into().to_string())
    }
}

/// One report as the journal holds it.
pub(super) struct Entry {
    pub(super) window: Window,
    pub(super) signature: Signature,
    pub(super) times: u32,
}

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

/// What a failed step of opening found, before the path is known to it.
enum Fault {
    Damaged(String),
    Io(io::Error),
    InUse,
    Other { name: &'static str, found: String, expected: String },
}

fn damaged(what: impl Into<String>) -> Fault {
    Fault::Damaged(what.into())
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        match error.into() {
            redb::Error::Io(error) => Self::Io(error),
            redb::Error::DatabaseAlreadyOpen => Self::InUse,
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl Fault {
    fn at(self, path: PathBuf) -> OpenError {
        match self {
            // redb tells a file that is none of its own, or is cut short, by these kinds.
            Self::Io(e) if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                OpenError::Damaged { path, what: e.to_string() }
            }
            Self::Io(reason) => OpenError::Io { path, reason },
            Self::InUse => OpenError::InUse { path },
            Self::Damaged(what) => OpenError::Damaged { path, what },
            Self::Other { name, found, expected } => OpenError::Other { path, name, found, expected },
        }
    }
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
    generation.join(record.from, record.capacity);
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
            generations.add(entry.window, next, entry.signature, entry.times);
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

/// The row of a slice, beside its cells.
struct Record {
    from: u64,
    distinct: u64,
    chunks: u64,
    capacity: u32,
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(28);
        for field in [self.from, self.distinct, self.chunks] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&self.capacity.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, Fault> {
        let mut reader = Reader(bytes);
        let record = Self {
            from: reader.u64()?,
            distinct: reader.u64()?,
            chunks: reader.u64()?,
            capacity: reader.u32()?,
        };
        if record.capacity == 0 { Err(damaged("a slice of no size")) } else { Ok(record) }
    }
}

/// Bytes of one report in a batch: start and length of its window, signature, number of times.
const ENTRY_BYTES: usize = 8 + 8 + 16 + 4;

fn encode_batch(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        bytes.extend_from_slice(&entry.window.to_bytes());
        bytes.extend_from_slice(&entry.signature.to_bytes());
        bytes.extend_from_slice(&entry.times.to_le_bytes());
    }
    bytes
}

fn decode_batch(bytes: &[u8]) -> Result<Vec<Entry>, Fault> {
    let (entries, []) = bytes.as_chunks::<ENTRY_BYTES>() else {
        return Err(damaged("a journal batch of odd length"));
    };
    let decode = |entry: &[u8; ENTRY_BYTES]| {
        let mut reader = Reader(entry);
        Ok(Entry {
            window: Window::from((reader.u64()?, reader.u64()?)),
            signature: Signature::from_bytes(reader.take()?),
            times: reader.u32()?,
        })
    };
    entries.iter().map(decode).collect()
}

/// Reads fixed-size little-endian fields.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or_else(|| damaged("a row is too short"))?;
        self.0 = rest;
        Ok(*field)
    }

    fn u64(&mut self) -> Result<u64, Fault> {
        self.take().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.take().map(u32::from_le_bytes)
    }
}

/// The keys of all chunks of a slice.
fn chunks_of(window: Window, slice: u32) -> std::ops::RangeInclusive<ChunkKey> {
    let (start, length) = window.key();
    (start, length, slice, 0)..=(start, length, slice, u32::MAX)
}

fn slice_key(window: Window, slice: u32) -> Vec<u8> {
    [&window.to_bytes()[..], &slice.to_le_bytes()].concat()
}

fn chunk_key(window: Window, slice: u32, chunk: u32) -> Vec<u8> {
    [slice_key(window, slice), chunk.to_le_bytes().to_vec()].concat()
}

fn checksum(table: &str, key: &[u8], value: &[u8]) -> [u8; 4] {
    let mut hash = crc32fast::Hasher::new();
    for part in [table.as_bytes(), key, value] {
        hash.update(part);
    }
    hash.finalize().to_le_bytes()
}

/// The value with its checksum behind it.
fn seal(table: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    [value, &checksum(table, key, value)].concat()
}

/// The value without its checksum, which must be right.
fn unseal<'a>(table: &str, key: &[u8], sealed: &'a [u8]) -> Result<&'a [u8], Fault> {
    match sealed.split_last_chunk::<4>() {
        Some((value, sum)) if *sum == checksum(table, key, value) => Ok(value),
        _ => Err(damaged(format!("a row of the table {table} fails its checksum"))),
    }
}
