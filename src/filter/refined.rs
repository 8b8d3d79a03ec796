// SPDX-License-Identifier: GPL-3.0-or-later
//! The refined counting filter (Yan & Cho, section 4, heuristics H1 and H2).

use super::cells::{self, Block, CELL_BITS, CELL_MAX, CELLS_PER_BLOCK};
use super::counting::{Counting, RemoveError};
use super::overflow::{Cell, Overflow};
use super::params::ParameterError;
use super::probe::Probe;

/// The largest filter: 2^32 blocks, 256 GiB.
const MAX_BLOCKS: u64 = 1 << 32;

/// The number of blocks of a filter that is to hold `capacity` elements with `cells` cells for each; at least one. With
/// 50 cells, more than any slice of a row gets, it is still below 2^32.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and bounded just before"
)]
pub(super) fn blocks_for(capacity: u32, cells: f64) -> usize {
    let blocks = (f64::from(capacity) * cells.clamp(1.0, 50.0) / CELLS_PER_BLOCK as f64).ceil();
    (blocks as usize).max(1)
}

/// A counting filter with conservative update: of an element's cells only the smallest are raised.
///
/// It must have a single writer that sees every addition (H1 is unsound on merged views), and it knows no deletion:
/// taking back an addition could push another element's count below its truth.
///
/// Counts beyond 31 are kept for the three cells of an element's first block only. Those of the second block stay at
/// 31, which tells no more than "at least 31". So bulk costs half of the split storage, and its count, which no other
/// element shares in so sparse a table, is as right as with six.
pub struct Refined {
    blocks: Vec<Block>,
    overflow: Overflow,
}

impl Refined {
    /// An empty filter of `blocks` blocks of 64 bytes.
    ///
    /// # Errors
    /// When `blocks` is 0 or above 2^32.
    pub fn new(blocks: usize) -> Result<Self, ParameterError> {
        ParameterError::check("blocks", blocks as u64, 1, MAX_BLOCKS)?;
        Ok(Self::of(blocks))
    }

    fn of(blocks: usize) -> Self {
        Self { blocks: vec![Block::EMPTY; blocks], overflow: Overflow::new(blocks) }
    }

    /// The smallest of the five-bit cells.
    fn base(&self, probe: &Probe) -> u8 {
        let mut least = CELL_MAX;
        for (&block, cells) in probe.blocks.iter().zip(&probe.cells) {
            for &cell in cells {
                least = least.min(self.blocks[block].get(usize::from(cell)));
            }
        }
        least
    }

    /// The cells of an element that have further bits.
    fn split(probe: &Probe) -> impl Iterator<Item = Cell> + use<> {
        let block = probe.blocks[0];
        probe.cells[0].into_iter().map(move |cell| Cell { block, cell })
    }

    /// What the cells of the first block hold beyond 31; the smallest of them.
    fn further(&self, probe: &Probe) -> u32 {
        Self::split(probe).map(|cell| self.overflow.get(cell)).min().unwrap_or(0)
    }

    fn raise_base(&mut self, probe: &Probe, target: u8) {
        for (&block, cells) in probe.blocks.iter().zip(&probe.cells) {
            let block = &mut self.blocks[block];
            for &cell in cells {
                if block.get(usize::from(cell)) < target {
                    block.set(usize::from(cell), target);
                }
            }
        }
    }

    fn raise_further(&mut self, probe: &Probe, target: u32) {
        let target = target.min(u32::MAX - u32::from(CELL_MAX));
        for cell in Self::split(probe) {
            if self.overflow.get(cell) < target {
                self.overflow.set(cell, target);
            }
        }
    }

    /// The blocks `range` as bytes: 64 for each block, then 8 for each count beyond 31 (cell from the start of the range,
    /// further count; both little-endian). The range must begin at a multiple of 1000 blocks and end at one or at the
    /// end of the filter.
    #[must_use]
    pub fn bytes(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.blocks[range.clone()].iter().flat_map(|b| b.0).collect();
        for (Cell { block, cell }, further) in self.overflow.entries(range.clone()) {
            let index = (block - range.start) * CELLS_PER_BLOCK + usize::from(cell);
            bytes.extend_from_slice(&u32::try_from(index).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(&further.to_le_bytes());
        }
        bytes
    }

    /// Puts back what [`bytes`](Self::bytes) gave for the blocks `range`. False when it does not fit them; then nothing
    /// is changed.
    #[must_use]
    pub fn restore(&mut self, range: std::ops::Range<usize>, bytes: &[u8]) -> bool {
        let Some(target) = self.blocks.get_mut(range.clone()) else { return false };
        let Some((blocks, further)) = bytes.split_at_checked(target.len() * cells::BYTES) else {
            return false;
        };
        let (further, []) = further.as_chunks::<8>() else { return false };
        let entry = |[a, b, c, d, e, f, g, h]: &[u8; 8]| {
            (u32::from_le_bytes([*a, *b, *c, *d]) as usize, u32::from_le_bytes([*e, *f, *g, *h]))
        };
        if further
            .iter()
            .map(entry)
            .any(|(index, value)| index >= target.len() * CELLS_PER_BLOCK || value == 0)
        {
            return false;
        }
        for (block, bytes) in target.iter_mut().zip(blocks.as_chunks::<{ cells::BYTES }>().0) {
            block.0 = *bytes;
        }
        for (index, value) in further.iter().map(entry) {
            let cell = u8::try_from(index % CELLS_PER_BLOCK).unwrap_or(0);
            self.overflow.set(Cell { block: range.start + index / CELLS_PER_BLOCK, cell }, value);
        }
        true
    }

    /// Bytes of memory: blocks, and what bulk needs beside them.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.blocks.len() * cells::BYTES + self.overflow.heap_bytes()
    }

    /// The name of this layout, stored beside the cells: filters are only compatible when it agrees.
    #[must_use]
    pub fn layout() -> String {
        format!("refined, 2 blocks of {CELLS_PER_BLOCK} cells of {CELL_BITS} bits, k=6, split at 31")
    }
}

impl Counting for Refined {
    fn sized(capacity: u32, cells: f64) -> Self {
        Self::of(blocks_for(capacity, cells))
    }

    fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The smallest of the cells.
    fn count(&self, probe: &Probe) -> u32 {
        let base = self.base(probe);
        if base < CELL_MAX {
            return base.into();
        }
        self.further(probe).saturating_add(CELL_MAX.into())
    }

    /// Raising the smallest cells by one, `times` times over, leaves each cell at the larger of what it was and the
    /// smallest plus `times` (H1); a cell on which two probes fall is thereby raised once (H2).
    fn add(&mut self, probe: &Probe, times: u32) -> u32 {
        let base = self.base(probe);
        let to_full = u32::from(CELL_MAX - base);
        if times <= to_full {
            let target = base + u8::try_from(times).unwrap_or(0);
            self.raise_base(probe, target);
        } else {
            self.raise_base(probe, CELL_MAX);
            // Where the cells of the first block had more from others, that is now the element's count, too, and the
            // additions that are left come on top of it, as if they came one by one.
            self.raise_further(probe, self.further(probe).saturating_add(times - to_full));
        }
        self.count(probe)
    }

    fn remove(&mut self, _: &Probe) -> Result<(), RemoveError> {
        Err(RemoveError::Refined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn filter(blocks: usize) -> Refined {
        Refined::new(blocks).unwrap()
    }

    fn add(filter: &mut Refined, element: u128, times: u32) -> u32 {
        let probe = filter.probe(element);
        filter.add(&probe, times)
    }

    fn count(filter: &Refined, element: u128) -> u32 {
        filter.count(&filter.probe(element))
    }

    /// Elements from a small set, so that histories repeat and cells collide.
    fn history() -> impl Strategy<Value = Vec<(u128, u32)>> {
        let element =
            (0u128..60).prop_map(|i| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
        prop::collection::vec((element, prop_oneof![4 => 1u32..6, 1 => 1u32..100]), 0..200)
    }

    proptest! {
        /// Invariant 1 of the design: never below the truth, however crowded the filter.
        #[test]
        fn never_undercounts(history in history(), blocks in 1usize..4) {
            let mut filter = filter(blocks);
            let mut model: HashMap<u128, u32> = HashMap::new();
            for (element, times) in history {
                let shown = add(&mut filter, element, times);
                *model.entry(element).or_default() += times;
                prop_assert!(shown >= model[&element]);
            }
            for (element, truth) in model {
                prop_assert!(count(&filter, element) >= truth);
            }
        }

        /// In a filter with room, counts are exact.
        #[test]
        fn exact_with_room(history in history()) {
            let mut filter = filter(20_000);
            let mut model: HashMap<u128, u32> = HashMap::new();
            for (element, times) in history {
                add(&mut filter, element, times);
                *model.entry(element).or_default() += times;
            }
            for (element, truth) in model {
                prop_assert_eq!(count(&filter, element), truth);
            }
        }

        /// H1: adding `c` at once is adding one `c` times, and no cell rises above the smallest plus `c`.
        #[test]
        fn one_large_addition_is_many_small(history in history(), element: u128, c in 0u32..80) {
            let (mut once, mut singly) = (filter(2), filter(2));
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
            let mut filter = filter(1002);
            for (element, times) in history {
                add(&mut filter, element, times);
            }
            let mut copy = Refined::new(1002).unwrap();
            prop_assert!(copy.restore(0..1000, &filter.bytes(0..1000)));
            prop_assert!(copy.restore(1000..1002, &filter.bytes(1000..1002)));
            prop_assert_eq!(copy.bytes(0..1002), filter.bytes(0..1002));
        }
    }

    /// H2: an element all of whose probes fall on one cell is counted once for each addition. With one block and the
    /// element 0 every probe is cell 0.
    #[test]
    fn coinciding_cells_are_raised_once() {
        let mut filter = filter(1);
        assert_eq!(Probe::new(0, 1).cells, [[0; 3]; 2]);
        for expected in 1..=4 {
            assert_eq!(add(&mut filter, 0, 1), expected);
        }
    }

    /// Counts go on beyond the five bits, to at least 2^24.
    #[test]
    fn counts_beyond_the_cells() {
        let mut filter = filter(1);
        assert_eq!(add(&mut filter, 7, 30), 30);
        assert_eq!(add(&mut filter, 7, 1), 31);
        assert_eq!(add(&mut filter, 7, 1), 32);
        assert_eq!(add(&mut filter, 7, 1 << 24), (1 << 24) + 32);
        assert_eq!(add(&mut filter, 7, u32::MAX), u32::MAX);
        assert_eq!(add(&mut filter, 7, 1), u32::MAX);
    }

    /// Table 2 of the paper: cells 1 1 0 before x was seen. The refined extension shows 1, 2, 3, 4 and raises the two
    /// larger cells only when the smallest has caught up.
    #[test]
    fn table_2_of_the_paper() {
        let mut filter = filter(1000);
        let probe = filter.probe(0x0123_4567_89AB_CDEF_0246_8ACE_1357_9BDF);
        assert_ne!(probe.blocks[0], probe.blocks[1]);
        for cell in probe.cells[0] {
            filter.blocks[probe.blocks[0]].set(usize::from(cell), 1);
        }
        for round in 1..=4 {
            assert_eq!(filter.add(&probe, 1), u32::from(round));
            for cell in probe.cells[0] {
                assert_eq!(filter.blocks[probe.blocks[0]].get(usize::from(cell)), round);
            }
        }
    }

    #[test]
    fn refuses_bytes_that_do_not_fit() {
        let mut filter = filter(2);
        assert!(!filter.restore(0..1, &[0; 63]), "too few");
        assert!(!filter.restore(0..1, &[0; 65]), "an odd rest");
        assert!(!filter.restore(0..3, &[0; 192]), "beyond the filter");
        let beyond = [&[0; 64][..], &102u32.to_le_bytes(), &[1, 0, 0, 0]].concat();
        assert!(!filter.restore(0..1, &beyond), "a cell beyond the block");
        assert!(!filter.restore(0..1, &[0; 72]), "a further count of zero");
        assert_eq!(Refined::new(0).err().unwrap().to_string(), "blocks is 0, expected 1 to 4294967296");
    }
}
