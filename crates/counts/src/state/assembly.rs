// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots: the rows that travel, and the counts that are put together from them.

use crate::history::refusal::Refusal;
use crate::history::row::Row;
use crate::history::update::Update;
use crate::history::vector::Vector;
use crate::settings::Settings;
use crate::state::allowance::Allowance;
use crate::state::merged::MergedCounts;
use bulkmark_filter::ParameterError;

/// A snapshot that is coming in.
pub struct Assembly {
    merged: MergedCounts,
    vector: Vector,
    allowance: Allowance,
}

impl Assembly {
    /// Of nothing yet; `vector` is that of the snapshot.
    #[must_use]
    pub fn new(settings: &Settings, vector: Vector) -> Self {
        Self { merged: MergedCounts::new(settings), vector, allowance: Allowance::default() }
    }

    /// How far each origin is in it.
    #[must_use]
    pub fn vector(&self) -> &Vector {
        if self.merged.vector().is_empty() { &self.vector } else { self.merged.vector() }
    }

    /// Adds a row. False when it does not fit its place. It takes time for each cell that the row holds, 2^23 at most.
    ///
    /// # Errors
    /// When its slice has another size than ours, or one that there is no reason for, or its place has its rows, or there is no memory.
    pub fn add(&mut self, row: &Row) -> Result<bool, ParameterError> {
        self.allowance.take(row)?;
        if let Some(origin) = row.client {
            return self.merged.layers_mut().add_row(origin, row, &mut self.allowance);
        }
        self.merged.admit(row.window, row.capacity, row.slice)?;
        self.merged.merge_chunk(row.window, row.capacity, row.slice, row.chunk, &row.bytes)
    }

    /// Applies an update that came after the snapshot, whose bytes are these. One that is in already changes nothing.
    ///
    /// # Errors
    /// When it cannot be applied.
    pub fn apply(&mut self, update: &Update, bytes: &[u8], now: u64) -> Result<(), Refusal> {
        self.settle();
        self.merged.apply(update, bytes, now).map(drop)
    }

    /// From here on the counts hold what the vector says.
    fn settle(&mut self) {
        for (origin, mark) in std::mem::take(&mut self.vector).iter() {
            self.merged.vector_mut().set(origin, mark);
        }
    }

    /// The counts that the rows made.
    pub fn into_counts(mut self) -> MergedCounts {
        self.settle();
        self.merged
    }
}
