// SPDX-License-Identifier: GPL-3.0-or-later
//! The merged counts of one window.

use crate::history::chunks::CHUNK_BLOCKS;
use crate::history::update::MAX_SLICES;
use crate::history::window::Window;
use bulkmark_filter::{Merged, ParameterError, Refined, Scaling};
use bulkmark_types::Signature;

/// The counts of one window, over all origins with filters of one size.
pub struct MergedWindow {
    /// The window of these reports.
    pub window: Window,
    /// The capacity of the first slice, in signatures.
    pub capacity: u32,
    /// The number of this size among those of the window, in the file.
    pub size: u32,
    /// The cells; each slice is larger than the previous one.
    pub slices: Vec<Merged>,
    /// For each slice and chunk, whether it has changed since it was written.
    pub dirty: Vec<Vec<bool>>,
}

impl MergedWindow {
    pub(super) const fn new(window: Window, capacity: u32, size: u32) -> Self {
        Self { window, capacity, size, slices: Vec::new(), dirty: Vec::new() }
    }

    pub(super) const fn is(&self, window: Window, capacity: u32) -> bool {
        self.window.start == window.start && self.window.length == window.length && self.capacity == capacity
    }

    pub(super) fn count(&self, signature: Signature) -> u32 {
        let counts = self.slices.iter().map(|slice| slice.count(signature.bits()));
        counts.fold(0, u32::saturating_add)
    }

    /// Removes all but so many slices.
    pub(super) fn cut_back(&mut self, slices: usize) {
        self.slices.truncate(slices);
        self.dirty.truncate(slices);
    }

    /// Makes the slices up to this one.
    pub(super) fn reach(&mut self, slice: u32) -> Result<(), ParameterError> {
        ParameterError::check("slice", slice.into(), 0, MAX_SLICES.into())?;
        for next in self.slices.len()..=slice as usize {
            let (_, blocks) =
                Scaling::<Refined>::shape(self.capacity, u32::try_from(next).unwrap_or(u32::MAX));
            self.slices.push(Merged::new(blocks)?);
            self.dirty.push(vec![false; blocks.div_ceil(CHUNK_BLOCKS)]);
        }
        Ok(())
    }

    /// Marks everything as not written: a new file has none of it.
    pub(super) fn mark_dirty(&mut self) {
        self.dirty.iter_mut().for_each(|chunks| chunks.fill(true));
    }
}
