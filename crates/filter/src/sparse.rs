// SPDX-License-Identifier: GPL-3.0-or-later
//! A filter whose memory is proportional to its content, as long as that is little.

use crate::cells::Cell;
use crate::delta::Delta;
use crate::layout::{BLOCK_BYTES, CELLS_PER_BLOCK};
use crate::overflow::Overflow;
use crate::params::ParameterError;
use crate::probe::Probe;
use crate::split::Split;
use std::ops::Range;

/// The number of changes between two checks whether a table still takes less memory than all cells would.
const LOOK_AFTER: usize = 1024;

/// The number of blocks for which a table of one cell takes as much as two listed cells: a list is never larger than that table.
const BLOCKS_OF_LISTED: usize = 512;

/// The largest number of listed cells: inserting one moves those behind it.
const MOST_LISTED: usize = 1024;

/// Counts of few elements in a filter for many, whose cells are raised one by one: for callers that must know, and limit, the value of
/// each cell.
///
/// Unlike [`Refined`](crate::Refined), it keeps the whole value of all cells of an element.
///
/// ```
/// use bulkmark_filter::Sparse;
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let mut filter = Sparse::new(100_000)?;
/// for cell in filter.cells_of(element) {
///     filter.raise(cell, 3);
/// }
/// assert_eq!(filter.count(element), 3);
/// assert!(filter.memory() < 100_000, "all cells take 6.4 MB");
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
pub struct Sparse {
    blocks: usize,
    /// The number of cells that are not zero.
    used: usize,
    /// The number of changes since the last check.
    changes: usize,
    held: Held,
}

/// The storage of the cells.
enum Held {
    /// A list by cell index, as long as a table of one cell would take more.
    Listed(Vec<(usize, u32)>),
    /// A table of those that are not zero.
    Few(Overflow),
    /// All of them, since a table would be larger.
    All(Box<Split>),
}

fn place(cell: usize) -> Cell {
    Cell { block: cell / CELLS_PER_BLOCK, cell: u8::try_from(cell % CELLS_PER_BLOCK).unwrap_or(0) }
}

fn index(at: Cell) -> usize {
    at.block * CELLS_PER_BLOCK + usize::from(at.cell)
}

impl Sparse {
    /// Returns an empty filter of this number of blocks.
    ///
    /// # Errors
    /// If no filter can have that number of blocks.
    pub fn new(blocks: usize) -> Result<Self, ParameterError> {
        ParameterError::check("blocks", blocks as u64, 1, 1 << 32)?;
        Ok(Self { blocks, used: 0, changes: 0, held: Held::Listed(Vec::new()) })
    }

    /// Returns the number of blocks.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        self.blocks
    }

    /// Returns the number of cells that are not zero.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    /// Returns the cells of an element, as block times 128 plus index in the block, each once.
    #[must_use]
    pub fn cells_of(&self, element: u128) -> Vec<usize> {
        let probe = Probe::new(element, self.blocks);
        let mut cells = Vec::with_capacity(8);
        for (block, places) in probe.blocks.iter().zip(&probe.cells) {
            for &cell in places {
                let at = index(Cell { block: *block, cell });
                if !cells.contains(&at) {
                    cells.push(at);
                }
            }
        }
        cells
    }

    /// Returns the value of a cell; zero beyond the last one.
    #[must_use]
    pub fn get(&self, cell: usize) -> u32 {
        if cell / CELLS_PER_BLOCK >= self.blocks {
            return 0;
        }
        self.at(place(cell))
    }

    fn at(&self, at: Cell) -> u32 {
        match &self.held {
            Held::Listed(list) => {
                list.binary_search_by_key(&index(at), |&(cell, _)| cell).map_or(0, |found| list[found].1)
            }
            Held::Few(table) => table.get(at),
            Held::All(cells) => cells.get(at),
        }
    }

    /// Returns how often `element` was added: the smallest of its cells.
    #[must_use]
    pub fn count(&self, element: u128) -> u32 {
        let probe = Probe::new(element, self.blocks);
        let mut least = u32::MAX;
        for (&block, cells) in probe.blocks.iter().zip(&probe.cells) {
            for &cell in cells {
                least = least.min(self.at(Cell { block, cell }));
                if least == 0 {
                    return 0;
                }
            }
        }
        least
    }

    /// Raises a cell by `by`, up to the largest number. A cell beyond the last one is ignored.
    pub fn raise(&mut self, cell: usize, by: u32) {
        if by == 0 || cell / CELLS_PER_BLOCK >= self.blocks {
            return;
        }
        self.unlist_if_long();
        let at = place(cell);
        let before = self.at(at);
        self.used += usize::from(before == 0);
        match &mut self.held {
            Held::Listed(list) => {
                let value = before.saturating_add(by);
                match list.binary_search_by_key(&cell, |&(cell, _)| cell) {
                    Ok(found) => list[found].1 = value,
                    Err(between) => list.insert(between, (cell, value)),
                }
            }
            Held::Few(table) => table.raise_to(at, before.saturating_add(by)),
            Held::All(cells) => cells.raise(at, by),
        }
        self.changes += 1;
        if self.changes >= LOOK_AFTER {
            self.changes = 0;
            self.hold_all_if_smaller();
        }
    }

    /// Replaces a list that has no room for another cell by a table.
    fn unlist_if_long(&mut self) {
        let Held::Listed(list) = &self.held else { return };
        if list.len() < MOST_LISTED.min(self.blocks / BLOCKS_OF_LISTED) {
            return;
        }
        let mut table = Overflow::new(self.blocks);
        list.iter().for_each(|&(cell, value)| table.raise_to(place(cell), value));
        self.held = Held::Few(table);
    }

    /// Without memory for all cells, the table stays in use.
    fn hold_all_if_smaller(&mut self) {
        let Held::Few(table) = &self.held else { return };
        if table.memory() <= self.blocks * BLOCK_BYTES {
            return;
        }
        let Ok(mut all) = Split::new(self.blocks) else { return };
        table.entries(0..self.blocks).for_each(|(at, value)| all.raise(at, value));
        self.held = Held::All(Box::new(all));
    }

    /// Adds the growth of another filter of this size.
    ///
    /// # Errors
    /// If it is of another size; nothing is added then.
    pub fn apply(&mut self, delta: &Delta) -> Result<(), ParameterError> {
        ParameterError::same("blocks", self.blocks as u64, delta.blocks() as u64)?;
        delta.changes().for_each(|(cell, by)| self.raise(cell, by));
        Ok(())
    }

    /// Returns the content of the blocks `range` as the growth from an empty filter.
    #[must_use]
    pub fn delta(&self, range: Range<usize>) -> Delta {
        let changes = match &self.held {
            Held::Listed(list) => {
                let cells =
                    range.start.saturating_mul(CELLS_PER_BLOCK)..range.end.saturating_mul(CELLS_PER_BLOCK);
                list.iter()
                    .map(|&(cell, value)| (place(cell), value))
                    .filter(|&(at, _)| cells.contains(&index(at)))
                    .collect()
            }
            Held::Few(table) => table.entries(range).collect(),
            Held::All(cells) => cells.used_in(range).collect(),
        };
        Delta::of(self.blocks, changes)
    }

    /// Returns the bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        match &self.held {
            Held::Listed(list) => list.capacity() * size_of::<(usize, u32)>(),
            Held::Few(table) => table.memory(),
            Held::All(cells) => cells.memory(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const BLOCKS: usize = 30_000;

    fn element(n: u64) -> u128 {
        u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
    }

    proptest! {
        /// In any storage the filter is a map from cells to sums, and its delta restores it.
        #[test]
        fn it_is_a_map_of_cells(
            raises in prop::collection::vec((0usize..BLOCKS * 128, prop_oneof![9 => 1u32..30, 1 => 1u32..100_000]), 0..6000),
            from in 0usize..BLOCKS,
            to in 0usize..=BLOCKS,
        ) {
            let (mut filter, mut model) = (Sparse::new(BLOCKS).unwrap(), BTreeMap::<usize, u32>::new());
            for (cell, by) in raises {
                filter.raise(cell, by);
                *model.entry(cell).or_default() += by;
            }
            for (&cell, &value) in &model {
                prop_assert_eq!(filter.get(cell), value);
                prop_assert_eq!(filter.get(cell + 1), model.get(&(cell + 1)).copied().unwrap_or(0));
            }
            prop_assert_eq!(filter.used(), model.len());
            let within = |range: Range<usize>| -> Vec<_> {
                if range.is_empty() { return Vec::new(); }
                model.range(range.start * 128..range.end * 128).map(|(&cell, &by)| (cell, by)).collect()
            };
            prop_assert_eq!(filter.delta(from..to).changes().collect::<Vec<_>>(), within(from..to));
            let mut again = Sparse::new(BLOCKS).unwrap();
            for range in [0..1000, 1000..BLOCKS] {
                again.apply(&filter.delta(range)).unwrap();
            }
            prop_assert_eq!(again.delta(0..BLOCKS), filter.delta(0..BLOCKS));
        }
    }

    /// A few elements take some bytes each, however large the filter is, and a list becomes a table before it is larger than that.
    #[test]
    fn the_first_elements_take_their_cells() {
        for blocks in [1, 65_536, 1_146_880] {
            let (mut filter, mut of_one) = (Sparse::new(blocks).unwrap(), Overflow::new(blocks));
            of_one.raise_to(place(0), 1);
            for n in 0..300 {
                filter.cells_of(element(n)).into_iter().for_each(|cell| filter.raise(cell, 2));
                filter.cells_of(element(n)).into_iter().for_each(|cell| filter.raise(cell, 1));
                let listed = matches!(filter.held, Held::Listed(_));
                let (memory, most) = (filter.memory(), of_one.memory());
                assert!(!listed || memory <= most && (n > 0 || memory <= 256), "{memory} of {most}");
                assert_eq!(listed, filter.used() <= MOST_LISTED.min(blocks / BLOCKS_OF_LISTED));
            }
            assert!((0..300).all(|n| filter.count(element(n)) >= 3));
        }
    }

    /// Few elements take little; many, however they are chosen, take no more than all cells and the memory used on the way there.
    #[test]
    fn memory_follows_the_used_cells_and_never_much_exceeds_that_of_all() {
        let blocks = 100_000;
        let mut filter = Sparse::new(blocks).unwrap();
        for n in 0..1000 {
            filter.cells_of(element(n)).into_iter().for_each(|cell| filter.raise(cell, 1));
        }
        assert!(filter.memory() < blocks * BLOCK_BYTES / 8, "{}", filter.memory());
        assert!((0..1000).all(|n| filter.count(element(n)) >= 1));
        let mut one_place = Sparse::new(blocks).unwrap();
        for cell in 0..1024 * CELLS_PER_BLOCK {
            one_place.raise(cell, 1);
            assert!(one_place.memory() <= 2 * blocks * BLOCK_BYTES);
        }
        for cell in 0..blocks * CELLS_PER_BLOCK / 4 {
            filter.raise(cell * 4, 1);
        }
        assert!(filter.memory() < blocks * BLOCK_BYTES * 5 / 4, "{}", filter.memory());
        assert!((0..1000).all(|n| filter.count(element(n)) >= 1));
    }

    #[test]
    fn other_sizes_and_cells_that_there_are_not_are_refused() {
        let mut filter = Sparse::new(3).unwrap();
        assert!(filter.apply(&Delta::empty(4)).is_err());
        filter.raise(3 * 128, 1);
        assert_eq!((filter.get(3 * 128), filter.used()), (0, 0));
        assert!(Sparse::new(0).is_err());
    }
}
