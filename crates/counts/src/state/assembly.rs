// SPDX-License-Identifier: GPL-3.0-or-later
//! The assembly of a snapshot from its rows.

use crate::history::refusal::Refusal;
use crate::history::row::Row;
use crate::history::update::Update;
use crate::history::vector::Vector;
use crate::settings::Settings;
use crate::state::allowance::Allowance;
use crate::state::merged::MergedCounts;
use bulkmark_filter::ParameterError;

/// A snapshot that is being received.
pub struct Assembly {
    merged: MergedCounts,
    vector: Vector,
    allowance: Allowance,
}

impl Assembly {
    /// An empty assembly; `vector` is the snapshot's.
    #[must_use]
    pub fn new(settings: &Settings, vector: Vector) -> Self {
        Self { merged: MergedCounts::new(settings), vector, allowance: Allowance::default() }
    }

    /// The snapshot's vector, with the updates applied since.
    #[must_use]
    pub fn vector(&self) -> &Vector {
        if self.merged.vector().is_empty() { &self.vector } else { self.merged.vector() }
    }

    /// Adds a row. Returns false if it does not fit its place. Takes time for each cell of the row, 2^23 at most.
    ///
    /// # Errors
    /// If its slice has another size than ours, or an unjustified one, if its place already has its rows, or if there is not enough memory.
    pub fn add(&mut self, row: &Row) -> Result<bool, ParameterError> {
        self.allowance.take(row)?;
        if let Some(origin) = row.client {
            return self.merged.layers_mut().add_row(origin, row, &mut self.allowance);
        }
        self.merged.admit(row.window, row.capacity, row.slice)?;
        self.merged.merge_chunk(row.window, row.capacity, row.slice, row.chunk, &row.bytes)
    }

    /// Applies an update that follows the snapshot, with its bytes. One that is included already changes nothing.
    ///
    /// # Errors
    /// If it cannot be applied.
    pub fn apply(&mut self, update: &Update, bytes: &[u8], now: u64) -> Result<(), Refusal> {
        self.settle();
        self.merged.apply(update, bytes, now).map(drop)
    }

    /// Sets the vector of the counts, once all rows are in.
    fn settle(&mut self) {
        for (origin, mark) in std::mem::take(&mut self.vector).iter() {
            self.merged.vector_mut().set(origin, mark);
        }
    }

    /// The counts from the rows.
    pub fn into_counts(mut self) -> MergedCounts {
        self.settle();
        self.merged
    }
}
