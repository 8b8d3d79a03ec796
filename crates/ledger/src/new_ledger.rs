// SPDX-License-Identifier: GPL-3.0-or-later
//! A ledger that begins with counts from elsewhere.

use crate::disk::errors::{Fault, OpenError};
use crate::disk::load::Loaded;
use crate::disk::{commit, open, schema};
use crate::random::random;
use bulkmark_counts::history::vector::Vector;
use bulkmark_counts::settings::Role;
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::merged::MergedCounts;
use bulkmark_counts::state::roles::State;
use bulkmark_counts::state::unwritten::Merged;
use std::io;
use std::path::{Path, PathBuf};

/// A new ledger cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum NewLedgerError {
    /// There is one already.
    #[error("{0} already exists")]
    Exists(PathBuf),
    /// It cannot be made.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Makes a ledger in `directory` that holds these counts as others', this far of each origin; its own counts begin anew. `fill` adds
/// what else it is to have.
pub(super) fn write(
    directory: &Path,
    (role, key_id): (Role, u64),
    (merged, vector): (MergedCounts, &Vector),
    fill: impl FnOnce(&mut State) -> io::Result<()>,
) -> Result<PathBuf, NewLedgerError> {
    let path = directory.join(schema::FILE_NAME);
    if path.exists() {
        return Err(NewLedgerError::Exists(path));
    }
    let at = |fault: Fault| NewLedgerError::Open(fault.at(path.clone()));
    let io = |e| at(Fault::Io(e));
    schema::create(&path, role, key_id).map_err(at)?;
    let ids = [random().map_err(io)?, random().map_err(io)?];
    let (Loaded { db, mut state, .. }, _) = open::open_any(&path, ids)?;
    fill(&mut state).map_err(io)?;
    let counts = state.counts_mut();
    counts.merged = merged;
    counts.merged.mark_dirty();
    for (origin, mark) in vector.iter() {
        counts.merged.vector_mut().set(origin, mark);
    }
    counts.unwritten.merged = Merged::Replace;
    let changes = std::mem::take(&mut state.counts_mut().changes);
    let written = commit::checkpoint(&db, &state, &changes, &Expired::default());
    written.map_err(|e| io(io::Error::other(e.to_string())))?;
    Ok(path)
}
