// SPDX-License-Identifier: GPL-3.0-or-later
//! A copy of a ledger, for experiments.

use crate::directory::StateDirectory;
use crate::disk::errors::OpenError;
use crate::disk::schema::FILE_NAME;
use std::fs::TryLockError;
use std::io;
use std::path::Path;

/// Copies the ledger in the directory `from`, which no daemon may have open, to the directory `to`. The original does not change.
///
/// # Errors
/// See [`OpenError`]; a missing ledger is an error.
pub fn copy(from: &Path, to: &Path) -> Result<(), OpenError> {
    let path = from.join(FILE_NAME);
    let io = |reason| OpenError::Io { path: path.clone(), reason };
    let source = StateDirectory::open(from).and_then(|from| from.file(FILE_NAME, false));
    let mut source = source.map_err(io)?;
    // Each program that has a ledger open holds this lock. No other can open it until the copy is complete.
    match source.try_lock_shared() {
        Ok(()) => (),
        Err(TryLockError::WouldBlock) => return Err(OpenError::InUse { path }),
        Err(TryLockError::Error(e)) => return Err(io(e)),
    }
    let target = to.join(FILE_NAME);
    let written = |reason| OpenError::Io { path: target.clone(), reason };
    let made = StateDirectory::open(to).and_then(|to| to.create(FILE_NAME, 0o600));
    made.and_then(|mut target| io::copy(&mut source, &mut target)).map_err(written)?;
    Ok(())
}
