// SPDX-License-Identifier: GPL-3.0-or-later
//! The refined counting filter (Yan & Cho, section 4, heuristics H1 and H2).

use super::cells::{self, Block, CELL_BITS, CELL_MAX, CELLS_PER_BLOCK};
use super::probe::Probe;

/// Cells per element at capacity (the paper's m/n). Eight cells of five bits, 40 bits an element: in two blocks with
/// k = 6 no element that was never added showed a count of 20 in 20 million questions (docs/filter.md).
const CELLS_PER_ELEMENT_AT_CAPACITY: usize = 8;

/// The number of blocks of a filter that is to hold `capacity` elements.
#[must_use]
pub const fn blocks_for(capacity: usize) -> usize {
    let blocks = (capacity * CELLS_PER_ELEMENT_AT_CAPACITY).div_ceil(CELLS_PER_BLOCK);
    if blocks == 0 { 1 } else { blocks }
}

/// A counting filter with conservative update: of an element's cells only the smallest are raised.
///
/// It must have a single writer that sees every addition (H1 is unsound on merged views), and it knows no deletion:
/// taking back an addition could push another element's count below its truth.
pub struct Refined {
    blocks: Vec<Block>,
}

impl Refined {
    /// An empty filter of `blocks` blocks of 64 bytes; at least one.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        Self { blocks: vec![Block::EMPTY; blocks.max(1)] }
    }

    /// The number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The cells of `element` in this filter.
    #[must_use]
    pub fn probe(&self, element: u128) -> Probe {
        Probe::new(element, self.blocks.len())
    }

    /// How often the element behind `probe` was added: the smallest of its cells, at most [`CELL_MAX`].
    #[must_use]
    pub fn count(&self, probe: &Probe) -> u8 {
        let mut least = CELL_MAX;
        for (&block, cells) in probe.blocks.iter().zip(&probe.cells) {
            for &cell in cells {
                least = least.min(self.blocks[block].get(usize::from(cell)));
            }
        }
        least
    }

    /// Adds the element behind `probe` `times` times and returns its new count.
    ///
    /// Raising the smallest cells by one, `times` times over, leaves each cell at the larger of what it was and the
    /// smallest plus `times`; a cell on which two probes fall is thereby raised once (H2).
    pub fn add(&mut self, probe: &Probe, times: u32) -> u8 {
        let times = u8::try_from(times).unwrap_or(u8::MAX);
        let target = self.count(probe).saturating_add(times).min(CELL_MAX);
        for (&block, cells) in probe.blocks.iter().zip(&probe.cells) {
            let block = &mut self.blocks[block];
            for &cell in cells {
                if block.get(usize::from(cell)) < target {
                    block.set(usize::from(cell), target);
                }
            }
        }
        target
    }

    /// The bytes of the blocks `range`, 64 each, in order.
    #[must_use]
    pub fn bytes(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        self.blocks[range].iter().flat_map(|b| b.0).collect()
    }

    /// Puts back bytes that [`bytes`](Self::bytes) gave, from block `first` on. False, and nothing is changed, when
    /// they are not a whole number of blocks inside the filter.
    #[must_use]
    pub fn restore(&mut self, first: usize, bytes: &[u8]) -> bool {
        let (blocks, rest) = bytes.as_chunks::<{ cells::BYTES }>();
        let Some(target) = first.checked_add(blocks.len()).and_then(|end| self.blocks.get_mut(first..end))
        else {
            return false;
        };
        if !rest.is_empty() {
            return false;
        }
        for (block, bytes) in target.iter_mut().zip(blocks) {
            block.0 = *bytes;
        }
        true
    }

    /// The name of this layout, stored beside the cells: filters are only compatible when it agrees.
    #[must_use]
    pub fn layout() -> String {
        format!("refined, 2 blocks of {CELLS_PER_BLOCK} cells of {CELL_BITS} bits, k=6")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn add(filter: &mut Refined, element: u128, times: u32) -> u8 {
        let probe = filter.probe(element);
        filter.add(&probe, times)
    }

    fn count(filter: &Refined, element: u128) -> u8 {
        filter.count(&filter.probe(element))
    }

    /// Elements from a small set, so that histories repeat and cells collide.
    fn history() -> impl Strategy<Value = Vec<(u128, u32)>> {
        let element =
            (0u128..60).prop_map(|i| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
        prop::collection::vec((element, 1u32..6), 0..200)
    }

    proptest! {
        /// Invariant 1 of the design: never below the true, saturated count, however crowded the filter.
        #[test]
        fn never_undercounts(history in history(), blocks in 1usize..4) {
            let mut filter = Refined::new(blocks);
            let mut model: HashMap<u128, u32> = HashMap::new();
            for (element, times) in history {
                let shown = add(&mut filter, element, times);
                *model.entry(element).or_default() += times;
                prop_assert!(u32::from(shown) >= model[&element].min(u32::from(CELL_MAX)));
            }
            for (element, truth) in model {
                prop_assert!(u32::from(count(&filter, element)) >= truth.min(u32::from(CELL_MAX)));
            }
        }

        /// In a filter with room, counts are exact.
        #[test]
        fn exact_with_room(history in history()) {
            let mut filter = Refined::new(20_000);
            let mut model: HashMap<u128, u32> = HashMap::new();
            for (element, times) in history {
                add(&mut filter, element, times);
                *model.entry(element).or_default() += times;
            }
            for (element, truth) in model {
                prop_assert_eq!(u32::from(count(&filter, element)), truth.min(u32::from(CELL_MAX)));
            }
        }

        /// H1: adding `c` at once is adding one `c` times, and no cell rises above the smallest plus `c`.
        #[test]
        fn one_large_addition_is_many_small(history in history(), element: u128, c in 0u32..40) {
            let (mut once, mut singly) = (Refined::new(2), Refined::new(2));
            for (element, times) in history {
                add(&mut once, element, times);
                add(&mut singly, element, times);
            }
            add(&mut once, element, c);
            for _ in 0..c {
                add(&mut singly, element, 1);
            }
            prop_assert_eq!(once.bytes(0..2), singly.bytes(0..2));
        }

        /// What goes to disk comes back the same.
        #[test]
        fn bytes_restore(history in history()) {
            let mut filter = Refined::new(5);
            for (element, times) in history {
                add(&mut filter, element, times);
            }
            let mut copy = Refined::new(5);
            prop_assert!(copy.restore(0, &filter.bytes(0..2)) && copy.restore(2, &filter.bytes(2..5)));
            prop_assert_eq!(copy.bytes(0..5), filter.bytes(0..5));
        }
    }

    /// H2: an element all of whose probes fall on one cell is counted once for each addition. With one block and the
    /// element 0 every probe is cell 0.
    #[test]
    fn coinciding_cells_are_raised_once() {
        let mut filter = Refined::new(1);
        assert_eq!(Probe::new(0, 1).cells, [[0; 3]; 2]);
        for expected in 1..=4 {
            assert_eq!(add(&mut filter, 0, 1), expected);
        }
    }

    #[test]
    fn saturates_and_stays() {
        let mut filter = Refined::new(1);
        assert_eq!(add(&mut filter, 7, 30), 30);
        assert_eq!(add(&mut filter, 7, u32::MAX), CELL_MAX);
        assert_eq!(add(&mut filter, 7, 1), CELL_MAX);
    }

    /// Table 2 of the paper: cells 1 1 0 before x was seen. The refined extension shows 1, 2, 3, 4 and raises the two
    /// larger cells only when the smallest has caught up.
    #[test]
    fn table_2_of_the_paper() {
        let mut filter = Refined::new(1000);
        let probe = filter.probe(0x0123_4567_89AB_CDEF_0246_8ACE_1357_9BDF);
        assert_ne!(probe.blocks[0], probe.blocks[1]);
        for cell in probe.cells[0] {
            filter.blocks[probe.blocks[0]].set(usize::from(cell), 1);
        }
        for round in 1..=4 {
            assert_eq!(filter.add(&probe, 1), round);
            for cell in probe.cells[0] {
                assert_eq!(filter.blocks[probe.blocks[0]].get(usize::from(cell)), round);
            }
        }
    }

    #[test]
    fn refuses_bytes_that_do_not_fit() {
        let mut filter = Refined::new(2);
        assert!(!filter.restore(0, &[0; 63]));
        assert!(!filter.restore(1, &[0; 128]));
        assert!(!filter.restore(usize::MAX, &[0; 64]));
    }
}
