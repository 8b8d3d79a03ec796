// SPDX-License-Identifier: GPL-3.0-or-later
//! The groups of filters that have a cell, so that a lookup visits only those filters that may have an element.

use crate::blocks::{Blocks, prefetch};
use crate::delta::Delta;
use crate::layout::{BLOCK_BYTES, CELLS_PER_BLOCK};
use crate::params::ParameterError;
use crate::probe::Probe;

/// The groups of the cells of a block: a byte for each cell.
type Marks = [u8; CELLS_PER_BLOCK];

/// Lines of the cache for the marks of a block.
const LINES: usize = CELLS_PER_BLOCK / BLOCK_BYTES;

/// Marks in whole lines of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Block(Marks);

/// Bytes of a page of memory, the least that one entry of the index takes; blocks are allocated by the page.
const PAGE: usize = 4096;
const BLOCKS_OF_PAGE: usize = PAGE / size_of::<Block>();

/// The marked blocks.
enum Held {
    /// Fewer than half of the blocks: in the order in which they were first marked.
    Few {
        /// For each block of the filters, one more than its place in `pages`; zero without one. So a lookup waits for memory only twice.
        index: Vec<u32>,
        pages: Vec<Box<[Block; BLOCKS_OF_PAGE]>>,
        used: u32,
    },
    /// All blocks, each at its place, on huge pages. A lookup waits for memory once, and no page is looked up.
    All(Blocks),
}

/// For each cell of filters of one size, the groups among eight that have it: a bit for each group.
///
/// The sum of many filters is soon full, and reports every element as possible. A group has an element only if it has all of its cells,
/// which is rarer by the eighth power. It takes 128 bytes for each block with a marked cell, or for each block once half of them have one.
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
    blocks: usize,
    held: Held,
}

impl Groups {
    /// Returns an empty index for filters of this number of blocks.
    ///
    /// # Errors
    /// If no filter can have that number of blocks.
    pub fn new(blocks: usize) -> Result<Self, ParameterError> {
        ParameterError::check("blocks", blocks as u64, 1, 1 << 32)?;
        Ok(Self { blocks, held: Held::Few { index: vec![0; blocks], pages: Vec::new(), used: 0 } })
    }

    /// Marks a cell for a group, 0 to 7. A cell beyond the last one is ignored.
    pub fn mark(&mut self, cell: usize, group: u8) {
        if let Some(held) = self.block_mut(cell / CELLS_PER_BLOCK) {
            held[cell % CELLS_PER_BLOCK] |= 1 << (group % 8);
        }
    }

    /// Returns a block, which is allocated if missing; `None` beyond the last one.
    fn block_mut(&mut self, block: usize) -> Option<&mut Marks> {
        if matches!(self.held, Held::Few { used, .. } if used as usize >= self.blocks.div_ceil(2)) {
            self.hold_all();
        }
        match &mut self.held {
            Held::Few { index, pages, used } => {
                let place = index.get_mut(block)?;
                if *place == 0 {
                    if *used as usize == pages.len() * BLOCKS_OF_PAGE {
                        pages.push(Box::new([Block([0; CELLS_PER_BLOCK]); BLOCKS_OF_PAGE]));
                    }
                    *used += 1;
                    *place = *used;
                }
                let at = *place as usize - 1;
                Some(&mut pages.get_mut(at / BLOCKS_OF_PAGE)?[at % BLOCKS_OF_PAGE].0)
            }
            Held::All(lines) => lines.as_flattened_mut().as_chunks_mut().0.get_mut(block),
        }
    }

    /// Holds all blocks, if there is enough memory.
    fn hold_all(&mut self) {
        let Ok(mut all) = Blocks::dense(self.blocks * LINES) else { return };
        for (block, marks) in all.as_flattened_mut().as_chunks_mut().0.iter_mut().enumerate() {
            if let Some(held) = self.block(block) {
                *marks = *held;
            }
        }
        self.held = Held::All(all);
    }

    /// Marks all cells that a delta changes.
    ///
    /// # Errors
    /// If it belongs to a filter of another size; nothing is marked then.
    pub fn mark_all(&mut self, delta: &Delta, group: u8) -> Result<(), ParameterError> {
        ParameterError::same("blocks", self.blocks as u64, delta.blocks() as u64)?;
        delta.changes().for_each(|(cell, _)| self.mark(cell, group));
        Ok(())
    }

    /// Adds all marks of another index of this size.
    ///
    /// # Errors
    /// If it is of another size; nothing is added then.
    pub fn merge(&mut self, other: &Self) -> Result<(), ParameterError> {
        ParameterError::same("blocks", self.blocks as u64, other.blocks as u64)?;
        for block in 0..self.blocks {
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
        let Probe { blocks: [first, second], cells: [cells, others] } = Probe::new(element, self.blocks);
        let (Some(first), Some(second)) = (self.block(first), self.block(second)) else { return 0 };
        // Both blocks for all elements: a branch after the first one goes either way, so each wrong guess would wait for memory.
        let of = |held: &Marks, cells: &[u8]| {
            cells.iter().fold(u8::MAX, |groups, &cell| groups & held[usize::from(cell)])
        };
        of(first, &cells) & of(second, &others)
    }

    /// Prefetches the blocks of an element.
    pub fn prefetch(&self, element: u128) {
        for block in Probe::new(element, self.blocks).blocks {
            if let Some(held) = self.block(block) {
                prefetch(&held[0]);
                prefetch(&held[CELLS_PER_BLOCK / 2]);
            }
        }
    }

    fn block(&self, block: usize) -> Option<&Marks> {
        match &self.held {
            Held::Few { index, pages, .. } => {
                let at = index.get(block)?.checked_sub(1)? as usize;
                Some(&pages.get(at / BLOCKS_OF_PAGE)?[at % BLOCKS_OF_PAGE].0)
            }
            Held::All(lines) => lines.as_flattened().as_chunks().0.get(block),
        }
    }

    /// Returns the bytes of memory. Of the index only those pages count that an entry needs.
    #[must_use]
    pub fn memory(&self) -> usize {
        match &self.held {
            Held::Few { index, pages, used } => {
                (index.len() * size_of::<u32>()).min(*used as usize * PAGE) + pages.len() * PAGE
            }
            Held::All(lines) => lines.len() * BLOCK_BYTES,
        }
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
        fn groups_with_an_element_are_found(
            added in prop::collection::vec((any::<u128>(), 0u8..8), 0..60),
            // The blocks of so many elements are few of these, half of them, or all.
            blocks in prop::sample::select(vec![3000, 80, 10, 1]),
        ) {
            let mut filters: Vec<Sparse> = (0..8).map(|_| Sparse::new(blocks).unwrap()).collect();
            let mut groups = Groups::new(blocks).unwrap();
            for &(element, group) in &added {
                for cell in filters[usize::from(group)].cells_of(element) {
                    filters[usize::from(group)].raise(cell, 1);
                    groups.mark(cell, group);
                }
            }
            let mut merged = Groups::new(blocks).unwrap();
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
        // Marks of all blocks take no more than they would as few.
        (0..100_000 * CELLS_PER_BLOCK).for_each(|cell| groups.mark(cell, 2));
        groups.mark(usize::MAX, 1);
        assert_eq!(groups.memory(), 100_000 * CELLS_PER_BLOCK);
    }
}
