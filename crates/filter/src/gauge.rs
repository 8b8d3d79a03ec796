// SPDX-License-Identifier: GPL-3.0-or-later
//! How full is this filter, and how often does it take a strange element for bulk?

use crate::layout::{CELL_MAX, CELLS_PER_BLOCK};
use crate::split::Split;
use std::ops::Range;

/// What the cells of one filter tell about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauge {
    /// The share of cells that are not zero, 0 to 1.
    pub fill: f64,
    /// The share of cells that are saturated at 15, 0 to 1.
    pub saturated: f64,
    /// The chance that an element that was never added shows a count of the threshold or more (the paper's f_dcc).
    ///
    /// Equation 4 of the paper takes all cells for alike and each element as added once. Here the cells are there to be
    /// asked: a strange element has four cells in each of two blocks, all of them by chance, so the chance is the mean over
    /// blocks of the chance in that block, once for the first block and once for the second.
    pub false_bulk: f64,
}

/// Blocks that are read at most: the shares of so many cells are within a thousandth of those of all.
const SAMPLE: usize = 1 << 16;

/// Blocks that are read together, and what is beyond their cells with them.
const CHUNK: usize = 32;

impl Split {
    /// Reads at most 65,536 blocks, evenly spread. `threshold` is at least 1.
    pub(crate) fn gauge(&self, threshold: u32) -> Gauge {
        let blocks = self.blocks();
        let step = blocks.div_ceil(SAMPLE) * CHUNK;
        let mut sums = Sums::default();
        for start in (0..blocks).step_by(step) {
            self.read(start..blocks.min(start + CHUNK), threshold, &mut sums);
        }
        let mean = |sum: f64| sum / sums.blocks;
        Gauge {
            fill: mean(sums.used),
            saturated: mean(sums.saturated),
            false_bulk: mean(sums.first) * mean(sums.second),
        }
    }

    fn read(&self, range: Range<usize>, threshold: u32, sums: &mut Sums) {
        let share = |cells: u32| f64::from(cells) / CELLS_PER_BLOCK as f64;
        let beyond = threshold.saturating_sub(CELL_MAX);
        let mut further = self.further(range.clone()).filter(|&(_, value)| value >= beyond).peekable();
        for block in range {
            let (mut not_zero, mut full, mut reached) = (0, 0, 0);
            for value in self.base().values(block).map(u32::from) {
                not_zero += u32::from(value > 0);
                full += u32::from(value == CELL_MAX);
                reached += u32::from(value >= threshold.min(CELL_MAX));
            }
            sums.blocks += 1.0;
            sums.used += share(not_zero);
            sums.saturated += share(full);
            sums.second += share(reached).powi(4);
            sums.first += if threshold <= CELL_MAX {
                share(reached).powi(4)
            } else {
                let mut beyond = 0;
                while further.next_if(|(cell, _)| cell.block == block).is_some() {
                    beyond += 1;
                }
                // Three of the first block's cells have further bits.
                share(beyond).powi(3) * share(full)
            };
        }
    }
}

/// Over blocks, the shares of cells that are used and saturated, and the chances that all cells of a strange element in its
/// first and in its second block reach the threshold.
#[derive(Default)]
struct Sums {
    blocks: f64,
    used: f64,
    saturated: f64,
    first: f64,
    second: f64,
}

#[cfg(test)]
mod tests {
    use crate::{Counting, Gauge, Merged, Refined};

    /// The estimate is what strange elements find, in a filter so crowded that many are taken for bulk.
    #[test]
    fn the_estimate_is_what_is_found() {
        let element = |n: u64| u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let mut filter = Refined::new(50).unwrap();
        for n in 0..3000 {
            let probe = filter.probe(element(n));
            filter.add(&probe, if n % 3 == 0 { 40 } else { 1 + u32::try_from(n % 7).unwrap() });
        }
        for threshold in [1, 2, 10, 15, 16, 20, 40, 60] {
            let strange = 200_000u32;
            let found = (1u64 << 40..)
                .take(strange as usize)
                .filter(|&n| filter.count(&filter.probe(element(n))) >= threshold)
                .count() as f64;
            let expected = filter.gauge(threshold).false_bulk * f64::from(strange);
            assert!(
                (found - expected).abs() <= 5.0 * expected.sqrt() + 1.0,
                "{found} strange elements show {threshold}, {expected} are expected"
            );
        }
        let gauge = filter.gauge(20);
        assert!(gauge.fill > gauge.saturated && gauge.saturated > 0.3 && gauge.fill <= 1.0);
    }

    /// One element: its three cells with further counts are in the block in which its other one is saturated.
    #[test]
    fn one_element_is_reckoned_by_hand() {
        let mut filter = Refined::new(50).unwrap();
        let probe = filter.probe(0x3123_4567_89AB_CDEF_B246_8ACE_1357_9BDF);
        assert_ne!(probe.blocks[0], probe.blocks[1]);
        filter.add(&probe, 40);
        let group = (4.0f64 / 128.0).powi(4);
        let further = (3.0f64 / 128.0).powi(3) * 4.0 / 128.0;
        let two_of_50 = 2.0 / 50.0;
        for (threshold, false_bulk) in [
            (1, (two_of_50 * group).powi(2)),
            (15, (two_of_50 * group).powi(2)),
            (16, further / 50.0 * two_of_50 * group),
            (40, further / 50.0 * two_of_50 * group),
            (41, 0.0),
        ] {
            let gauge = filter.gauge(threshold);
            assert!((gauge.false_bulk - false_bulk).abs() <= false_bulk * 1e-9, "{threshold}: {gauge:?}");
            assert!(
                (gauge.fill - 8.0 / 6400.0).abs() < 1e-9 && (gauge.saturated - 8.0 / 6400.0).abs() < 1e-9
            );
        }
    }

    /// A merged view of one filter is that filter; what is empty shows nothing.
    #[test]
    fn a_view_is_gauged_as_its_filter() {
        let (mut filter, mut view) = (Refined::new(50).unwrap(), Merged::new(50).unwrap());
        assert_eq!(view.gauge(1), Gauge { fill: 0.0, saturated: 0.0, false_bulk: 0.0 });
        for n in 1..500u32 {
            let element = u128::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            filter.add(&filter.probe(element), n % 40);
        }
        view.merge(&filter).unwrap();
        let gauges = [1, 15, 16, 30].map(|threshold| filter.gauge(threshold));
        assert_eq!([1, 15, 16, 30].map(|threshold| view.gauge(threshold)), gauges);
        assert!(gauges.windows(2).all(|pair| pair[1].false_bulk < pair[0].false_bulk));
    }
}
