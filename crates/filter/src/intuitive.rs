// SPDX-License-Identifier: GPL-3.0-or-later
//! The intuitive counting filter: each addition raises all cells of an element, so it can be removed.

use crate::cells::{add_intuitive, count, remove_intuitive};
use crate::counting::{Counting, RemoveError, Removing};
use crate::layout::CELL_BITS;
use crate::packed::Packed;
use crate::params::ParameterError;
use crate::probe::Probe;
use std::ops::Range;

/// A counting filter whose additions commute and can be removed, at the price of more wrong counts (the paper's
/// study; crates/study/docs/simulation.md). Its cells of four bits stay at 15 once they reach it: the additions that a saturated cell
/// lost on the way up are unknown on the way down.
///
/// ```
/// use bulkmark_filter::{Counting, Intuitive, Removing};
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let mut filter = Intuitive::sized(10_000, 10.0)?;
/// filter.add(element, 2);
/// filter.remove(element).expect("it was added");
/// assert_eq!(filter.count(element), 1);
///
/// // To disk and back, as a whole or some blocks at a time.
/// let all = 0..filter.blocks();
/// let mut copy = Intuitive::new(filter.blocks())?;
/// assert!(copy.restore(all.clone(), filter.bytes(all)));
/// assert_eq!(copy.count(element), 1);
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
pub struct Intuitive {
    cells: Packed<CELL_BITS>,
}

impl Intuitive {
    /// Returns the blocks `range` as bytes: 64 for each block, two cells in each byte, the lower half first.
    #[must_use]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.cells.bytes(range)
    }

    /// Restores the [`bytes`](Self::bytes) of the blocks `range`. Returns false if they do not fit; then nothing is changed.
    #[must_use]
    pub fn restore(&mut self, range: Range<usize>, bytes: &[u8]) -> bool {
        let target = self.cells.bytes_mut(range).filter(|target| target.len() == bytes.len());
        target.map(|target| target.copy_from_slice(bytes)).is_some()
    }
}

impl Counting for Intuitive {
    fn new(blocks: usize) -> Result<Self, ParameterError> {
        Ok(Self { cells: Packed::new(blocks)? })
    }

    fn blocks(&self) -> usize {
        self.cells.blocks()
    }

    fn count_at(&self, probe: &Probe) -> u32 {
        count(&self.cells, probe.groups())
    }

    fn add_at(&mut self, probe: &Probe, times: u32) -> u32 {
        add_intuitive(&mut self.cells, probe.groups(), times);
        self.count_at(probe)
    }
}

impl Removing for Intuitive {
    fn remove_at(&mut self, probe: &Probe) -> Result<(), RemoveError> {
        if self.count_at(probe) == 0 {
            return Err(RemoveError::Absent);
        }
        remove_intuitive(&mut self.cells, probe.groups());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn cells(filter: &Intuitive) -> &[u8] {
        filter.bytes(0..filter.blocks())
    }

    proptest! {
        /// One addition of `c` equals `c` additions of one, and additions commute.
        #[test]
        fn one_large_addition_is_many_small(history in prop::collection::vec((0u64..40, 0u32..20), 0..50)) {
            let [mut once, mut singly] = [(); 2].map(|()| Intuitive::sized(50, 8.0).unwrap());
            let probe = |n| Probe::new(u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835), once.blocks());
            let probes: Vec<_> = history.iter().map(|&(n, times)| (probe(n), times)).collect();
            probes.iter().for_each(|&(probe, times)| _ = once.add_at(&probe, times));
            for &(probe, times) in probes.iter().rev() {
                (0..times).for_each(|_| _ = singly.add_at(&probe, 1));
            }
            prop_assert_eq!(cells(&once), cells(&singly));
        }

        /// Additions, and removals of added elements, in any order: never below the true count, up to the cells' 15.
        #[test]
        fn never_undercounts(steps in prop::collection::vec((0u64..40, prop::bool::weighted(0.6)), 0..400)) {
            let mut filter = Intuitive::sized(50, 8.0).unwrap();
            let mut model: HashMap<u64, u32> = HashMap::new();
            for (n, add) in steps {
                let element = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
                let truth = model.entry(n).or_default();
                if add {
                    *truth += 1;
                    prop_assert!(filter.add(element, 1) >= (*truth).min(15));
                } else if *truth > 0 {
                    *truth -= 1;
                    prop_assert_eq!(filter.remove(element), Ok(()));
                }
                let shown = filter.count(element);
                prop_assert!(shown >= model[&n].min(15));
            }
        }
    }

    #[test]
    fn an_element_never_added_cannot_be_removed() {
        let mut filter = Intuitive::sized(50, 8.0).unwrap();
        assert_eq!(filter.remove(7), Err(RemoveError::Absent));
        filter.add(7, 2);
        assert_eq!((filter.remove(7), filter.remove(7)), (Ok(()), Ok(())));
        let before = cells(&filter).to_vec();
        assert_eq!(filter.remove(7), Err(RemoveError::Absent));
        assert_eq!(cells(&filter), before, "a refused removal changes nothing");
    }

    /// A saturated cell may have lost additions, so it must not come down.
    #[test]
    fn saturated_cells_stay() {
        let mut filter = Intuitive::sized(50, 8.0).unwrap();
        filter.add(7, 40);
        for _ in 0..39 {
            filter.remove(7).unwrap();
        }
        assert_eq!(filter.count(7), 15);
    }

    /// As in dablooms' test: elements are added and every fifth is removed; after writing and reading, none that is left is missing,
    /// nearly all removed ones are gone, and removal continues.
    #[test]
    fn removals_are_kept_over_a_restart() {
        const N: u64 = 10_000;
        let element = |n: u64| u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let mut filter = Intuitive::sized(10_000, 10.0).unwrap();
        (0..N).for_each(|n| _ = filter.add(element(n), 1));
        (0..N).step_by(5).for_each(|n| filter.remove(element(n)).unwrap());
        let written = cells(&filter).to_vec();
        let mut read = Intuitive::new(written.len() / 64).unwrap();
        assert!(read.restore(0..read.blocks(), &written));
        assert!((0..N).filter(|n| n % 5 > 0).all(|n| read.count(element(n)) > 0));
        let shown = (0..N).step_by(5).filter(|&n| read.count(element(n)) > 0).count();
        assert!(shown < 100, "{shown} of 2,000 that were removed are still shown");
        (0..N).filter(|n| n % 5 > 0).for_each(|n| read.remove(element(n)).unwrap());
        assert!(cells(&read).iter().all(|&byte| byte == 0));
    }

    #[test]
    fn bytes_that_do_not_fit_are_refused() {
        let mut filter = Intuitive::new(2).unwrap();
        assert!(
            !filter.restore(0..1, &[1; 63])
                && !filter.restore(0..1, &[1; 65])
                && !filter.restore(0..3, &[1; 192])
        );
        assert!(cells(&filter).iter().all(|&byte| byte == 0));
    }
}
