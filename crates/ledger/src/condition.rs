// SPDX-License-Identifier: GPL-3.0-or-later
//! What a ledger counted, where all can read it: the writer changes it, and whoever asks for a count reads it beside the writer.

use crate::disk::load::Loaded;
use crate::errors::LedgerError;
use bulkmark_counts::state::roles::State;
use std::time::Instant;

/// Whether there are counts.
pub(crate) enum Condition {
    /// All of them; some may not be on disk yet.
    Open(Box<Loaded>),
    /// The disk failed: the counts in memory were ahead of it and are gone. Those on disk are here, if it can be read.
    Failed { reason: String, retry_at: Instant, readable: Option<Box<Loaded>> },
}

impl Condition {
    /// What can be read, after a failure only what is on disk.
    pub(crate) fn readable(&self) -> Option<&Loaded> {
        match self {
            Self::Open(loaded) => Some(loaded),
            Self::Failed { readable, .. } => readable.as_deref(),
        }
    }

    /// What may be changed; nothing after a failure.
    pub(crate) fn state_mut(&mut self) -> Option<&mut State> {
        match self {
            Self::Open(loaded) => Some(&mut loaded.state),
            Self::Failed { .. } => None,
        }
    }

    /// Whether what was changed is on disk, once it was committed.
    pub(crate) fn outcome(&self) -> Result<(), LedgerError> {
        match self {
            Self::Open(_) => Ok(()),
            Self::Failed { reason, .. } => Err(LedgerError::Unavailable(reason.clone())),
        }
    }
}
