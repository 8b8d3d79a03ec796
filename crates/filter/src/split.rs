// SPDX-License-Identifier: GPL-3.0-or-later
//! Cells as whole numbers: four bits in blocks, and larger values in split storage.

use crate::blocks::Block;
use crate::cells::{Cell, Cells, add_refined, count};
use crate::layout::{CELL_BITS, CELL_MAX, CELLS_PER_BLOCK, SPLIT_CELLS};
use crate::overflow::Overflow;
use crate::packed::Packed;
use crate::params::ParameterError;
use crate::probe::Probe;
use std::ops::Range;

/// The cells of a filter in which an element has two blocks.
pub(crate) struct Split {
    base: Packed<CELL_BITS>,
    overflow: Overflow,
}

/// Returns the cells of an element that have further bits, and their block.
#[inline]
pub(crate) fn further(probe: &Probe) -> (usize, [u8; SPLIT_CELLS]) {
    let [cells @ .., _] = probe.cells[0];
    (probe.blocks[0], cells)
}

impl Split {
    pub(crate) fn new(blocks: usize) -> Result<Self, ParameterError> {
        Ok(Self { base: Packed::new(blocks)?, overflow: Overflow::new(blocks) })
    }

    pub(crate) fn blocks(&self) -> usize {
        self.base.blocks()
    }

    pub(crate) const fn base(&self) -> &Packed<CELL_BITS> {
        &self.base
    }

    /// Returns a copy of a block.
    pub(crate) fn block(&self, block: usize) -> Block {
        self.base.block(block)
    }

    /// Returns the value of a cell beyond 15.
    pub(crate) fn get_further(&self, at: Cell) -> u32 {
        self.overflow.get(at)
    }

    /// Returns the value of a cell.
    pub(crate) fn get(&self, at: Cell) -> u32 {
        let base = self.base.get(at);
        if base < CELL_MAX { base } else { self.overflow.get(at).saturating_add(CELL_MAX) }
    }

    /// Raises a cell by `by`, up to the largest number.
    pub(crate) fn raise(&mut self, at: Cell, by: u32) {
        let value = self.get(at).saturating_add(by);
        self.base.set(at, value.min(CELL_MAX));
        if value > CELL_MAX {
            self.overflow.raise_to(at, value - CELL_MAX);
        }
    }

    /// Returns the count that an element's cells show.
    #[inline]
    pub(crate) fn count(&self, probe: &Probe) -> u32 {
        let base = self.count_base(probe);
        if base < CELL_MAX { base } else { self.count_further(probe) }
    }

    /// The same, by the cells' four bits only.
    #[inline]
    pub(crate) fn count_base(&self, probe: &Probe) -> u32 {
        count(&self.base, probe.groups())
    }

    /// Returns an element's first cell, by its four bits only.
    #[inline]
    pub(crate) fn first_base(&self, probe: &Probe) -> u32 {
        self.base.get(Cell { block: probe.blocks[0], cell: probe.cells[0][0] })
    }

    /// Returns the count of an element whose cells are all saturated.
    pub(crate) fn count_further(&self, probe: &Probe) -> u32 {
        let (block, cells) = further(probe);
        self.overflow.least(block, cells).saturating_add(CELL_MAX)
    }

    /// Adds an element `times` times to the cells' four bits. Returns its count there before.
    #[inline]
    pub(crate) fn add_base(&mut self, probe: &Probe, times: u32) -> u32 {
        add_refined(&mut self.base, probe.groups(), times).0
    }

    /// Adds an element whose cells of four bits are saturated.
    ///
    /// If its cells in split storage were raised by others, their value is now the element's count, too, and the addition comes on top
    /// of it, as single additions would.
    pub(crate) fn add_further(&mut self, probe: &Probe, times: u32) -> u32 {
        let (block, cells) = further(probe);
        self.overflow.add(block, cells, times).saturating_add(CELL_MAX)
    }

    /// Prefetches an element's blocks.
    #[inline]
    pub(crate) fn prefetch(&self, probe: &Probe) {
        probe.blocks.iter().for_each(|&block| self.base.prefetch(block));
    }

    /// Prefetches an element's split storage.
    #[inline]
    pub(crate) fn prefetch_further(&self, probe: &Probe) {
        self.overflow.prefetch(probe.blocks[0]);
    }

    /// Returns the values beyond 15 in the blocks `range`, by cell.
    pub(crate) fn further(&self, range: Range<usize>) -> impl Iterator<Item = (Cell, u32)> {
        self.overflow.entries(range)
    }

    /// Returns all cells that are not zero, with their values, in order.
    pub(crate) fn used(&self) -> impl Iterator<Item = (Cell, u32)> {
        self.used_in(0..self.blocks())
    }

    /// The same for the blocks `range`.
    pub(crate) fn used_in(&self, range: Range<usize>) -> impl Iterator<Item = (Cell, u32)> {
        range
            .filter(|&block| !self.base.is_empty(block))
            .flat_map(move |block| {
                (0..=u8::MAX)
                    .zip(self.base.values(block))
                    .map(move |(cell, value)| (Cell { block, cell }, value))
            })
            .filter(|&(_, value)| value > 0)
            .map(|(at, value)| (at, if u32::from(value) < CELL_MAX { value.into() } else { self.get(at) }))
    }

    /// Returns the blocks `range` as bytes, in the format of [`Refined::bytes`](crate::Refined::bytes).
    pub(crate) fn bytes(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = self.base.bytes(range.clone()).to_vec();
        for (Cell { block, cell }, further) in self.overflow.entries(range.clone()) {
            let index = (block - range.start) * CELLS_PER_BLOCK + usize::from(cell);
            bytes.extend_from_slice(&u32::try_from(index).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(&further.to_le_bytes());
        }
        bytes
    }

    /// Restores [`bytes`](Self::bytes) into blocks that are still empty. Returns false if they do not fit.
    pub(crate) fn restore(&mut self, range: Range<usize>, bytes: &[u8]) -> bool {
        let Some(target) = self.base.bytes_mut(range.clone()) else { return false };
        let Some((blocks, further)) = bytes.split_at_checked(target.len()) else { return false };
        let (further, []) = further.as_chunks::<8>() else { return false };
        let entry = |[a, b, c, d, e, f, g, h]: &[u8; 8]| {
            (u32::from_le_bytes([*a, *b, *c, *d]) as usize, u32::from_le_bytes([*e, *f, *g, *h]))
        };
        let cells = range.len() * CELLS_PER_BLOCK;
        if further.iter().map(entry).any(|(index, value)| index >= cells || value == 0) {
            return false;
        }
        target.copy_from_slice(blocks);
        for (index, value) in further.iter().map(entry) {
            let cell = u8::try_from(index % CELLS_PER_BLOCK).unwrap_or(0);
            let block = range.start + index / CELLS_PER_BLOCK;
            self.overflow.raise_to(Cell { block, cell }, value);
        }
        true
    }

    /// Adds the blocks `range` of another filter from their bytes. Returns false if they do not fit; nothing is changed then.
    pub(crate) fn merge_bytes(&mut self, range: Range<usize>, bytes: &[u8]) -> bool {
        if range.is_empty() || range.end > self.blocks() {
            return false;
        }
        if range.clone().all(|block| self.base.is_empty(block)) {
            return self.restore(range, bytes);
        }
        let Ok(mut other) = Self::new(range.len()) else { return false };
        if !other.restore(0..range.len(), bytes) {
            return false;
        }
        for (at, value) in other.used() {
            self.raise(Cell { block: range.start + at.block, cell: at.cell }, value);
        }
        true
    }

    pub(crate) fn memory(&self) -> usize {
        self.base.memory() + self.overflow.memory()
    }
}
