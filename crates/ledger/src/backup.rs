// SPDX-License-Identifier: GPL-3.0-or-later
//! A backup of a ledger: a file that receives its rows.

use crate::directory::StateDirectory;
use crate::disk::aside::lock;
use crate::disk::backup::{Build, dump};
use crate::disk::errors::{Fault, OpenError};
use crate::disk::schema;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// A backup in progress. It gets its name only once it is complete; until then an older file of that name stays.
pub struct Backup {
    build: Build,
    directory: StateDirectory,
    name: String,
    path: PathBuf,
}

impl Backup {
    /// Begins a backup at `path` that only its owner may read.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn begin(path: &Path) -> Result<Self, OpenError> {
        let at = |fault: Fault| fault.at(path.to_owned());
        let io = |reason| OpenError::Io { path: path.to_owned(), reason };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = StateDirectory::open(parent.unwrap_or_else(|| Path::new("."))).map_err(io)?;
        let name = path.file_name().and_then(OsStr::to_str);
        let name = name.ok_or_else(|| io(io::Error::other("expected the name of a file")))?.to_owned();
        let unfinished = unfinished(&name);
        directory.remove(&unfinished).map_err(io)?;
        let file = directory.create(&unfinished, 0o600).map_err(io)?;
        let build = schema::empty(file).and_then(Build::new).map_err(at)?;
        Ok(Self { build, directory, name, path: path.to_owned() })
    }

    /// Adds a piece, as returned by [`Reader::backup`](crate::Reader::backup).
    ///
    /// # Errors
    /// If it cannot be written, or is not such a piece.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), OpenError> {
        self.build.push(piece).map_err(|fault| fault.at(self.path.clone()))
    }

    /// Adds all of the ledger in `directory`, which no daemon may have open. The ledger does not change.
    ///
    /// # Errors
    /// If it is damaged or in use, or the backup cannot be written.
    pub fn take_file(&mut self, directory: &Path) -> Result<(), OpenError> {
        let path = directory.join(schema::FILE_NAME);
        let file = lock(directory)?;
        let second = file.try_clone().map_err(|reason| OpenError::Io { path: path.clone(), reason })?;
        let mut written = Ok(());
        let mut take = |piece: &[u8]| {
            written = self.push(piece);
            written.is_ok()
        };
        schema::open_unchecked(second).and_then(|db| dump(&db, &mut take)).map_err(|fault| fault.at(path))?;
        drop(file);
        written
    }

    /// Drops the unfinished backup.
    pub fn abandon(self) {
        let Self { build, directory, name, .. } = self;
        drop(build);
        // If the file stays, it does no harm, and the next backup removes it.
        let _ = directory.remove(&unfinished(&name));
    }

    /// Finishes the backup after the last piece: on return it is on disk under its name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), OpenError> {
        let Self { build, directory, name, path } = self;
        let db = build.finish().map_err(|fault| fault.at(path.clone()))?;
        // A clean close makes a repair on opening unnecessary.
        drop(db);
        directory.rename(&unfinished(&name), &name).map_err(|reason| OpenError::Io { path, reason })
    }
}

fn unfinished(name: &str) -> String {
    format!("{name}.new")
}
