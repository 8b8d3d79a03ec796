// SPDX-License-Identifier: GPL-3.0-or-later
//! The possible growth of a merged filter, computed beside it.

use crate::blocks::Block;
use crate::cells::Cell;
use crate::delta::Delta;
use crate::layout::{CELL_BITS, CELL_MAX, CELLS_PER_BLOCK};
use crate::merged::Merged;
use crate::packed::{set_value, value};
use crate::params::ParameterError;
use crate::probe::Probe;
use crate::split::{Split, further};
use std::collections::HashMap;

/// Tentative additions to a [`Merged`] filter: it does not change, and its possible growth is a [`Delta`].
///
/// A draft raises the smallest cells (H1) of a sum of several writers' filters. That is right as long as nobody else adds to the merged
/// cells meanwhile: each cell of an element is at least its count there, and all of them are raised to that count plus the addition. So
/// a draft is for one writer at a time: the writer that appends the delta to a history in which each step names the previous one. If another
/// step was first, the delta is invalid, and a new one must be made from the cells as they are then.
///
/// ```
/// use bulkmark_filter::{Counting, Draft, Merged, Refined};
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let mut here = Refined::new(100)?;
/// here.add(element, 2);
/// let mut merged = Merged::new(100)?;
/// merged.merge(&here)?;
///
/// let mut draft = Draft::of(&merged);
/// assert_eq!(draft.add(element, 3), 5);
/// let delta = draft.delta();
/// assert_eq!(merged.count(element), 2);
/// merged.apply(&delta)?;
/// assert_eq!(merged.count(element), 5);
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
pub struct Draft<'a> {
    /// The merged cells; `None` if there are none yet.
    base: Option<&'a Split>,
    blocks: usize,
    /// Visited blocks, including the additions.
    changed: HashMap<usize, Block>,
    /// Cells raised beyond 15, with their whole values beyond it.
    further: HashMap<Cell, u32>,
}

const EMPTY: Block = [0; size_of::<Block>()];

impl<'a> Draft<'a> {
    /// Begins a draft beside these counts.
    #[must_use]
    pub fn of(merged: &'a Merged) -> Self {
        Self::beside(Some(&merged.cells), merged.blocks())
    }

    /// Begins a draft for a filter of `blocks` blocks that is still empty.
    ///
    /// # Errors
    /// If `blocks` is 0 or above 2^32.
    pub fn new(blocks: usize) -> Result<Self, ParameterError> {
        ParameterError::check("blocks", blocks as u64, 1, 1 << 32)?;
        Ok(Self::beside(None, blocks))
    }

    fn beside(base: Option<&'a Split>, blocks: usize) -> Self {
        Self { base, blocks, changed: HashMap::new(), further: HashMap::new() }
    }

    /// Returns how often `element` would have been added. Never below the true count.
    #[must_use]
    pub fn count(&self, element: u128) -> u32 {
        let probe = Probe::new(element, self.blocks);
        let base = self.count_base(&probe);
        if base < CELL_MAX { base } else { self.least_further(&probe).saturating_add(CELL_MAX) }
    }

    /// Adds `element` `times` times, and returns the count that it would have.
    pub fn add(&mut self, element: u128, times: u32) -> u32 {
        let probe = Probe::new(element, self.blocks);
        let before = self.count_base(&probe);
        let sum = before.saturating_add(times);
        if before < CELL_MAX && times > 0 {
            self.raise_base(&probe, sum.min(CELL_MAX));
        }
        if sum < CELL_MAX {
            return sum;
        }
        let target = self.least_further(&probe).saturating_add(sum - CELL_MAX);
        if sum > CELL_MAX {
            let (block, cells) = further(&probe);
            for at in cells.map(|cell| Cell { block, cell }) {
                if self.get_further(at) < target {
                    self.further.insert(at, target);
                    self.changed.entry(block).or_insert_with(|| original(self.base, block));
                }
            }
        }
        target.saturating_add(CELL_MAX)
    }

    /// Returns the number of blocks that may have changed.
    #[must_use]
    pub fn changed(&self) -> usize {
        self.changed.len()
    }

    /// Returns the possible growth of the filter.
    #[must_use]
    pub fn delta(&self) -> Delta {
        let mut blocks: Vec<_> = self.changed.iter().collect();
        blocks.sort_unstable_by_key(|&(&block, _)| block);
        let mut changes = Vec::new();
        for (&block, new) in blocks {
            let old = original(self.base, block);
            for (cell, i) in (0..=u8::MAX).zip(0..CELLS_PER_BLOCK) {
                let (at, [old, new]) = (Cell { block, cell }, [&old, new].map(|b| get(b, i)));
                // A cell of 15 may have more, and one that reached 15 may have grown beyond.
                let by = match (old, new) {
                    (CELL_MAX, _) => {
                        self.further.get(&at).map_or(0, |further| further - self.base_further(at))
                    }
                    (_, CELL_MAX) => (new - old).saturating_add(self.get_further(at)),
                    _ => new - old,
                };
                if by > 0 {
                    changes.push((at, by));
                }
            }
        }
        Delta::of(self.blocks, changes)
    }

    fn block(&self, block: usize) -> Block {
        self.changed.get(&block).copied().unwrap_or_else(|| original(self.base, block))
    }

    fn count_base(&self, probe: &Probe) -> u32 {
        let of = |(&block, cells): (&usize, &[u8; 4])| {
            let block = self.block(block);
            cells.iter().map(|&cell| get(&block, cell.into())).min().unwrap_or(0)
        };
        probe.blocks.iter().zip(&probe.cells).map(of).min().unwrap_or(0)
    }

    fn raise_base(&mut self, probe: &Probe, target: u32) {
        for (&number, cells) in probe.blocks.iter().zip(&probe.cells) {
            let block = self.changed.entry(number).or_insert_with(|| original(self.base, number));
            for &cell in cells {
                if get(block, cell.into()) < target {
                    set_value::<CELL_BITS>(block, cell.into(), target);
                }
            }
        }
    }

    fn base_further(&self, at: Cell) -> u32 {
        self.base.map_or(0, |base| base.get_further(at))
    }

    fn get_further(&self, at: Cell) -> u32 {
        self.further.get(&at).copied().unwrap_or_else(|| self.base_further(at))
    }

    fn least_further(&self, probe: &Probe) -> u32 {
        let (block, cells) = further(probe);
        cells.map(|cell| self.get_further(Cell { block, cell })).into_iter().min().unwrap_or(0)
    }
}

fn get(block: &Block, cell: usize) -> u32 {
    value::<CELL_BITS>(block, cell).into()
}

/// Returns a block without the tentative additions.
fn original(base: Option<&Split>, block: usize) -> Block {
    base.map_or(EMPTY, |base| base.block(block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::Counting;
    use crate::refined::Refined;
    use crate::refined::tests::history;
    use proptest::prelude::*;
    use std::collections::HashMap;

    const BLOCKS: usize = 3;

    proptest! {
        /// A writer makes several drafts in a row, of which each is applied: the cells equal those of a filter with all additions, and
        /// a draft alone changes nothing.
        #[test]
        fn drafts_in_a_row_are_one_filter(steps in prop::collection::vec(history(), 1..5)) {
            let (mut merged, mut filter) = (Merged::new(BLOCKS).unwrap(), Refined::new(BLOCKS).unwrap());
            for (n, step) in steps.iter().enumerate() {
                let before = merged.bytes(0..BLOCKS);
                let mut draft = if n == 0 { Draft::new(BLOCKS).unwrap() } else { Draft::of(&merged) };
                for &(element, times) in step {
                    let shown = filter.add(element, times);
                    prop_assert_eq!(draft.add(element, times), shown);
                    prop_assert_eq!(draft.count(element), shown);
                }
                let delta = draft.delta();
                prop_assert_eq!(&merged.bytes(0..BLOCKS), &before);
                merged.apply(&delta).unwrap();
                prop_assert_eq!(merged.bytes(0..BLOCKS), filter.bytes(0..BLOCKS));
            }
        }

        /// Beside counts of several writers who have stopped writing: never below the true count.
        #[test]
        fn drafts_beside_a_sum_never_undercount(one in history(), other in history(), steps in prop::collection::vec(history(), 1..4)) {
            let mut merged = Merged::new(BLOCKS).unwrap();
            let mut truth: HashMap<u128, u32> = HashMap::new();
            for writer in [one, other] {
                let mut filter = Refined::new(BLOCKS).unwrap();
                for (element, times) in writer {
                    filter.add(element, times);
                    *truth.entry(element).or_default() += times;
                }
                merged.merge(&filter).unwrap();
            }
            for step in steps {
                let mut draft = Draft::of(&merged);
                for (element, times) in step {
                    *truth.entry(element).or_default() += times;
                    prop_assert!(draft.add(element, times) >= truth[&element]);
                }
                let delta = draft.delta();
                merged.apply(&delta).unwrap();
            }
            for (element, truth) in truth {
                prop_assert!(merged.count(element) >= truth);
            }
        }
    }

    #[test]
    fn counts_go_on_to_the_largest_number() {
        let mut merged = Merged::new(1).unwrap();
        for (times, shown) in [(30, 30), (1 << 24, (1 << 24) + 30), (u32::MAX, u32::MAX), (1, u32::MAX)] {
            let mut draft = Draft::of(&merged);
            assert_eq!(draft.add(7, times), shown);
            let delta = draft.delta();
            merged.apply(&delta).unwrap();
            assert_eq!(merged.count(7), shown);
        }
    }
}
