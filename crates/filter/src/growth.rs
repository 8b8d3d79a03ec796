// SPDX-License-Identifier: GPL-3.0-or-later
//! The growth of one filter, recorded during additions.

use crate::blocks::Block;
use crate::cells::Cell;
use crate::delta::Delta;
use crate::layout::CELL_MAX;
use crate::probe::Probe;
use crate::refined::Refined;
use crate::split::further;
use std::collections::HashMap;

/// The distance, in blocks, at which a block is prefetched.
const AHEAD: usize = 16;

/// The old values of those cells of a filter that were added to, so that the growth since then is a [`Delta`] without a copy of the
/// whole filter.
///
/// ```
/// use bulkmark_filter::{Counting, Growth, Refined};
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let (mut filter, mut growth) = (Refined::new(100)?, Growth::default());
/// let probe = filter.probe(element);
/// growth.note(&filter, &probe, 3);
/// filter.add_at(&probe, 3);
/// assert!(growth.take(&filter).changes().all(|(_, by)| by == 3));
/// assert!(growth.take(&filter).is_empty());
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
#[derive(Debug, Default)]
pub struct Growth {
    blocks: HashMap<usize, Block>,
    /// The old values beyond 15 of cells that may have grown there.
    further: HashMap<Cell, u32>,
}

impl Growth {
    /// Records the cells of an element before it is added to `filter` `times` times.
    pub fn note(&mut self, filter: &Refined, probe: &Probe, times: u32) {
        for block in probe.blocks {
            self.blocks.entry(block).or_insert_with(|| filter.cells.block(block));
        }
        // The count is at most the value of the first cell, which mostly suffices.
        let may_pass = |count: u32| count.saturating_add(times) > CELL_MAX;
        if may_pass(filter.cells.first_base(probe)) && may_pass(filter.cells.count_base(probe)) {
            let (block, cells) = further(probe);
            for cell in cells {
                let at = Cell { block, cell };
                self.further.entry(at).or_insert_with(|| filter.cells.get_further(at));
            }
        }
    }

    /// Returns the number of recorded blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the growth of `filter` since the last call, and starts over.
    pub fn take(&mut self, filter: &Refined) -> Delta {
        let further = std::mem::take(&mut self.further);
        let mut blocks: Vec<_> = self.blocks.drain().collect();
        self.blocks.shrink_to(1024);
        blocks.sort_unstable_by_key(|&(block, _)| block);
        let mut changes = Vec::new();
        for (i, &(block, old)) in blocks.iter().enumerate() {
            if let Some(&(soon, _)) = blocks.get(i + AHEAD) {
                filter.cells.base().prefetch(soon);
            }
            let new = filter.cells.block(block);
            for (cell, old, new) in candidates(&old, &new, !further.is_empty()) {
                let at = Cell { block, cell };
                let beyond = if old == CELL_MAX {
                    // A cell that was not recorded did not grow there.
                    further.get(&at).map_or(0, |&before| filter.cells.get_further(at) - before)
                } else if new == CELL_MAX {
                    filter.cells.get_further(at)
                } else {
                    0
                };
                let by = (new - old).saturating_add(beyond);
                if by > 0 {
                    changes.push((at, by));
                }
            }
        }
        Delta::of(filter.cells.blocks(), changes)
    }
}

/// The cells of a block that differ, with their values before and after; and, with `full`, those that were saturated.
/// Most cells of a block are unchanged: they are skipped 16 at a time.
fn candidates(old: &Block, new: &Block, full: bool) -> impl Iterator<Item = (u8, u32, u32)> {
    let words = |block: &Block| {
        let words: [[u8; 8]; 8] = std::array::from_fn(|i| std::array::from_fn(|j| block[8 * i + j]));
        words.map(u64::from_le_bytes)
    };
    (0..).step_by(CELLS_PER_WORD).zip(words(old)).zip(words(new)).flat_map(move |((first, old), new)| {
        let mut wanted = lowest_of_each(|shift| (old ^ new) >> shift, |a, b| a | b);
        if full {
            wanted |= lowest_of_each(|shift| old >> shift, |a, b| a & b);
        }
        std::iter::from_fn(move || {
            let shift = wanted.trailing_zeros();
            wanted &= wanted.checked_sub(1)?;
            let value = |word: u64| u32::from((word >> shift).to_le_bytes()[0] & 15);
            Some((first + u8::try_from(shift / 4).unwrap_or(0), value(old), value(new)))
        })
    })
}

/// Cells of four bits in a word.
const CELLS_PER_WORD: usize = 16;

/// In each cell of a word, combines the four bits into the lowest one.
fn lowest_of_each(bits: impl Fn(u32) -> u64, together: impl Fn(u64, u64) -> u64) -> u64 {
    let all = together(together(bits(0), bits(1)), together(bits(2), bits(3)));
    all & 0x1111_1111_1111_1111
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::Counting;
    use proptest::prelude::*;

    proptest! {
        /// The recorded growth is the difference of before and after, repeatedly.
        #[test]
        fn growth_is_the_difference(
            rounds in prop::collection::vec(
                prop::collection::vec((0u64..40, prop_oneof![4 => 1u32..8, 1 => 1u32..200]), 0..40), 1..6),
        ) {
            let element = |n: u64| u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            let (mut filter, mut growth) = (Refined::new(3).unwrap(), Growth::default());
            let mut before = Refined::new(3).unwrap();
            for round in &rounds {
                for &(n, times) in round {
                    let probe = filter.probe(element(n));
                    growth.note(&filter, &probe, times);
                    filter.add_at(&probe, times);
                }
                prop_assert_eq!(growth.take(&filter), Delta::between(&before, &filter).unwrap());
                prop_assert!(growth.is_empty());
                before = Refined::new(3).unwrap();
                prop_assert!(before.restore(0..3, &filter.bytes(0..3)));
            }
        }
    }
}
