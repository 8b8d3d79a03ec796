// SPDX-License-Identifier: GPL-3.0-or-later
//! Changes of a spool that are not on disk yet.

use super::Waiting;
use std::collections::BTreeSet;

/// What changed in a spool since the last commit.
#[derive(Default)]
pub struct SpoolChanges {
    /// Reports that were put into it, in its order.
    pub waiting: Vec<Waiting>,
    /// Numbers of batches that are new or were acknowledged.
    pub batches: BTreeSet<u64>,
    /// Reports or batches left it, or it has another number.
    pub settled: bool,
    /// The number below which its reports have other numbers than on disk.
    pub renumbered: Option<u64>,
}

impl SpoolChanges {
    /// Whether a commit would write nothing of it.
    pub fn is_empty(&self) -> bool {
        let Self { waiting, batches, settled, renumbered } = self;
        waiting.is_empty() && batches.is_empty() && !settled && renumbered.is_none()
    }
}
