// SPDX-License-Identifier: GPL-3.0-or-later
//! A ledger that begins with counts from elsewhere.

use crate::directory::StateDirectory;
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

/// The name of an incomplete ledger. One that was left by a crash is replaced the next time.
const UNFINISHED: &str = "ledger.redb.begun";

/// The reason why a new ledger cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum NewLedgerError {
    /// There is one already.
    #[error("{0} already exists")]
    Exists(PathBuf),
    /// It cannot be created.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Creates a ledger in `directory` that holds these counts as others', with this version of each origin, and no own counts. `fill`
/// adds the rest of its content.
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
    // It gets its name when it is complete: a program that opened an empty one would count from zero.
    let unfinished = directory.join(UNFINISHED);
    let at = |fault: Fault| NewLedgerError::Open(fault.at(path.clone()));
    let io = |e| at(Fault::Io(e));
    schema::create(&unfinished, role, key_id).map_err(at)?;
    let ids = [random().map_err(io)?, random().map_err(io)?];
    let (Loaded { db, mut state, .. }, _) = open::open_any(&unfinished, ids)?;
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
    drop(db);
    match StateDirectory::open(directory).and_then(|state| state.rename_new(UNFINISHED, schema::FILE_NAME)) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(NewLedgerError::Exists(path)),
        renamed => renamed.map_err(io).map(|()| path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_counts::settings::Settings;

    /// After a crash or an error half-way nothing looks like a ledger; the next attempt succeeds.
    #[test]
    fn an_incomplete_ledger_has_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let counts = || MergedCounts::new(&Settings::default());
        let ledger = directory.path().join(schema::FILE_NAME);
        let begin = |fill: &dyn Fn() -> io::Result<()>| {
            write(directory.path(), (Role::Server, 7), (counts(), &Vector::new()), |_| fill())
        };
        let crash = || {
            assert!(!ledger.exists(), "it is not there before it is whole");
            Err(io::Error::other("the machine stops"))
        };
        for _ in 0..2 {
            assert!(matches!(begin(&crash), Err(NewLedgerError::Open(_))));
            assert!(!ledger.exists());
        }
        assert_eq!(begin(&|| Ok(())).unwrap(), ledger);
        assert!(matches!(begin(&|| Ok(())), Err(NewLedgerError::Exists(_))));
        let others = std::fs::read_dir(directory.path()).unwrap();
        let others: Vec<_> = others.map(|entry| entry.unwrap().file_name()).collect();
        assert!(!others.iter().any(|name| name.to_string_lossy().contains("begun")), "{others:?}");
    }
}
