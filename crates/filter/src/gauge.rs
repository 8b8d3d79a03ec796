// SPDX-License-Identifier: GPL-3.0-or-later
//! The fill of a filter, and its rate of false positives.

use crate::layout::{CELL_MAX, CELLS_PER_BLOCK};
use crate::split::Split;
use std::ops::Range;

/// Measurements of the cells of one filter.
///
/// ```
/// use bulkmark_filter::{Counting, Refined};
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let mut filter = Refined::new(100)?;
/// filter.add(element, 3);
/// let gauge = filter.gauge(20);
/// assert!(gauge.fill > 0.0 && gauge.saturated == 0.0 && gauge.false_positive_rate == 0.0);
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauge {
    /// The share of cells that are not zero, 0 to 1.
    pub fill: f64,
    /// The share of cells that are saturated at 15, 0 to 1.
    pub saturated: f64,
    /// The probability that an element that was never added shows a count of the threshold or more (the paper's f_dcc).
    ///
    /// Equation 4 of the paper assumes that all cells are alike and each element was added once. Here the cells themselves are
    /// read: an unknown element has four cells in each of two blocks, all of them at random, so the probability is the product of two
    /// means over all blocks, one for the first block and one for the second.
    pub false_positive_rate: f64,
}

/// The largest number of blocks that are read: the shares in such a sample are within a thousandth of those of all.
const SAMPLE: usize = 1 << 16;

/// Blocks that are read together, with their cells' values beyond 15.
const CHUNK: usize = 32;

impl Split {
    /// Reads at most 65,536 blocks, evenly spread. `threshold` must be at least 1.
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
            false_positive_rate: mean(sums.first) * mean(sums.second),
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

/// Sums over blocks: the shares of used and of saturated cells, and the probabilities that all cells of an unknown element in its
/// first and in its second block reach the threshold.
#[derive(Default)]
struct Sums {
    blocks: f64,
    used: f64,
    saturated: f64,
    first: f64,
    second: f64,
}
