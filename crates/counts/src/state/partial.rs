// SPDX-License-Identifier: GPL-3.0-or-later
//! A milter with a partial copy, which has only bulk of others' counts.

use crate::history::bulk::{BulkMark, Note, Section};
use crate::history::vector::{Chain, Mark, Origin};
use crate::settings::Settings;
use crate::state::bulk_counts::BulkCounts;
use crate::state::cache::Cache;
use crate::state::kept::KeptNote;
use crate::state::merged::MergedCounts;
use std::sync::Arc;

/// A list of bulk that is being received.
pub struct BulkAssembly {
    mark: BulkMark,
    versions: Vec<(Origin, u64)>,
    held: BulkCounts,
}

impl BulkAssembly {
    /// An empty list. The complete list has this `mark`, and all counts up to these versions.
    #[must_use]
    pub fn new(settings: &Settings, mark: BulkMark, versions: Vec<(Origin, u64)>) -> Self {
        Self { mark, versions, held: BulkCounts::new(settings) }
    }

    /// Adds a part of it. Returns false if all of it was on the list before.
    pub fn add(&mut self, section: &Section, now: u64) -> bool {
        let mut is_new = false;
        self.held.raise(section, now, |_, _, _| is_new = true);
        is_new
    }
}

/// A note does not follow the last known one of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("note {found} of bulk came, and {known} is the last one known here; those between are missing")]
pub struct NoteGap {
    /// The number that came.
    pub found: u64,
    /// The number of the last known one.
    pub known: u64,
}

impl Cache {
    /// Applies a note of the known list. Returns false if it was applied before.
    ///
    /// # Errors
    /// If notes are missing before it; nothing is changed then.
    pub fn take_note(&mut self, note: &Note, bytes: Arc<[u8]>, now: u64) -> Result<bool, NoteGap> {
        self.counts.clock = now;
        let known = self.counts.bulk.number;
        if note.number <= known {
            return Ok(false);
        }
        if note.number > known + 1 {
            return Err(NoteGap { found: note.number, known });
        }
        self.counts.take_note(note, &bytes, now);
        self.counts.changes.notes.push(KeptNote { number: note.number, at: now, bytes });
        self.settle();
        Ok(true)
    }

    /// Adopts a whole list, in place of all others' counts.
    pub fn adopt_bulk(&mut self, assembly: BulkAssembly) {
        let BulkAssembly { mark, versions, held } = assembly;
        self.counts.held = held;
        self.counts.bulk = mark;
        self.counts.replace(MergedCounts::new(&self.counts.settings));
        self.counts.move_to(&versions);
        self.counts.changes.notes.clear();
        self.counts.unwritten.relisted = true;
        self.settle();
    }

    /// Drops the list of bulk.
    pub fn forget_bulk(&mut self) {
        if self.counts.bulk.is_begun() {
            self.counts.held = BulkCounts::new(&self.counts.settings);
            self.counts.bulk = BulkMark::default();
            self.counts.changes.notes.clear();
            self.counts.relist();
        }
    }
}

impl super::counts::Counts {
    /// Applies a note with its bytes.
    pub fn take_note(&mut self, note: &Note, bytes: &[u8], now: u64) {
        for section in &note.sections {
            self.held.raise(section, now, |_, _, _| ());
        }
        self.move_to(&note.moved);
        self.bulk = self.bulk.after(note.number, bytes);
    }

    /// Moves the vector to the versions of the list of bulk. A version never decreases, and has no hash, as no update continues it here.
    pub fn move_to(&mut self, versions: &[(Origin, u64)]) {
        let vector = self.merged.vector_mut();
        for &(origin, version) in versions {
            if version > vector.get(origin).version {
                vector.set(origin, Mark { version, chain: Chain::default() });
            }
        }
    }
}
