// SPDX-License-Identifier: GPL-3.0-or-later
//! A backup of a ledger: the file that its rows are put into.

use crate::directory::StateDirectory;
use crate::disk::aside::lock;
use crate::disk::backup::{Build, dump};
use crate::disk::errors::{Fault, OpenError};
use crate::disk::schema;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// A backup that is being made. It has its name only once it is complete; what was there before stays until then.
pub struct Backup {
    build: Build,
    directory: StateDirectory,
    name: String,
    path: PathBuf,
}

impl Backup {
    /// Begins one at `path`, which only its owner may read.
    ///
    /// # Errors
    /// When nothing can be written there.
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

    /// Takes a piece of it, as [`Reader::backup`](crate::Reader::backup) gives them.
    ///
    /// # Errors
    /// When it cannot be written, or is no such piece.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), OpenError> {
        self.build.push(piece).map_err(|fault| fault.at(self.path.clone()))
    }

    /// Takes all of the ledger in `directory`, which no daemon has open. It is not changed.
    ///
    /// # Errors
    /// When it is damaged or in use, or the backup cannot be written.
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

    /// Lets go of what came.
    pub fn abandon(self) {
        let Self { build, directory, name, .. } = self;
        drop(build);
        // It is in nobody's way, and the next backup removes it.
        let _ = directory.remove(&unfinished(&name));
    }

    /// All of it came: on return it is on disk under its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<(), OpenError> {
        let Self { build, directory, name, path } = self;
        let db = build.finish().map_err(|fault| fault.at(path.clone()))?;
        // It is closed in good order, so that nobody has to repair it.
        drop(db);
        directory.rename(&unfinished(&name), &name).map_err(|reason| OpenError::Io { path, reason })
    }
}

fn unfinished(name: &str) -> String {
    format!("{name}.new")
}
