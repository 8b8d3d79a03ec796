// SPDX-License-Identifier: GPL-3.0-or-later
//! Checks whether a disk that failed accepts writes again.

use crate::directory::StateDirectory;
use crate::disk::errors::WriteError;
use std::io::{self, Write as _};
use std::path::Path;

/// A file that is created and removed at once.
const NAME: &str = "room.tmp";

/// Its size in bytes. A full disk often has room for the next small commit but not for the one after; without this test, a ledger would
/// recover and fail again every few seconds.
const NEEDED: usize = 1 << 20;

/// Writes that much into the directory, and removes it.
pub(crate) fn try_out(directory: &Path) -> Result<(), WriteError> {
    let tried = || -> io::Result<()> {
        let directory = StateDirectory::open(directory)?;
        directory.remove(NAME)?;
        let mut file = directory.create(NAME, 0o600)?;
        let written = file.write_all(&vec![0; NEEDED]).and_then(|()| file.sync_all());
        drop(file);
        directory.remove(NAME)?;
        written
    };
    tried().map_err(|e| WriteError::from(redb::Error::Io(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leaves_nothing_behind_and_names_the_place() {
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            try_out(directory.path()).unwrap();
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        }
        let gone = directory.path().join("gone");
        let message = try_out(&gone).unwrap_err().at(&gone.join("ledger.redb"));
        assert!(
            message.starts_with(&format!("cannot write the ledger {}/ledger.redb: ", gone.display())),
            "{message}"
        );
        assert!(
            message.ends_with(&format!("able to write to {} (bulkmark doctor)", gone.display())),
            "{message}"
        );
    }
}
