// SPDX-License-Identifier: GPL-3.0-or-later
//! Cells as whole numbers: five bits in blocks, and what is beyond them in split storage.

use super::cells::{self, Block, CELL_MAX, CELLS_PER_BLOCK};
use super::overflow::{Cell, Overflow};
use super::probe::Probe;
use std::ops::Range;

/// The cells of a filter of two blocks an element.
pub(super) struct Split {
    blocks: Vec<Block>,
    overflow: Overflow,
}

impl Split {
    pub(super) fn new(blocks: usize) -> Self {
        Self { blocks: vec![Block::EMPTY; blocks], overflow: Overflow::new(blocks) }
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The value of a cell.
    pub(super) fn get(&self, at: Cell) -> u32 {
        let base = self.blocks[at.block].get(at.cell.into());
        if base < CELL_MAX { base.into() } else { self.overflow.get(at).saturating_add(CELL_MAX.into()) }
    }

    /// Raises a cell by `by`; it stays at the largest number once it is there.
    pub(super) fn raise(&mut self, at: Cell, by: u32) {
        let value = self.get(at).saturating_add(by);
        self.blocks[at.block].set(at.cell.into(), u8::try_from(value).unwrap_or(CELL_MAX).min(CELL_MAX));
        if let Some(further) = value.checked_sub(CELL_MAX.into()).filter(|&further| further > 0) {
            self.overflow.raise_to(at, further);
        }
    }

    /// The smallest of an element's five-bit cells.
    pub(super) fn base(&self, probe: &Probe) -> u8 {
        let mut least = CELL_MAX;
        for (&block, cells) in probe.blocks.iter().zip(&probe.cells) {
            for &cell in cells {
                least = least.min(self.blocks[block].get(usize::from(cell)));
            }
        }
        least
    }

    /// What the cells of an element's first block hold beyond 31; the smallest of them.
    pub(super) fn further(&self, probe: &Probe) -> u32 {
        Self::split(probe).map(|cell| self.overflow.get(cell)).min().unwrap_or(0)
    }

    /// The count that an element's cells show.
    pub(super) fn count(&self, probe: &Probe) -> u32 {
        let base = self.base(probe);
        if base < CELL_MAX { base.into() } else { self.further(probe).saturating_add(CELL_MAX.into()) }
    }

    /// The cells of an element that have further bits.
    fn split(probe: &Probe) -> impl Iterator<Item = Cell> + use<> {
        let block = probe.blocks[0];
        probe.cells[0].into_iter().map(move |cell| Cell { block, cell })
    }

    pub(super) fn raise_base_to(&mut self, probe: &Probe, target: u8) {
        for (&block, cells) in probe.blocks.iter().zip(&probe.cells) {
            let block = &mut self.blocks[block];
            for &cell in cells {
                if block.get(usize::from(cell)) < target {
                    block.set(usize::from(cell), target);
                }
            }
        }
    }

    pub(super) fn raise_further_to(&mut self, probe: &Probe, target: u32) {
        let target = target.min(u32::MAX - u32::from(CELL_MAX));
        for cell in Self::split(probe) {
            self.overflow.raise_to(cell, target);
        }
    }

    /// All cells that are not zero, with their values, in order.
    pub(super) fn used(&self) -> impl Iterator<Item = (Cell, u32)> {
        let cells = 0..u8::try_from(CELLS_PER_BLOCK).unwrap_or(u8::MAX);
        (0..self.blocks.len())
            .filter(|&block| self.blocks[block].0 != [0; cells::BYTES])
            .flat_map(move |block| cells.clone().map(move |cell| Cell { block, cell }))
            .map(|at| (at, self.get(at)))
            .filter(|&(_, value)| value > 0)
    }

    /// The blocks `range` as bytes, as [`Refined::bytes`](super::Refined::bytes) describes them.
    pub(super) fn bytes(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.blocks[range.clone()].iter().flat_map(|b| b.0).collect();
        for (Cell { block, cell }, further) in self.overflow.entries(range.clone()) {
            let index = (block - range.start) * CELLS_PER_BLOCK + usize::from(cell);
            bytes.extend_from_slice(&u32::try_from(index).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(&further.to_le_bytes());
        }
        bytes
    }

    /// Puts back what [`bytes`](Self::bytes) gave into blocks that are still empty. False when it does not fit them.
    pub(super) fn restore(&mut self, range: Range<usize>, bytes: &[u8]) -> bool {
        let Some(target) = self.blocks.get_mut(range.clone()) else { return false };
        let Some((blocks, further)) = bytes.split_at_checked(target.len() * cells::BYTES) else {
            return false;
        };
        let (further, []) = further.as_chunks::<8>() else { return false };
        let entry = |[a, b, c, d, e, f, g, h]: &[u8; 8]| {
            (u32::from_le_bytes([*a, *b, *c, *d]) as usize, u32::from_le_bytes([*e, *f, *g, *h]))
        };
        let cells = target.len() * CELLS_PER_BLOCK;
        if further.iter().map(entry).any(|(index, value)| index >= cells || value == 0) {
            return false;
        }
        for (block, bytes) in target.iter_mut().zip(blocks.as_chunks::<{ cells::BYTES }>().0) {
            block.0 = *bytes;
        }
        for (index, value) in further.iter().map(entry) {
            let cell = u8::try_from(index % CELLS_PER_BLOCK).unwrap_or(0);
            self.overflow.raise_to(Cell { block: range.start + index / CELLS_PER_BLOCK, cell }, value);
        }
        true
    }

    pub(super) fn memory(&self) -> usize {
        self.blocks.len() * cells::BYTES + self.overflow.heap_bytes()
    }
}
