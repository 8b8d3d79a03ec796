// SPDX-License-Identifier: GPL-3.0-or-later
//! How full is this filter, and how often does it take a strange element for bulk?

use super::cells::Cell;
use super::split::{CELL_MAX, CELLS_PER_BLOCK, Split};

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

impl Split {
    /// Reads all cells. `threshold` is at least 1.
    pub(super) fn gauge(&self, threshold: u32) -> Gauge {
        let blocks = self.blocks();
        let share = |cells: u32| f64::from(cells) / CELLS_PER_BLOCK as f64;
        let mut further = self.further_from(threshold.saturating_sub(CELL_MAX)).peekable();
        let (mut used, mut saturated, mut first, mut second) = (0.0, 0.0, 0.0, 0.0);
        for block in 0..blocks {
            let (mut not_zero, mut full, mut reached) = (0, 0, 0);
            for value in self.base().values(block).map(u32::from) {
                not_zero += u32::from(value > 0);
                full += u32::from(value == CELL_MAX);
                reached += u32::from(value >= threshold.min(CELL_MAX));
            }
            used += share(not_zero);
            saturated += share(full);
            second += share(reached).powi(4);
            first += if threshold <= CELL_MAX {
                share(reached).powi(4)
            } else {
                let mut beyond = 0;
                while further.next_if(|cell| cell.block == block).is_some() {
                    beyond += 1;
                }
                // Three of the first block's cells have further bits.
                share(beyond).powi(3) * share(full)
            };
        }
        let mean = |sum: f64| sum / blocks as f64;
        Gauge { fill: mean(used), saturated: mean(saturated), false_bulk: mean(first) * mean(second) }
    }

    /// The cells that have `further` or more beyond 15, in order.
    fn further_from(&self, further: u32) -> impl Iterator<Item = Cell> {
        self.further(0..self.blocks()).filter(move |&(_, value)| value >= further).map(|(cell, _)| cell)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Counting, Refined};

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
}
