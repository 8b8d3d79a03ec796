// SPDX-License-Identifier: GPL-3.0-or-later
//! The layer of one limited client: a separate filter for each window, small while it has few signatures.

use crate::history::chunks::{LAYER_BLOCKS, layer_blocks_of, layer_parts};
use crate::history::update::MAX_CELLS;
use crate::history::window::{Calendar, Window};
use crate::state::anomaly::{Anomaly, LEAST_SIGNATURES, anomaly};
use crate::state::shares::Share;
use bulkmark_filter::{CELLS_PER_BLOCK, Delta, ParameterError, Refined, Scaling, Sparse, varint};
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// The counts of one window.
pub struct LayerWindow {
    /// The filter has the size of a generation's first slice of this capacity: many more signatures than a limited client may report.
    pub capacity: u32,
    /// The number of different signatures; known only where they were counted.
    pub distinct: u64,
    /// The cells.
    pub filter: Sparse,
    /// For each part that is written, whether it has changed since.
    pub dirty: Vec<bool>,
}

impl LayerWindow {
    /// The number of blocks of a filter for this capacity.
    pub fn blocks(capacity: u32) -> usize {
        Scaling::<Refined>::shape(capacity, 0).1
    }

    pub(crate) fn new(capacity: u32) -> Result<Self, ParameterError> {
        let blocks = Self::blocks(capacity);
        let filter = Sparse::new(blocks)?;
        Ok(Self { capacity, distinct: 0, filter, dirty: vec![false; layer_parts(blocks).len()] })
    }

    pub(crate) fn raise(&mut self, cell: usize, by: u32) {
        self.filter.raise(cell, by);
        if let Some(dirty) = self.dirty.get_mut(cell / CELLS_PER_BLOCK / LAYER_BLOCKS) {
            *dirty = true;
        }
    }

    /// Adds growth from elsewhere.
    ///
    /// # Errors
    /// If its filter has another size; nothing is changed then.
    pub fn apply(&mut self, delta: &Delta) -> Result<(), ParameterError> {
        ParameterError::same("blocks", self.filter.blocks() as u64, delta.blocks() as u64)?;
        delta.changes().for_each(|(cell, by)| self.raise(cell, by));
        Ok(())
    }

    /// The deviation of its cells from those of hashes, if its signatures were counted here.
    pub fn anomaly(&self) -> Option<Anomaly> {
        if self.distinct < LEAST_SIGNATURES {
            return None;
        }
        let cells = self.filter.delta(0..self.filter.blocks());
        let mut blocks: Vec<usize> = cells.changes().map(|(cell, _)| cell / CELLS_PER_BLOCK).collect();
        blocks.dedup();
        anomaly(self.distinct, self.filter.blocks(), cells.len(), blocks.len())
    }

    /// One coded part of the filter; `None` if it is empty.
    pub fn part(&self, part: u32) -> Option<Vec<u8>> {
        let delta = self.filter.delta(layer_blocks_of(part, self.filter.blocks()));
        (!delta.is_empty()).then(|| delta.encode())
    }

    /// The number of cells that the bytes of a [`part`](Self::part) claim.
    pub fn cells_of_part(bytes: &[u8]) -> Option<u64> {
        varint::take(&mut &*bytes)
    }

    /// Reads the bytes of [`part`](Self::part), with at most `most` cells. `None` if they do not fit.
    pub fn decode_part(capacity: u32, bytes: &[u8], most: usize) -> Option<Delta> {
        let blocks = Self::blocks(capacity);
        // Made-up signatures may have cells that are coded in almost no bytes, so the length does not bound their number.
        Delta::decode(bytes, blocks, most.min(MAX_CELLS)).ok()
    }
}

/// The counts of one limited client in all windows.
#[derive(Default)]
pub struct Layer {
    /// Its cells, by window.
    pub windows: BTreeMap<Window, LayerWindow>,
}

impl Layer {
    /// The number of its reports of `signature`, in windows that count: in each the smallest of the signature's cells.
    pub fn count(&self, calendar: Calendar, signature: Signature, now: u64) -> u32 {
        self.shares(calendar, signature, now).fold(0, |sum, share| sum.saturating_add(share.count))
    }

    /// Likewise, by window.
    pub fn shares(&self, calendar: Calendar, signature: Signature, now: u64) -> impl Iterator<Item = Share> {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        let live = self.windows.iter().filter(move |(window, _)| calendar.counts(**window, signature, now));
        live.map(move |(window, held)| Share {
            window: window.start,
            count: held.filter.count(signature.bits()),
        })
    }

    /// The sum of a cell over all windows of this kind that are not over.
    pub fn sum(&self, calendar: Calendar, like: Window, cell: usize, now: u64) -> u32 {
        let is_like = |window: Window| window.is_user_report() == like.is_user_report();
        let is_held = |window: Window| is_like(window) && !calendar.is_over(window, now);
        let held = self.windows.iter().filter(|(window, _)| is_held(**window));
        held.fold(0, |sum, (_, held)| sum.saturating_add(held.filter.get(cell)))
    }

    /// The filter of a window, made if it is missing.
    pub fn window_mut(&mut self, window: Window, capacity: u32) -> Result<&mut LayerWindow, ParameterError> {
        use std::collections::btree_map::Entry;
        match self.windows.entry(window) {
            Entry::Occupied(held) => {
                ParameterError::same("capacity", held.get().capacity.into(), capacity.into())?;
                Ok(held.into_mut())
            }
            Entry::Vacant(place) => Ok(place.insert(LayerWindow::new(capacity)?)),
        }
    }

    /// Removes windows that can be dropped.
    pub fn take_expired(&mut self, calendar: Calendar, now: u64) {
        let over = calendar.over(self.windows.keys().copied(), now);
        self.windows.retain(|window, _| !over.contains(window));
    }

    /// Removes all windows that are over.
    pub fn take_over(&mut self, calendar: Calendar, now: u64) {
        self.windows.retain(|&window, _| !calendar.is_over(window, now));
    }

    /// Whether anything has changed since it was written.
    pub fn is_dirty(&self) -> bool {
        self.windows.values().any(|held| held.dirty.contains(&true))
    }

    /// Marks everything as not written: a new file has none of it.
    pub fn mark_dirty(&mut self) {
        self.windows.values_mut().for_each(|held| held.dirty.fill(true));
    }

    /// Marks everything as written.
    pub fn mark_clean(&mut self) {
        self.windows.values_mut().for_each(|held| held.dirty.fill(false));
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.windows.values().map(|held| held.filter.memory()).sum()
    }
}

#[cfg(test)]
thread_local! {
    static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the result of `work`, and the number of layers that this thread looked into for it.
#[cfg(test)]
pub(crate) fn looked_at<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = LOOKS.get();
    let made = work();
    (made, LOOKS.get() - before)
}
