// SPDX-License-Identifier: GPL-3.0-or-later
//! The tables of the ledger's file, and how it is opened. docs/ledger.md describes the format.

use crate::directory::StateDirectory;
use crate::disk::errors::{Fault, KEY_ID, OpenError, damaged};
use crate::disk::overlay::Overlay;
use crate::disk::rows::{ChunkKey, LayerKey, SliceKey, seal, unseal};
use bulkmark_counts::settings::Role;
use bulkmark_filter::Refined;
use bulkmark_types::FederationKey;
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The name of the ledger's file in the state directory.
pub const FILE_NAME: &str = "ledger.redb";

const FORMAT: &str = "bulkmark ledger 4";

/// The format with a fleet's steps: a program that does not know them would count too little. A ledger has it from its first step on.
const FORMAT_OF_FLEET: &str = "bulkmark ledger 5";

/// The previous format, the same except that it has no limited clients.
const FORMAT_BEFORE: &str = "bulkmark ledger 3";

/// The format and layout of a ledger's file, by which a program decides whether it can read the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FileFormat {
    /// Its format.
    pub format: String,
    /// The layout of its filters.
    pub layout: String,
}

impl FileFormat {
    /// Returns those that this program writes; a ledger with a fleet's steps has another format.
    pub(crate) fn written(with_steps: bool) -> Self {
        let format = if with_steps { FORMAT_OF_FLEET } else { FORMAT };
        Self { format: format.to_owned(), layout: Refined::layout() }
    }

    /// Checks that this program can open the ledger in `directory`, which a daemon with this answer has open.
    ///
    /// # Errors
    /// If the format or the layout is another one.
    pub fn check(&self, directory: &Path) -> Result<(), OpenError> {
        let Self { format, layout } = Self::written(false);
        let is_known = [&*format, FORMAT_OF_FLEET, FORMAT_BEFORE].contains(&&*self.format);
        let (name, found, expected) = match (is_known, self.layout == layout) {
            (true, true) => return Ok(()),
            (false, _) => ("format", &self.format, format),
            (true, false) => ("layout", &self.layout, layout),
        };
        Err(OpenError::Other { path: directory.join(FILE_NAME), name, found: found.clone(), expected })
    }
}

/// The file's permissions, whatever the umask is: a reader who has the key learns what was counted.
const MODE: u32 = 0o600;

/// The rows of `meta` that change.
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const CUT: &str = "cut";
pub(crate) const VECTOR: &str = "vector";
pub(crate) const SPOOL_STATE: &str = "spool";
pub(crate) const LAST_SENT: &str = "last sent";
pub(crate) const BULK_STATE: &str = "bulk";
pub(crate) const FLEET: &str = "fleet";

/// The row of `meta` with the origin of a server's own counts.
pub(crate) const ORIGIN: &str = "origin";

/// The row of `meta` with the id of the new federation key during a change of keys. It becomes the ledger's key id when the change ends.
const NEXT_KEY_ID: &str = "next federation key id";

/// The row of `meta` that marks a file once found damaged.
const DAMAGED: &str = "damaged";

pub(crate) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// The own filters of this ledger.
pub(crate) const LOCAL: Cells = Cells {
    slices: TableDefinition::new("slices"),
    cells: TableDefinition::new("cells"),
    names: ["slices", "cells"],
};
/// The merged filters of others.
pub(crate) const MERGED: Cells = Cells {
    slices: TableDefinition::new("merged slices"),
    cells: TableDefinition::new("merged cells"),
    names: ["merged slices", "merged cells"],
};
/// Local reports since the last checkpoint, by sequence number.
pub(crate) const JOURNAL: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("journal");
pub(crate) const RETRIES: TableDefinition<'_, &[u8; 16], u64> = TableDefinition::new("retries");
/// User reports, by reporter and nomination.
pub(crate) const USER_REPORTS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("voices");
/// Facts about signatures with user reports, by nomination.
pub(crate) const CASES: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("cases");
/// Facts about reporters.
pub(crate) const STANDINGS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("standings");
/// The updates of all origins, by origin and version.
pub(crate) const UPDATES: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("updates");
/// The last batch of each reporter, by client and spool.
pub(crate) const RECEIPTS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("receipts");
/// Reports on their way to an upstream server, by number.
pub(crate) const SPOOL: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("spool");
/// The batches that contain them, by number.
pub(crate) const BATCHES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("batches");

/// The limited clients of a server, by name.
pub(crate) const CLIENTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("clients");
/// The counts of limited clients of all servers.
pub(crate) const LAYERS: TableDefinition<'_, LayerKey, &[u8]> = TableDefinition::new("layers");

/// The list of bulk, by window and part.
pub(crate) const BULK: TableDefinition<'_, SliceKey, &[u8]> = TableDefinition::new("bulk");
/// The notes of the list of bulk, by number.
pub(crate) const BULK_NOTES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("bulk notes");
/// The steps of a fleet's chain, by version.
pub(crate) const STEPS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("fleet steps");
/// The batches of each spool that the cells include, by client and spool.
pub(crate) const MARKS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("fleet marks");

/// Two tables for the cells of filters: one with a row for each slice, one with a row for each chunk.
pub(crate) struct Cells {
    pub(crate) slices: TableDefinition<'static, SliceKey, &'static [u8]>,
    pub(crate) cells: TableDefinition<'static, ChunkKey, &'static [u8]>,
    pub(crate) names: [&'static str; 2],
}

/// The size in bytes of the database's page cache. All counts are in memory anyway; this is for the pages of one checkpoint.
const CACHE_BYTES: usize = 4 << 20;

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Opens the file, or creates an empty one, and checks its integrity and its parameters.
pub(crate) fn open(path: &Path, role: Role, key: &FederationKey) -> Result<Database, Fault> {
    let (directory, name) = place(path)?;
    let file = match directory.file(name, true) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            create(path, role, key.id())?;
            directory.file(name, true)
        }
        found => found,
    };
    let file = file.map_err(Fault::Io)?;
    hide(&file)?;
    let db = whole(open_file(file)?)?;
    let txn = db.begin_write()?;
    check_parameters(&txn, role, key)?;
    txn.commit()?;
    Ok(db)
}

/// Opens the file only to read it, while its disk accepts no writes. Writes to it are lost.
pub(crate) fn open_overlay(path: &Path) -> Result<Database, Fault> {
    whole(builder().create_with_backend(Overlay::open(path).map_err(Fault::Io)?)?)
}

/// An open ledger file, with the parameters that it was made with.
pub(crate) struct Opened {
    pub(crate) db: Database,
    pub(crate) role: Role,
    pub(crate) key_id: u64,
}

/// Opens an existing file of any role and key, which are returned. Its format must be this program's.
pub(crate) fn open_any(path: &Path) -> Result<Opened, Fault> {
    let (directory, name) = place(path)?;
    let db = whole(open_file(directory.file(name, true).map_err(Fault::Io)?)?)?;
    let txn = db.begin_write()?;
    refuse_damaged(&txn)?;
    renew_format(&txn)?;
    let text = |name| -> Result<String, Fault> {
        let row = get_meta(&txn, name)?.ok_or_else(|| damaged(format!("it has no {name}")))?;
        Ok(String::from_utf8_lossy(&row).into_owned())
    };
    for (name, expected) in [("format", FORMAT.to_owned()), ("layout", Refined::layout())] {
        let found = text(name)?;
        if found != expected && !is_format_of_fleet(name, &found) {
            return Err(Fault::Other { name, found, expected });
        }
    }
    let role = if text("role")? == Role::Server.to_string() { Role::Server } else { Role::Site };
    let key_id = key_id(&txn)?;
    txn.commit()?;
    Ok(Opened { db, role, key_id })
}

/// Creates a database without rows in an empty file.
pub(crate) fn empty(file: File) -> Result<Database, Fault> {
    Ok(builder().create_file(file)?)
}

/// Opens a file to read single rows of it. Writes to it are lost.
pub(crate) fn open_unchecked(file: File) -> Result<Database, Fault> {
    Ok(builder().create_with_backend(Overlay::new(file).map_err(Fault::Io)?)?)
}

/// Returns the id of the key of a ledger's signatures.
pub(crate) fn key_id(txn: &WriteTransaction) -> Result<u64, Fault> {
    let row = get_meta(txn, KEY_ID)?.ok_or_else(|| damaged(format!("it has no {KEY_ID}")))?;
    let text = String::from_utf8_lossy(&row);
    u64::from_str_radix(&text, 16).map_err(|_| damaged(format!("its key id is {text:?}")))
}

/// Checks the integrity of all pages.
fn whole(mut db: Database) -> Result<Database, Fault> {
    let sound = db.check_integrity()?;
    let txn = db.begin_write()?;
    if !sound {
        // redb went back to an older intact state. The next start must not take that for the ledger.
        txn.open_table(META)?.insert(DAMAGED, &[][..])?;
        txn.commit()?;
        return Err(damaged("pages failed their checksums"));
    }
    txn.commit()?;
    Ok(db)
}

/// Creates an empty ledger. It gets its name once it is complete, so that a crash at the first start leaves none rather
/// than half of one.
pub(crate) fn create(path: &Path, role: Role, key_id: u64) -> Result<(), Fault> {
    let (directory, name) = place(path)?;
    let unfinished = format!("{name}.new");
    directory.remove(&unfinished).map_err(Fault::Io)?;
    let db = builder().create_file(directory.create(&unfinished, MODE).map_err(Fault::Io)?)?;
    let txn = db.begin_write()?;
    for (name, value) in parameters(role, key_id) {
        put_meta(&txn, name, value.as_bytes())?;
    }
    txn.commit()?;
    drop(db);
    directory.rename(&unfinished, name).map_err(Fault::Io)
}

/// Returns a ledger's directory, and its name there.
fn place(path: &Path) -> Result<(StateDirectory, &str), Fault> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Fault::Io(io::Error::other("its name is not valid UTF-8")))?;
    StateDirectory::open(directory.unwrap_or_else(|| Path::new(".")))
        .map(|directory| (directory, name))
        .map_err(Fault::Io)
}

/// Opens an existing database. redb would create a new one in an empty file.
fn open_file(file: File) -> Result<Database, Fault> {
    if file.metadata().map_err(Fault::Io)?.len() == 0 {
        return Err(damaged("it is empty"));
    }
    Ok(builder().create_file(file)?)
}

/// Withdraws others' permissions for the file, which an older start may have granted by its umask. Only its owner can.
fn hide(file: &File) -> Result<(), Fault> {
    let mode = file.metadata().map_err(Fault::Io)?.permissions().mode();
    if mode & 0o007 != 0 && file.set_permissions(Permissions::from_mode(mode & 0o770)).is_err() {
        log::warn!("everybody may read the ledger, and its mode cannot be changed");
    }
    Ok(())
}

/// The parameters on which a ledger's cells depend.
fn parameters(role: Role, key_id: u64) -> [(&'static str, String); 4] {
    [
        ("format", FORMAT.to_owned()),
        ("role", role.to_string()),
        ("layout", Refined::layout()),
        (KEY_ID, format!("{key_id:016x}")),
    ]
}

fn refuse_damaged(txn: &WriteTransaction) -> Result<(), Fault> {
    if txn.open_table(META)?.get(DAMAGED)?.is_some() {
        return Err(damaged("pages failed their checksums at an earlier start"));
    }
    Ok(())
}

/// Converts a ledger of the previous format: a program without limited clients must not count with it.
fn renew_format(txn: &WriteTransaction) -> Result<(), Fault> {
    if get_meta(txn, "format")?.is_some_and(|format| format == FORMAT_BEFORE.as_bytes()) {
        put_meta(txn, "format", FORMAT.as_bytes())?;
    }
    Ok(())
}

fn is_format_of_fleet(name: &str, found: &str) -> bool {
    name == "format" && found == FORMAT_OF_FLEET
}

/// Whether the ledger ever had a fleet's steps.
pub(crate) fn is_of_fleet(txn: &WriteTransaction) -> Result<bool, redb::Error> {
    let format = seal("meta", b"format", FORMAT_OF_FLEET.as_bytes());
    Ok(txn.open_table(META)?.get("format")?.is_some_and(|row| row.value() == format))
}

/// Records that the ledger has a fleet's steps from now on.
pub(crate) fn begin_fleet(txn: &WriteTransaction) -> Result<(), redb::Error> {
    put_meta(txn, "format", FORMAT_OF_FLEET.as_bytes())
}

/// Checks the parameters of a ledger; the key is the last of them.
pub(crate) fn check_parameters(txn: &WriteTransaction, role: Role, key: &FederationKey) -> Result<(), Fault> {
    refuse_damaged(txn)?;
    renew_format(txn)?;
    follow_key(txn, key)?;
    for (name, expected) in parameters(role, key.id()) {
        let row = get_meta(txn, name)?.ok_or_else(|| damaged(format!("it has no {name}")))?;
        let found = String::from_utf8_lossy(&row).into_owned();
        if found != expected && !is_format_of_fleet(name, &found) {
            return Err(Fault::Other { name, found, expected });
        }
    }
    Ok(())
}

/// Gives a ledger the id of its key if the federation changes, or has changed, from one to the other: it holds signatures under both.
fn follow_key(txn: &WriteTransaction, key: &FederationKey) -> Result<(), Fault> {
    let text = |id: u64| format!("{id:016x}").into_bytes();
    let (ours, found) = (text(key.id()), get_meta(txn, KEY_ID)?);
    let next = get_meta(txn, NEXT_KEY_ID)?.filter(|next| !next.is_empty());
    let has_changed = next.as_ref() == Some(&ours);
    // An administrator may put the old key back into the configuration.
    let changes_again = key.next_id().map(text).is_some_and(|next| found == Some(next));
    if found.as_ref() != Some(&ours) && (has_changed || changes_again) {
        put_meta(txn, KEY_ID, &ours)?;
    }
    let wanted = key.next_id().map(text);
    if next != wanted && get_meta(txn, KEY_ID)?.as_ref() == Some(&ours) {
        put_meta(txn, NEXT_KEY_ID, &wanted.unwrap_or_default())?;
    }
    Ok(())
}

/// Reads a row of `meta`, without its checksum.
pub(crate) fn get_meta(txn: &WriteTransaction, name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let meta = txn.open_table(META)?;
    let Some(row) = meta.get(name)? else { return Ok(None) };
    unseal("meta", name.as_bytes(), row.value()).map(|value| Some(value.to_vec()))
}

pub(crate) fn put_meta(txn: &WriteTransaction, name: &str, value: &[u8]) -> Result<(), redb::Error> {
    txn.open_table(META)?.insert(name, &*seal("meta", name.as_bytes(), value))?;
    Ok(())
}
