// SPDX-License-Identifier: GPL-3.0-or-later
//! Requests of readers of updates: their position, and options.

use bulkmark_counts::{Mark, Origin, Vector};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The position of a reader, shared by all readers at the same one. Blocks are cached under the hash, so that a stream advances by two
/// pointers, however many origins there are.
#[derive(Debug, Default)]
pub(super) struct Position {
    pub(super) vector: Vector,
    pub(super) name: [u8; 32],
}

impl Position {
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

/// The form of a stream's signs of life with the server's position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Alive {
    /// The whole vector each time, for readers that know nothing else.
    #[default]
    Whole,
    /// The part that changed since the last time.
    Moved,
}

/// The reader's handling of gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Gaps {
    /// The reader takes a snapshot if updates are gone.
    #[default]
    Refuse,
    /// The reader is a server, which skips updates that no longer count.
    Over,
    /// The reader is a server, which also skips origins of which other updates are gone.
    Leave,
}
