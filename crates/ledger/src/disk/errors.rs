// SPDX-License-Identifier: GPL-3.0-or-later
//! Errors of the ledger's file.

use crate::errors::LedgerError;
use bulkmark_counts::history::fields::CutOff;
use bulkmark_filter::ParameterError;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the parameter with the id of the ledger's key.
pub(crate) const KEY_ID: &str = "federation key id";

/// The reason why the ledger's file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory or file cannot be used at all.
    #[error("cannot open the ledger {path}: {reason}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: io::Error,
    },
    /// Another process holds it.
    #[error(
        "the ledger {path} is in use by another process; is a milter already running on this state directory?"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Its content has changed since it was written.
    #[error(
        "the ledger {path} is damaged ({damage}). Restore it from a backup, or move it away to begin with empty counts"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        damage: String,
    },
    /// It was written with other parameters.
    #[error(
        "the ledger {path} has {name} {found}, but this configuration needs {expected}. To go on with empty counts, \
         bulkmark ledger begin keeps it beside a new one"
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// The parameter.
        name: &'static str,
        /// Its value in the file.
        found: String,
        /// The value that the configuration needs.
        expected: String,
    },
}

impl OpenError {
    /// Whether the file is sound and only belongs to another federation key.
    #[must_use]
    pub fn is_of_another_key(&self) -> bool {
        matches!(self, Self::Other { name: KEY_ID, .. })
    }
}

/// A change did not reach the disk.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct WriteError {
    message: String,
    /// The kind of an I/O error.
    kind: Option<io::ErrorKind>,
}

impl WriteError {
    /// Returns the message with the ledger's path and the remedy.
    pub(crate) fn at(&self, path: &Path) -> String {
        let directory = path.parent().unwrap_or(path).display();
        let remedy = match self.kind {
            Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                format!("make room there (df -h {directory}; df -i {directory})")
            }
            Some(io::ErrorKind::ReadOnlyFilesystem) => {
                "mount its file system writable (dmesg shows why it is not)".to_owned()
            }
            Some(io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {
                format!("the daemon's user must be able to write to {directory} (bulkmark doctor)")
            }
            _ => "dmesg may show the error of its disk".to_owned(),
        };
        format!("cannot write the ledger {}: {}; {remedy}", path.display(), self.message)
    }
}

impl<E: Into<redb::Error>> From<E> for WriteError {
    fn from(error: E) -> Self {
        let error = error.into();
        let kind = if let redb::Error::Io(error) = &error { Some(error.kind()) } else { None };
        Self { message: error.to_string(), kind }
    }
}

/// The failure of a step of opening, which does not know the path yet.
pub(crate) enum Fault {
    Damaged(String),
    Io(io::Error),
    InUse,
    Other { name: &'static str, found: String, expected: String },
}

pub(crate) fn damaged(damage: impl Into<String>) -> Fault {
    Fault::Damaged(damage.into())
}

impl From<CutOff> for Fault {
    fn from(_: CutOff) -> Self {
        damaged("a row is too short")
    }
}

/// Returns the fault for cells that do not fit into memory.
pub(crate) fn no_memory(error: ParameterError) -> Fault {
    Fault::Io(io::Error::new(io::ErrorKind::OutOfMemory, error))
}

impl From<redb::Error> for Fault {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => Self::Io(error),
            redb::Error::DatabaseAlreadyOpen => Self::InUse,
            other => Self::Damaged(other.to_string()),
        }
    }
}

/// A blanket `From<E: Into<redb::Error>>` would overlap with `From<CutOff>`, which is of another crate.
macro_rules! fault_from {
    ($($error:ident),*) => { $(impl From<redb::$error> for Fault {
        fn from(error: redb::$error) -> Self {
            redb::Error::from(error).into()
        }
    })* };
}

fault_from!(CommitError, DatabaseError, SetDurabilityError, StorageError, TableError, TransactionError);

impl From<Fault> for LedgerError {
    fn from(fault: Fault) -> Self {
        Self::Unavailable(match fault {
            Fault::Damaged(damage) => format!("the ledger is damaged ({damage})"),
            Fault::Io(e) => e.to_string(),
            Fault::InUse | Fault::Other { .. } => "the ledger is not readable".to_owned(),
        })
    }
}

impl Fault {
    pub(crate) fn at(self, path: PathBuf) -> OpenError {
        match self {
            // redb reports a foreign or truncated file by these kinds.
            Self::Io(e) if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                OpenError::Damaged { path, damage: e.to_string() }
            }
            Self::Io(reason) => OpenError::Io { path, reason },
            Self::InUse => OpenError::InUse { path },
            Self::Damaged(damage) => OpenError::Damaged { path, damage },
            Self::Other { name, found, expected } => OpenError::Other { path, name, found, expected },
        }
    }
}

/// Converts an error of the disk for a caller of the ledger.
pub(crate) fn unavailable(error: impl Into<redb::Error>) -> LedgerError {
    LedgerError::Unavailable(error.into().to_string())
}
