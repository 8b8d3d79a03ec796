// SPDX-License-Identifier: GPL-3.0-or-later
//! What readers of updates ask for: from where on, and how.

use bulkmark_counts::{Mark, Origin, Vector};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// How far a reader is, for all who are there. Blocks are kept under the name, so that a stream moves on by two pointers, however
/// many origins there are.
#[derive(Debug, Default)]
pub(super) struct At {
    pub(super) vector: Vector,
    pub(super) name: [u8; 32],
}

impl At {
    pub(super) fn of(vector: Vector) -> Arc<Self> {
        let mut hash = Sha256::new();
        for (Origin(origin), Mark { version, chain }) in vector.iter() {
            hash.update(origin.to_le_bytes());
            hash.update(version.to_le_bytes());
            hash.update(chain.0);
        }
        Arc::new(Self { vector, name: hash.finalize().into() })
    }
}

/// How a stream says how far the server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Alive {
    /// As a whole each time, for readers that know nothing else.
    #[default]
    Whole,
    /// What moved since the last time.
    Moved,
}

/// Who reads updates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Gaps {
    /// One who takes a snapshot when updates are gone.
    #[default]
    Refuse,
    /// A server, which passes over updates that count nowhere any more.
    Over,
    /// A server which does without origins of which others are gone.
    Leave,
}
