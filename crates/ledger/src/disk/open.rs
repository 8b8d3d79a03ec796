// SPDX-License-Identifier: GPL-3.0-or-later
//! Opening the ledger's file, to write or only to read.

use crate::disk::chain;
use crate::disk::errors::{Fault, OpenError, damaged};
use crate::disk::load::{Loaded, load};
use crate::disk::rows::SliceKey;
use crate::disk::schema::{self, FILE_NAME, LOCAL, MERGED};
use bulkmark_counts::history::window::USER_REPORT_WINDOW;
use bulkmark_counts::settings::{Role, Settings};
use bulkmark_counts::state::shares::Shares;
use bulkmark_types::{FederationKey, Signature};
use redb::{Database, ReadableTable};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

/// Opens the ledger in `directory`, or creates one if there is none, and reads all of it. `random` are the numbers for a new server
/// and a new spool.
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

/// Reads all of a ledger whose disk accepts no writes. Changes to it are lost.
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
/// See [`OpenError`]; a missing ledger is an error.
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
    // Only new origins and spools need random numbers.
    let state = open(directory, Role::Site, settings, key, [0; 2])?.state;
    Ok(signatures.iter().map(|&signature| state.shares(signature, now)).collect())
}

/// Opens an existing ledger of any role and key; returns also the id of the key. The settings are those in the file.
pub(crate) fn open_any(path: &Path, random: [u64; 2]) -> Result<(Loaded, u64), OpenError> {
    let load_any = || {
        let schema::Opened { db, role, key_id } = schema::open_any(path)?;
        let window = Duration::from_secs(window_length(&db)?);
        let mut settings = Settings { window, retention: window.saturating_mul(366), ..Settings::default() };
        if let Some(keeps) = chain::keeps(&db)?.filter(|_| role == Role::Site) {
            keeps.put_into(&mut settings.federation);
        }
        Ok((load(db, role, &settings, random)?, key_id))
    };
    catch_unwind(AssertUnwindSafe(load_any))
        .unwrap_or_else(|_| Err(damaged("its structure is not valid")))
        .map_err(|fault: Fault| fault.at(path.to_owned()))
}

/// Returns the length of the newest window of mail; a day if there is none.
fn window_length(db: &Database) -> Result<u64, Fault> {
    let txn = db.begin_write()?;
    let mut newest = None;
    for tables in [&LOCAL, &MERGED] {
        for row in txn.open_table(tables.slices)?.range::<SliceKey>(..)? {
            let (start, length, _) = row?.0.value();
            newest = newest.max(Some((start, length)).filter(|&(_, length)| length != USER_REPORT_WINDOW));
        }
    }
    txn.commit()?;
    Ok(newest.map_or_else(|| Settings::default().window.as_secs(), |(_, length)| length))
}
