// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts of a ledger, shared by all threads: the writer changes them, and others read them beside it.

use crate::disk::load::Loaded;
use crate::errors::LedgerError;
use bulkmark_counts::state::roles::State;
use std::time::Instant;

/// Whether there are counts.
pub(crate) enum Condition {
    /// All counts; some may not be on disk yet.
    Open(Box<Loaded>),
    /// The disk failed: the counts in memory were ahead of it and are gone. Here are those on disk, if it can be read.
    Failed { reason: String, retry_at: Instant, readable: Option<Box<Loaded>> },
}

impl Condition {
    /// Returns the readable counts: after a failure, only those on disk.
    pub(crate) fn readable(&self) -> Option<&Loaded> {
        match self {
            Self::Open(loaded) => Some(loaded),
            Self::Failed { readable, .. } => readable.as_deref(),
        }
    }

    /// Returns the state to change; `None` after a failure.
    pub(crate) fn state_mut(&mut self) -> Option<&mut State> {
        match self {
            Self::Open(loaded) => Some(&mut loaded.state),
            Self::Failed { .. } => None,
        }
    }

    /// Returns, after a commit, whether the changes are on disk.
    pub(crate) fn outcome(&self) -> Result<(), LedgerError> {
        match self {
            Self::Open(_) => Ok(()),
            Self::Failed { reason, .. } => Err(LedgerError::Unavailable(reason.clone())),
        }
    }
}
