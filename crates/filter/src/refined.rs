// SPDX-License-Identifier: GPL-3.0-or-later
//! The refined counting filter (Yan & Cho, section 4, heuristics H1 and H2).

use crate::counting::Counting;
use crate::gauge::Gauge;
use crate::layout::{CELL_BITS, CELL_MAX, CELLS_PER_BLOCK, CELLS_PER_ELEMENT};
use crate::params::ParameterError;
use crate::probe::Probe;
use crate::split::Split;
use std::ops::Range;

/// A counting filter with conservative update: only the smallest of an element's cells are raised.
///
/// It must have a single writer that makes every addition (H1 is unsound on merged views), and it supports no deletion: removing an
/// addition could push another element's count below its true count.
///
/// Counts beyond 15 are kept for three cells of an element's first block only. The others stay at 15, which means only "at least
/// 15". So a large count costs less split storage, and it is as accurate as with eight cells, since hardly any other element shares
/// the entries of so sparse a table.
///
/// ```
/// use bulkmark_filter::{CELLS_AT_CAPACITY, Counting, Refined};
///
/// let (a, b) = (0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835, 0x0123_4567_89AB_CDEF_0246_8ACE_1357_9BDF);
/// let mut filter = Refined::sized(10_000, CELLS_AT_CAPACITY)?;
/// let mut counts = [0; 2];
/// filter.add_batch(&[(a, 3), (b, 20)], &mut counts);
/// assert_eq!(counts, [3, 20]);
///
/// // To disk and back, as a whole or some blocks at a time.
/// let all = 0..filter.blocks();
/// let mut copy = Refined::new(filter.blocks())?;
/// assert!(copy.restore(all.clone(), &filter.bytes(all)));
/// assert_eq!(copy.count(b), 20);
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
pub struct Refined {
    pub(crate) cells: Split,
}

impl Refined {
    /// Prefetches the memory for counting or adding an element soon.
    #[inline]
    pub fn prefetch(&self, element: u128) {
        self.cells.prefetch(&self.probe(element));
    }

    /// Measures fill, saturation, and the probability of a false positive at a threshold of at least 1, from a sample of the cells in
    /// large filters: about ten milliseconds.
    #[must_use]
    pub fn gauge(&self, threshold: u32) -> Gauge {
        self.cells.gauge(threshold)
    }

    /// Returns the blocks `range` as bytes: 64 for each block, then 8 for each count beyond 15 (cell from the start of the range,
    /// further count; both little-endian).
    #[must_use]
    pub fn bytes(&self, range: Range<usize>) -> Vec<u8> {
        self.cells.bytes(range)
    }

    /// Restores the [`bytes`](Self::bytes) of the blocks `range`, which must still be empty. Returns false if they do not fit; then
    /// nothing is changed.
    #[must_use]
    pub fn restore(&mut self, range: Range<usize>, bytes: &[u8]) -> bool {
        self.cells.restore(range, bytes)
    }

    /// Returns the bytes of memory: blocks, and the storage for large counts.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.cells.memory()
    }

    /// Returns the name of this layout, to be stored beside the cells: filters are only compatible if it agrees.
    #[must_use]
    pub fn layout() -> String {
        format!(
            "refined, 2 blocks of {CELLS_PER_BLOCK} cells of {CELL_BITS} bits, k={CELLS_PER_ELEMENT}, split at {CELL_MAX}"
        )
    }
}

impl Counting for Refined {
    fn new(blocks: usize) -> Result<Self, ParameterError> {
        Ok(Self { cells: Split::new(blocks)? })
    }

    fn blocks(&self) -> usize {
        self.cells.blocks()
    }

    /// Returns the smallest of the cells.
    #[inline]
    fn count_at(&self, probe: &Probe) -> u32 {
        self.cells.count(probe)
    }

    /// Raising the smallest cells by one, `times` times over, leaves each cell at the larger of its old value and the
    /// smallest plus `times` (H1); a cell that two probes share is thereby raised once (H2).
    #[inline]
    fn add_at(&mut self, probe: &Probe, times: u32) -> u32 {
        let sum = self.cells.add_base(probe, times).saturating_add(times);
        if sum < CELL_MAX { sum } else { self.cells.add_further(probe, sum - CELL_MAX) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cells::Cell;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn filter(blocks: usize) -> Refined {
        Refined::new(blocks).unwrap()
    }

    /// Elements from a small set, so that histories repeat and cells collide.
    pub(crate) fn history() -> impl Strategy<Value = Vec<(u128, u32)>> {
        let element =
            (0u128..60).prop_map(|i| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
        prop::collection::vec((element, prop_oneof![4 => 1u32..6, 1 => 1u32..100]), 0..200)
    }

    proptest! {
        /// Invariant 1 of the design: never below the true count, however crowded the filter.
        #[test]
        fn never_undercounts(history in history(), blocks in 1usize..4) {
            let mut filter = filter(blocks);
            let mut model: HashMap<u128, u32> = HashMap::new();
            for (element, times) in history {
                let shown = filter.add(element, times);
                *model.entry(element).or_default() += times;
                prop_assert!(shown >= model[&element]);
            }
            for (element, truth) in model {
                prop_assert!(filter.count(element) >= truth);
            }
        }

        /// In a filter with room, counts are exact.
        #[test]
        fn exact_with_room(history in history()) {
            let mut filter = filter(20_000);
            let mut model: HashMap<u128, u32> = HashMap::new();
            for (element, times) in history {
                filter.add(element, times);
                *model.entry(element).or_default() += times;
            }
            for (element, truth) in model {
                prop_assert_eq!(filter.count(element), truth);
            }
        }

        /// H1: one addition of `c` equals `c` additions of one, and no cell rises above the smallest plus `c`.
        #[test]
        fn one_large_addition_is_many_small(history in history(), element: u128, c in 0u32..80) {
            let (mut once, mut singly) = (filter(2), filter(2));
            for (element, times) in history {
                once.add(element, times);
                singly.add(element, times);
            }
            once.add(element, c);
            for _ in 0..c {
                singly.add(element, 1);
            }
            prop_assert_eq!(once.bytes(0..2), singly.bytes(0..2));
        }

        /// Restoring from bytes gives the same filter.
        #[test]
        fn bytes_restore(history in history()) {
            let mut filter = filter(1030);
            for (element, times) in history {
                filter.add(element, times);
            }
            let mut copy = Refined::new(1030).unwrap();
            prop_assert!(copy.restore(0..1024, &filter.bytes(0..1024)));
            prop_assert!(copy.restore(1024..1030, &filter.bytes(1024..1030)));
            prop_assert_eq!(copy.bytes(0..1030), filter.bytes(0..1030));
        }
    }

    /// H2: an element all of whose probes share one cell is counted once for each addition. With one block and the
    /// element 0 every probe is cell 0.
    #[test]
    fn coinciding_cells_are_raised_once() {
        let mut filter = filter(1);
        assert_eq!(Probe::new(0, 1).cells, [[0; 4]; 2]);
        for expected in 1..=4 {
            assert_eq!(filter.add(0, 1), expected);
        }
    }

    /// Counts continue beyond the four bits, to at least 2^24.
    #[test]
    fn counts_beyond_the_cells() {
        let mut filter = filter(1);
        assert_eq!(filter.add(7, 30), 30);
        assert_eq!(filter.add(7, 1), 31);
        assert_eq!(filter.add(7, 1), 32);
        assert_eq!(filter.add(7, 1 << 24), (1 << 24) + 32);
        assert_eq!(filter.add(7, u32::MAX), u32::MAX);
        assert_eq!(filter.add(7, 1), u32::MAX);
    }

    /// Table 2 of the paper: cells 1 1 0 before x was added. The refined extension shows 1, 2, 3, 4 and raises the two
    /// larger cells only when the smallest has caught up.
    #[test]
    fn table_2_of_the_paper() {
        let mut filter = filter(1000);
        let probe = filter.probe(0x0123_4567_89AB_CDEF_0246_8ACE_1357_9BDF);
        assert_ne!(probe.blocks[0], probe.blocks[1]);
        for cell in probe.cells[0] {
            filter.cells.raise(Cell { block: probe.blocks[0], cell }, 1);
        }
        for round in 1..=4 {
            assert_eq!(filter.add_at(&probe, 1), round);
            for cell in probe.cells[0] {
                assert_eq!(filter.cells.get(Cell { block: probe.blocks[0], cell }), round);
            }
        }
    }

    #[test]
    fn refuses_bytes_that_do_not_fit() {
        let mut filter = filter(2);
        assert!(!filter.restore(0..1, &[0; 63]), "too few");
        assert!(!filter.restore(0..1, &[0; 65]), "an odd rest");
        assert!(!filter.restore(0..3, &[0; 192]), "beyond the filter");
        let beyond = [&[0; 64][..], &128u32.to_le_bytes(), &[1, 0, 0, 0]].concat();
        assert!(!filter.restore(0..1, &beyond), "a cell beyond the block");
        assert!(!filter.restore(0..1, &[0; 72]), "a further count of zero");
        assert_eq!(Refined::new(0).err().unwrap().to_string(), "blocks is 0, expected 1 to 4294967296");
    }
}
