// SPDX-License-Identifier: GPL-3.0-or-later
//! A ledger that is put aside for another one: it keeps a dated name, and is used again when its key is.

use crate::directory::StateDirectory;
use crate::disk::errors::{Fault, KEY_ID, OpenError, damaged};
use crate::disk::load::load_spool;
use crate::disk::schema::{self, FILE_NAME};
use bulkmark_counts::settings::{Role, Settings};
use bulkmark_counts::state::spool::Spool;
use bulkmark_types::{FederationKey, writable_time};
use humantime_serde::re::humantime::format_rfc3339_seconds;
use std::fs::{File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The ledger that the next start will use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStart {
    /// No ledger: a new one begins.
    Empty,
    /// A ledger with this role and key, which continues.
    Fits,
    /// A ledger made under another key. A new one begins.
    OtherKey {
        /// The id of its key.
        id: u64,
        /// The number of its reports that no server accepted.
        unsent: u64,
    },
}

/// A ledger that was put aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutAside {
    /// Where it is now.
    pub path: PathBuf,
    /// The id of the key that it was made under; `None` if it cannot be read.
    pub key_id: Option<u64>,
    /// The number of its reports that no server accepted.
    pub unsent: u64,
}

/// The result of a change of key in a state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// The ledger of the other key, put aside.
    pub kept: PutAside,
    /// The ledger of this key that was put aside earlier and continues now; if there is none, a new one begins.
    pub resumed: Option<PathBuf>,
}

/// Returns the ledger that a start as `role` under `key` would use in `directory`. Nothing changes, and a daemon's ledger is not read.
///
/// # Errors
/// An error that would end the start; and [`OpenError::InUse`] while a daemon runs.
pub fn next_start(directory: &Path, role: Role, key: &FederationKey) -> Result<NextStart, OpenError> {
    let path = directory.join(FILE_NAME);
    let file = match lock(directory) {
        Err(OpenError::Io { reason, .. }) if reason.kind() == io::ErrorKind::NotFound => {
            return Ok(NextStart::Empty);
        }
        locked => locked?,
    };
    let inspect = || match inspect(file, Some((role, key))) {
        Ok(_) => Ok(NextStart::Fits),
        Err((Fault::Other { name: KEY_ID, .. }, Some((id, unsent)))) => {
            Ok(NextStart::OtherKey { id, unsent })
        }
        Err((fault, _)) => Err(fault),
    };
    catch_panic(inspect).map_err(|fault| fault.at(path))
}

/// Puts the ledger in `directory` aside, so that the next start begins a new one. Returns `None` if there is no ledger.
///
/// # Errors
/// If a daemon has it open, or it cannot be renamed.
pub fn put_aside(directory: &Path, now: u64) -> Result<Option<PutAside>, OpenError> {
    let path = directory.join(FILE_NAME);
    let io = |reason| OpenError::Io { path: path.clone(), reason };
    let file = match lock(directory) {
        Err(OpenError::Io { reason, .. }) if reason.kind() == io::ErrorKind::NotFound => return Ok(None),
        locked => locked?,
    };
    // A damaged one is put aside, too. The lock goes with the file, so a second handle is read.
    let copy = file.try_clone().map_err(io)?;
    let found = catch_panic(|| inspect(copy, None).map_err(|(fault, _)| fault)).ok();
    let time = format_rfc3339_seconds(writable_time(now)).to_string().replace(':', "");
    let name = match found {
        Some((id, _)) => format!("{}{time}{ENDING}", beginning(id)),
        None => format!("ledger-{time}{ENDING}"),
    };
    let state = StateDirectory::open(directory).map_err(io)?;
    state.rename_new(FILE_NAME, &name).map_err(io)?;
    drop(file);
    let (key_id, unsent) = found.map_or((None, 0), |(id, unsent)| (Some(id), unsent));
    Ok(Some(PutAside { path: directory.join(name), key_id, unsent }))
}

/// Changes the ledger in `directory`, which was made under another key, for one under `key`: the former is put aside, and the newest
/// ledger of `key` that was put aside takes its place. No program wrote to that one since, so it continues as after a stop.
///
/// # Errors
/// As [`put_aside`].
pub fn change_key(directory: &Path, key: &FederationKey, now: u64) -> Result<KeyChange, OpenError> {
    let path = directory.join(FILE_NAME);
    let io = |reason| OpenError::Io { path: path.clone(), reason };
    let kept = put_aside(directory, now)?.ok_or_else(|| io(io::ErrorKind::NotFound.into()))?;
    let beginning = beginning(key.id());
    let mut before: Vec<String> = std::fs::read_dir(directory)
        .map_err(io)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(&beginning) && name.ends_with(ENDING))
        .collect();
    // The names contain dates.
    before.sort_unstable();
    let resumed = match before.pop() {
        None => None,
        Some(name) => {
            StateDirectory::open(directory)
                .and_then(|state| state.rename_new(&name, FILE_NAME))
                .map_err(io)?;
            Some(directory.join(name))
        }
    };
    Ok(KeyChange { kept, resumed })
}

const ENDING: &str = ".redb";

fn beginning(key_id: u64) -> String {
    format!("ledger-{key_id:016x}-")
}

/// Opens and locks the ledger's file. Each program that has a ledger open holds this lock, so until the result is dropped no other can open it.
pub(crate) fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join(FILE_NAME);
    let io = |reason| OpenError::Io { path: path.clone(), reason };
    let file = StateDirectory::open(directory).and_then(|state| state.file(FILE_NAME, false)).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path }),
        Err(TryLockError::Error(e)) => Err(io(e)),
    }
}

/// Catches panics of redb, which may panic on pages that no version of it has written.
fn catch_panic<T>(inspect: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(inspect)).unwrap_or_else(|_| Err(damaged("its structure is not valid")))
}

/// The id of a ledger's key, and the number of its reports that no server accepted.
type Inspected = (u64, u64);

/// Reads the id of the key and the unsent reports; with `fits`, also checks role and key. An error comes with the data read before it.
fn inspect(
    file: File,
    fits: Option<(Role, &FederationKey)>,
) -> Result<Inspected, (Fault, Option<Inspected>)> {
    let plain = |fault| (fault, None);
    let db = schema::open_unchecked(file).map_err(plain)?;
    let txn = db.begin_write().map_err(|e| plain(e.into()))?;
    let inspected = || {
        let id = schema::key_id(&txn)?;
        let spool = load_spool(&txn, &Settings::default())?;
        Ok((id, spool.as_ref().map_or(0, Spool::unsent)))
    };
    let inspected = inspected().map_err(plain)?;
    match fits.map_or(Ok(()), |(role, key)| schema::check_parameters(&txn, role, key)) {
        Ok(()) => Ok(inspected),
        Err(fault) => Err((fault, Some(inspected))),
    }
}
