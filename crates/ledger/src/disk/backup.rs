// SPDX-License-Identifier: GPL-3.0-or-later
//! A copy of a whole ledger, made while its daemon keeps writing: all rows of one commit, copied into a new file.
//!
//! Pages cannot be copied, because they change meanwhile. So rows are copied, and the copy is an ordinary ledger.

use crate::disk::errors::{Fault, damaged};
use crate::disk::rows::{chunk_key, slice_key, unseal};
use crate::disk::schema::{
    BATCHES, BULK, BULK_NOTES, CASES, CLIENTS, Cells, JOURNAL, LAYERS, LOCAL, MARKS, MERGED, META, RECEIPTS,
    RETRIES, SPOOL, STANDINGS, STEPS, UPDATES, USER_REPORTS,
};
use crate::disk::{cases, chain, layers, user_reports};
use bulkmark_counts::history::window::Window;
use redb::{
    Database, Key, ReadTransaction, ReadableDatabase, TableDefinition, TableError, TableHandle as _, Value,
    WriteTransaction,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The approximate size of a piece in bytes.
const PIECE: usize = 64 << 10;

/// Bytes of a row's table, and of the lengths of its key and its value.
const HEAD: usize = 1 + 4 + 4;

/// Receives a piece of a copy; returns false to stop.
type Take<'a> = dyn FnMut(&[u8]) -> bool + 'a;
type Put = Box<dyn Fn(&WriteTransaction, &[u8], &[u8]) -> Result<(), redb::Error>>;
type Dump = Box<dyn Fn(&ReadTransaction, &mut Pieces<'_>) -> Result<bool, Fault>>;

/// One table, without its types.
struct Table {
    name: String,
    dump: Dump,
    put: Put,
}

/// Returns a table whose checksums cover `named`, the table's name in them, and the key in these bytes.
fn sealed<K: Key + 'static>(
    definition: TableDefinition<'static, K, &'static [u8]>,
    named: &'static str,
    key_bytes: impl Fn(&K::SelfType<'_>) -> Vec<u8> + 'static,
) -> Table {
    table(definition, move |key, value| unseal(named, &key_bytes(key), value).map(drop))
}

fn table<K: Key + 'static, V: Value + 'static>(
    definition: TableDefinition<'static, K, V>,
    check: impl Fn(&K::SelfType<'_>, &V::SelfType<'_>) -> Result<(), Fault> + 'static,
) -> Table {
    // The table's number is its place in the list.
    let dump = move |txn: &ReadTransaction, pieces: &mut Pieces<'_>| {
        let open = match txn.open_table(definition) {
            // Nothing was ever written to it.
            Err(TableError::TableDoesNotExist(_)) => return Ok(true),
            open => open?,
        };
        for row in open.range::<K::SelfType<'_>>(..)? {
            let (key, value) = row?;
            let (key, value) = (key.value(), value.value());
            check(&key, &value)?;
            if !pieces.row(K::as_bytes(&key).as_ref(), V::as_bytes(&value).as_ref()) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let put = move |txn: &WriteTransaction, key: &[u8], value: &[u8]| {
        txn.open_table(definition)?.insert(K::from_bytes(key), V::from_bytes(value))?;
        Ok(())
    };
    Table { name: definition.name().to_owned(), dump: Box::new(dump), put: Box::new(put) }
}

fn cells(tables: &Cells) -> [Table; 2] {
    let [slices, cells] = tables.names;
    [
        sealed(tables.slices, slices, |&(start, length, slice)| slice_key(Window { start, length }, slice)),
        sealed(tables.cells, cells, |&(start, length, slice, chunk)| {
            chunk_key(Window { start, length }, slice, chunk)
        }),
    ]
}

/// Returns all tables, in the order that a copy in transfer uses.
fn tables() -> Vec<Table> {
    let number = |key: &u64| key.to_le_bytes().to_vec();
    let mut all = vec![sealed(META, "meta", |name| name.as_bytes().to_vec())];
    all.extend(cells(&LOCAL));
    all.extend(cells(&MERGED));
    all.push(sealed(JOURNAL, "journal", number));
    all.push(table(RETRIES, |_, _| Ok(())));
    all.push(sealed(UPDATES, "updates", |&(origin, version)| {
        [origin, version].map(u64::to_le_bytes).concat()
    }));
    all.push(sealed(RECEIPTS, "receipts", |&(client, spool)| {
        [client.as_bytes(), &spool.to_le_bytes()].concat()
    }));
    all.push(sealed(SPOOL, "spool", number));
    all.push(sealed(BATCHES, "batches", number));
    all.push(sealed(CLIENTS, "clients", |name| name.as_bytes().to_vec()));
    all.push(sealed(LAYERS, "layers", |&key| layers::key_bytes(key)));
    all.push(sealed(BULK, "bulk", |&(start, length, part)| slice_key(Window { start, length }, part)));
    all.push(sealed(BULK_NOTES, "bulk notes", |number| number.to_le_bytes().to_vec()));
    all.push(sealed(STEPS, chain::STEPS_NAME, number));
    all.push(sealed(MARKS, chain::MARKS_NAME, |&(client, spool)| chain::mark_key(client, spool)));
    all.push(sealed(USER_REPORTS, user_reports::NAME, |key| key.to_vec()));
    all.push(sealed(CASES, cases::CASES_NAME, |key| key.to_vec()));
    all.push(sealed(STANDINGS, cases::STANDINGS_NAME, |key| key.to_vec()));
    all
}

/// Rows collected into pieces.
struct Pieces<'a> {
    table: u8,
    waiting: Vec<u8>,
    take: &'a mut Take<'a>,
}

impl Pieces<'_> {
    fn row(&mut self, key: &[u8], value: &[u8]) -> bool {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        self.waiting.push(self.table);
        self.waiting.extend_from_slice(&length(key));
        self.waiting.extend_from_slice(&length(value));
        self.waiting.extend_from_slice(key);
        self.waiting.extend_from_slice(value);
        self.waiting.len() < PIECE || self.give()
    }

    fn give(&mut self) -> bool {
        let piece = std::mem::take(&mut self.waiting);
        piece.is_empty() || (self.take)(&piece)
    }
}

/// Passes all rows of the present commit, with their checksums verified, to `take`, until that returns false. Returns false then.
pub(crate) fn dump(db: &Database, take: &mut Take<'_>) -> Result<bool, Fault> {
    let txn = db.begin_read()?;
    let tables = tables();
    for found in txn.list_tables()? {
        if !tables.iter().any(|table| table.name == found.name()) {
            return Err(damaged(format!("it has a table {} that is not known here", found.name())));
        }
    }
    let mut pieces = Pieces { table: 0, waiting: Vec::new(), take };
    for (number, table) in (0..).zip(&tables) {
        pieces.table = number;
        if !(table.dump)(&txn, &mut pieces)? {
            return Ok(false);
        }
    }
    Ok(pieces.give())
}

/// Builds a ledger from pieces. They come from a daemon of this machine, but may have been altered.
pub(crate) struct Build {
    tables: Vec<Table>,
    db: Database,
    txn: WriteTransaction,
}

impl Build {
    /// Begins in an empty database.
    pub(crate) fn new(db: Database) -> Result<Self, Fault> {
        let txn = db.begin_write()?;
        Ok(Self { tables: tables(), db, txn })
    }

    /// Adds a piece, which contains whole rows.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Fault> {
        let mut left = piece;
        while let Some(Row { table, key, value, behind }) = row(left) {
            let table = self.tables.get(usize::from(table)).ok_or_else(|| damaged("a row of no table"))?;
            // redb reads keys without checking that they are valid.
            catch_unwind(AssertUnwindSafe(|| (table.put)(&self.txn, key, value)))
                .unwrap_or_else(|_| Err(redb::Error::Corrupted("a key that is none".to_owned())))?;
            left = behind;
        }
        if left.is_empty() { Ok(()) } else { Err(damaged("a row without its end")) }
    }

    /// Finishes after the last piece: on return the ledger is on disk.
    pub(crate) fn finish(self) -> Result<Database, Fault> {
        self.txn.commit()?;
        Ok(self.db)
    }
}

/// A row, and the bytes after it.
struct Row<'a> {
    table: u8,
    key: &'a [u8],
    value: &'a [u8],
    behind: &'a [u8],
}

/// Reads the first row; `None` if it is incomplete.
fn row(bytes: &[u8]) -> Option<Row<'_>> {
    let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
    let [table, a, b, c, d, e, f, g, h] = *head;
    let (key, value) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    let (key, rest) = rest.split_at_checked(key as usize)?;
    let (value, behind) = rest.split_at_checked(value as usize)?;
    Some(Row { table, key, value, behind })
}
