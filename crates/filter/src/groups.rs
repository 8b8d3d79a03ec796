// SPDX-License-Identifier: GPL-3.0-or-later
//! The groups of filters that have a cell, so that a lookup visits only those filters that may have an element.

use crate::blocks::prefetch;
use crate::delta::Delta;
use crate::layout::CELLS_PER_BLOCK;
use crate::params::ParameterError;
use crate::probe::Probe;

/// The cells of a block, in whole lines of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block([u8; CELLS_PER_BLOCK]);

/// Bytes of a page of memory, the least that one entry of the index takes; blocks are allocated by the page.
const PAGE: usize = 4096;
const BLOCKS_OF_PAGE: usize = PAGE / size_of::<Block>();

/// For each cell of filters of one size, the groups among eight that have it: a bit for each group.
///
/// The sum of many filters is soon full, and reports every element as possible. A group has an element only if it has all of its cells,
/// which is rarer by the eighth power. It takes 128 bytes for each block with a marked cell.
///
/// ```
/// use bulkmark_filter::{Groups, Sparse};
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let cells = Sparse::new(1000)?.cells_of(element);
/// let mut groups = Groups::new(1000)?;
/// cells.iter().for_each(|&cell| groups.mark(cell, 5));
/// cells.iter().skip(1).for_each(|&cell| groups.mark(cell, 2));
/// assert_eq!(groups.of(element), 1 << 5);
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
pub struct Groups {
    /// For each block of the filters, one more than its place in `pages`; zero without one. So a lookup waits for memory only twice.
    index: Vec<u32>,
    pages: Vec<Box<[Block; BLOCKS_OF_PAGE]>>,
    /// The number of blocks in use.
    used: u32,
}

impl Groups {
    /// Returns an empty index for filters of this number of blocks.
    ///
    /// # Errors
    /// If no filter can have that number of blocks.
    pub fn new(blocks: usize) -> Result<Self, ParameterError> {
        ParameterError::check("blocks", blocks as u64, 1, 1 << 32)?;
        Ok(Self { index: vec![0; blocks], pages: Vec::new(), used: 0 })
    }

    /// Marks a cell for a group, 0 to 7. A cell beyond the last one is ignored.
    pub fn mark(&mut self, cell: usize, group: u8) {
        if let Some(held) = self.block_mut(cell / CELLS_PER_BLOCK) {
            held[cell % CELLS_PER_BLOCK] |= 1 << (group % 8);
        }
    }

    /// Returns a block, which is allocated if missing; `None` beyond the last one.
    fn block_mut(&mut self, block: usize) -> Option<&mut [u8; CELLS_PER_BLOCK]> {
        let place = self.index.get_mut(block)?;
        if *place == 0 {
            if self.used as usize == self.pages.len() * BLOCKS_OF_PAGE {
                self.pages.push(Box::new([Block([0; CELLS_PER_BLOCK]); BLOCKS_OF_PAGE]));
            }
            self.used += 1;
            *place = self.used;
        }
        let at = *place as usize - 1;
        Some(&mut self.pages.get_mut(at / BLOCKS_OF_PAGE)?[at % BLOCKS_OF_PAGE].0)
    }

    /// Marks all cells that a delta changes.
    ///
    /// # Errors
    /// If it belongs to a filter of another size; nothing is marked then.
    pub fn mark_all(&mut self, delta: &Delta, group: u8) -> Result<(), ParameterError> {
        ParameterError::same("blocks", self.index.len() as u64, delta.blocks() as u64)?;
        delta.changes().for_each(|(cell, _)| self.mark(cell, group));
        Ok(())
    }

    /// Adds all marks of another index of this size.
    ///
    /// # Errors
    /// If it is of another size; nothing is added then.
    pub fn merge(&mut self, other: &Self) -> Result<(), ParameterError> {
        ParameterError::same("blocks", self.index.len() as u64, other.index.len() as u64)?;
        for block in 0..self.index.len() {
            if let Some(theirs) = other.block(block)
                && let Some(ours) = self.block_mut(block)
            {
                ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours |= theirs);
            }
        }
        Ok(())
    }

    /// Returns the groups in which a filter may have `element`.
    #[must_use]
    pub fn of(&self, element: u128) -> u8 {
        let probe = Probe::new(element, self.index.len());
        let mut groups = u8::MAX;
        for (&block, cells) in probe.blocks.iter().zip(&probe.cells) {
            let Some(held) = self.block(block) else { return 0 };
            groups = cells.iter().fold(groups, |groups, &cell| groups & held[usize::from(cell)]);
            if groups == 0 {
                break;
            }
        }
        groups
    }

    /// Prefetches the first of an element's blocks: it shows of most elements that no filter has them.
    pub fn prefetch(&self, element: u128) {
        let [first, _] = Probe::new(element, self.index.len()).blocks;
        if let Some(held) = self.block(first) {
            prefetch(&held[0]);
            prefetch(&held[CELLS_PER_BLOCK / 2]);
        }
    }

    fn block(&self, block: usize) -> Option<&[u8; CELLS_PER_BLOCK]> {
        let at = self.index.get(block)?.checked_sub(1)? as usize;
        Some(&self.pages.get(at / BLOCKS_OF_PAGE)?[at % BLOCKS_OF_PAGE].0)
    }

    /// Returns the bytes of memory. Of the index only those pages count that an entry needs.
    #[must_use]
    pub fn memory(&self) -> usize {
        let index = (self.index.len() * size_of::<u32>()).min(self.used as usize * PAGE);
        index + self.pages.len() * PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Sparse;
    use proptest::prelude::*;

    proptest! {
        /// All groups that have an element are found, and for a few elements no others.
        #[test]
        fn groups_with_an_element_are_found(added in prop::collection::vec((any::<u128>(), 0u8..8), 0..60)) {
            let mut filters: Vec<Sparse> = (0..8).map(|_| Sparse::new(3000).unwrap()).collect();
            let mut groups = Groups::new(3000).unwrap();
            for &(element, group) in &added {
                for cell in filters[usize::from(group)].cells_of(element) {
                    filters[usize::from(group)].raise(cell, 1);
                    groups.mark(cell, group);
                }
            }
            let mut merged = Groups::new(3000).unwrap();
            merged.merge(&groups).unwrap();
            for &(element, _) in &added {
                prop_assert_eq!(merged.of(element), groups.of(element));
                let expected = (0..8u8).filter(|&group| filters[usize::from(group)].count(element) > 0);
                prop_assert_eq!(groups.of(element), expected.fold(0u8, |all, group| all | 1 << group));
            }
        }
    }

    #[test]
    fn memory_is_for_marked_blocks() {
        let mut groups = Groups::new(100_000).unwrap();
        let empty = groups.memory();
        assert_eq!(groups.of(7), 0);
        (0..1000).for_each(|cell| groups.mark(cell, 1));
        groups.mark(usize::MAX, 1);
        assert!(groups.memory() - empty <= 9 * PAGE, "{}", groups.memory());
    }
}
