// SPDX-License-Identifier: GPL-3.0-or-later
//! The files of an archive.

use serde::Serialize;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Unreadable files that are kept with path and reason; further ones are only counted.
const MAX_FAULTS: usize = 1000;

/// The user's classification of a part of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Label {
    /// None.
    #[default]
    None,
    /// Wanted mail.
    Ham,
    /// Unwanted mail.
    Spam,
}

impl Label {
    /// Returns the index of an array.
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// A file or directory of an archive that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The file or directory.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// Files that could not be read.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    listed: Vec<Fault>,
    number: u64,
}

impl Faults {
    pub(super) fn add(&mut self, path: &Path, reason: &dyn Display) {
        self.number += 1;
        if self.listed.len() < MAX_FAULTS {
            self.listed.push(Fault { path: path.display().to_string(), reason: reason.to_string() });
        }
    }

    pub(super) fn join(&mut self, other: Self) {
        self.number += other.number;
        self.listed.extend(other.listed);
        self.listed.truncate(MAX_FAULTS);
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns them in the order of their paths.
    pub(super) fn into_listed(mut self) -> Vec<Fault> {
        self.listed.sort_by(|a, b| a.path.cmp(&b.path));
        self.listed
    }
}

pub(super) struct File {
    directory: u32,
    name: Box<OsStr>,
    pub(super) label: Label,
    pub(super) size: u64,
    /// Whether it was named by the user, and not only found.
    pub(super) is_named: bool,
}

/// All files below some paths, in the order of their names.
#[derive(Default)]
pub struct Archive {
    directories: Vec<PathBuf>,
    pub(super) files: Vec<File>,
    pub(super) faults: Faults,
    /// Directories already seen and files already named, so that nothing counts twice and links make no loop.
    seen: HashSet<(u64, u64)>,
}

impl Archive {
    /// Finds all files at and below these paths. A file below two of them has the label of the one that has a label. Nothing is fatal here:
    /// unreadable files are in the report.
    #[must_use]
    pub fn find(paths: &[(PathBuf, Label)]) -> Self {
        let mut archive = Self::default();
        let (labelled, plain): (Vec<_>, Vec<_>) = paths.iter().partition(|(_, label)| *label != Label::None);
        for (path, label) in labelled.into_iter().chain(plain) {
            if let Err(e) = archive.root(path, *label) {
                archive.faults.add(path, &e);
            }
        }
        archive
    }

    /// Returns the size of all files in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    pub(super) fn path(&self, file: u32) -> PathBuf {
        let file = &self.files[file as usize];
        self.directories[file.directory as usize].join(&*file.name)
    }

    fn root(&mut self, path: &Path, label: Label) -> io::Result<()> {
        let metadata = path.metadata()?;
        if metadata.is_dir() {
            self.directory(path.to_owned(), label);
        } else if metadata.is_file() {
            if self.seen.insert((metadata.dev(), metadata.ino())) {
                let directory = self.enter(path.parent().unwrap_or_else(|| Path::new("")).to_owned());
                let name = path.file_name().unwrap_or_default();
                self.files.push(File {
                    directory,
                    name: name.into(),
                    label,
                    size: metadata.len(),
                    is_named: true,
                });
            }
        } else {
            return Err(io::Error::other("it is neither a file nor a directory"));
        }
        Ok(())
    }

    fn enter(&mut self, directory: PathBuf) -> u32 {
        self.directories.push(directory);
        u32::try_from(self.directories.len() - 1).unwrap_or(u32::MAX)
    }

    /// Adds a directory and all below it. In a maildir, `tmp` holds mail that is not delivered yet.
    fn directory(&mut self, path: PathBuf, label: Label) {
        let mut waiting = vec![path];
        while let Some(path) = waiting.pop() {
            match self.entries(&path, label) {
                // The last of the stack comes next.
                Ok(below) => waiting.extend(below.into_iter().rev()),
                Err(e) => self.faults.add(&path, &e),
            }
        }
    }

    /// Adds the files of a directory, and returns its subdirectories.
    fn entries(&mut self, path: &Path, label: Label) -> io::Result<Vec<PathBuf>> {
        let metadata = path.metadata()?;
        if !self.seen.insert((metadata.dev(), metadata.ino())) {
            return Ok(Vec::new());
        }
        let mut names: Vec<_> =
            fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        names.sort_unstable();
        let is_maildir = names.iter().any(|name| name == "cur") && names.iter().any(|name| name == "new");
        let directory = self.enter(path.to_owned());
        let mut below = Vec::new();
        for name in names {
            let path = path.join(&name);
            match path.metadata() {
                Ok(m) if m.is_dir() && is_maildir && name == "tmp" => (),
                Ok(m) if m.is_dir() => below.push(path),
                Ok(m) if m.is_file() && !self.seen.contains(&(m.dev(), m.ino())) => {
                    self.files.push(File {
                        directory,
                        name: name.into(),
                        label,
                        size: m.len(),
                        is_named: false,
                    });
                }
                Ok(_) => (),
                Err(e) => self.faults.add(&path, &e),
            }
        }
        Ok(below)
    }
}
