// SPDX-License-Identifier: GPL-3.0-or-later
//! Changes of a spool that are not on disk yet.

use super::Waiting;
use std::collections::BTreeSet;

/// The changes of a spool since the last commit.
#[derive(Default)]
pub struct SpoolChanges {
    /// Added reports, in its order.
    pub waiting: Vec<Waiting>,
    /// Numbers of batches that are new or were acknowledged.
    pub batches: BTreeSet<u64>,
    /// Whether reports or batches left it, or its number changed.
    pub settled: bool,
    /// Reports below this number have other numbers than on disk.
    pub renumbered: Option<u64>,
}

impl SpoolChanges {
    /// Whether a commit would write nothing.
    pub fn is_empty(&self) -> bool {
        let Self { waiting, batches, settled, renumbered } = self;
        waiting.is_empty() && batches.is_empty() && !settled && renumbered.is_none()
    }
}
