// SPDX-License-Identifier: GPL-3.0-or-later
//! From an element to its cells, in any layout.

use super::layout::{Layout, MOST_CELLS};
use super::sample::mix;
use bulkmark_filter::internals::{Cell, Group, Packed};

/// Cells that are taken from 64 bits, besides a block. Of a word of 64 bits the block takes up to 32 and each cell 7.
const CELLS_PER_WORD: usize = 4;

/// The cells of one element in a filter of a given layout and number of blocks.
///
/// As in [`Probe`](bulkmark_filter::Probe): a word of 64 bits is read as a fraction, and block and cells are its digits. The
/// first two words are the halves of the element, each further one is a mixture of both. So one block with eight cells
/// and two blocks with four take their cells straight from the element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probes {
    blocks: [usize; MOST_CELLS],
    cells: [u8; MOST_CELLS],
    groups: usize,
    per_group: usize,
}

/// The words of an element.
struct Words {
    high: u64,
    low: u64,
    next: u64,
}

impl Words {
    const fn next(&mut self) -> u64 {
        let word = match self.next {
            0 => self.high,
            1 => self.low,
            n => mix(self.high ^ mix(self.low.wrapping_add(n))),
        };
        self.next += 1;
        word
    }
}

/// `word / 2^64 * n` as its whole part, below `n`, and the fraction that remains.
#[expect(clippy::cast_possible_truncation, reason = "the halves of a number of 128 bits")]
const fn digit(word: u64, n: usize) -> (usize, u64) {
    let product = word as u128 * n as u128;
    ((product >> 64) as usize, product as u64)
}

impl Probes {
    /// The cells of `element` in a filter of `blocks` blocks of cells of `BITS` bits, the width of the layout.
    pub(super) fn new<const BITS: usize>(layout: &Layout, blocks: usize, element: u128) -> Self {
        Self::of_blocks::<BITS>(layout, blocks, element, layout.blocks())
    }

    /// Those in the element's first `groups` blocks only.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "halves of 128 bits, and cells below 128")]
    pub(super) fn of_blocks<const BITS: usize>(
        layout: &Layout,
        blocks: usize,
        element: u128,
        groups: usize,
    ) -> Self {
        let per_group = layout.cells();
        let mut probes = Self { blocks: [0; MOST_CELLS], cells: [0; MOST_CELLS], groups, per_group };
        let mut words = Words { high: (element >> 64) as u64, low: element as u64, next: 0 };
        let all = probes.blocks.iter_mut().zip(probes.cells.chunks_exact_mut(per_group));
        for (block, cells) in all.take(groups) {
            let mut rest;
            (*block, rest) = digit(words.next(), blocks);
            for (i, cell) in cells.iter_mut().enumerate() {
                if i > 0 && i % CELLS_PER_WORD == 0 {
                    rest = words.next();
                }
                let value;
                (value, rest) = digit(rest, Packed::<BITS>::PER_BLOCK);
                *cell = value as u8;
            }
        }
        probes
    }

    /// All cells, by block.
    pub(super) fn groups(&self) -> impl Iterator<Item = Group<'_>> + Clone {
        let groups = self.blocks.iter().zip(self.cells.chunks_exact(self.per_group)).take(self.groups);
        groups.map(|(&block, cells)| Group { block, cells })
    }

    /// The first `n` cells.
    pub(super) fn first(&self, n: usize) -> impl Iterator<Item = Cell> + Clone {
        self.groups()
            .flat_map(|group| group.cells.iter().map(move |&cell| Cell { block: group.block, cell }))
            .take(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::sample::element;
    use bulkmark_filter::Probe;
    use bulkmark_filter::internals::groups;
    use proptest::prelude::*;

    proptest! {
        /// The shipped layout has the cells of the shipped filter.
        #[test]
        fn two_blocks_of_four_are_those_of_the_filter(element: u128, blocks in 1usize..1 << 32) {
            let layout = "2x4/4".parse().unwrap();
            let shipped = Probe::new(element, blocks);
            let cells = |groups: &mut dyn Iterator<Item = (usize, Vec<u8>)>| groups.collect::<Vec<_>>();
            prop_assert_eq!(
                cells(&mut Probes::new::<4>(&layout, blocks, element).groups().map(|g| (g.block, g.cells.to_vec()))),
                cells(&mut groups(&shipped).map(|g| (g.block, g.cells.to_vec())))
            );
        }
    }

    /// Every cell of every block is reached, by each cell of an element, and evenly.
    #[test]
    fn every_cell_is_reached_evenly() {
        for text in ["1x8/4", "1x16/5", "2x5/4", "2x8/8", "8x1/4", "16x1/5", "5x3/8"] {
            let layout: Layout = text.parse().unwrap();
            let (blocks, per_block) = (3, layout.cells_per_block());
            let mut hits = vec![vec![0u32; blocks * per_block]; layout.k()];
            for i in 0..(blocks * per_block) as u64 * 60 {
                let element = element(1, i);
                let probes = match layout.bits() {
                    4 => Probes::new::<4>(&layout, blocks, element),
                    5 => Probes::new::<5>(&layout, blocks, element),
                    _ => Probes::new::<8>(&layout, blocks, element),
                };
                for (hits, at) in hits.iter_mut().zip(probes.first(layout.k())) {
                    hits[at.block * per_block + usize::from(at.cell)] += 1;
                }
            }
            // 60 hits are expected of each; six standard deviations either side.
            assert!(hits.iter().flatten().all(|&h| (14..=106).contains(&h)), "{text}: {hits:?}");
        }
    }
}
