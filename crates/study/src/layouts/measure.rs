// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts of one filter after a history: counts too high, false bulk, and elements that were never added.

use super::filters::{Filter, filter};
use super::layout::Layout;
use super::memory;
use super::sample::History;
use bulkmark_filter::{ParameterError, false_positive_rate};

/// The usual threshold of bulk, and one that only whole numbers reach.
pub const THRESHOLDS: [u32; 2] = [20, 100];

/// The counts from which elements that were never added are listed.
pub const UNSEEN: [u32; 3] = [2, THRESHOLDS[0], THRESHOLDS[1]];

/// The measurements of one filter. Values outside the layout's range, such as a count of 100 in saturating cells, are missing.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Cells for each element that was added (the paper's m/n).
    pub cells_per_element: f64,
    /// All memory, in bits for each element that was added.
    pub bits: f64,
    /// The share of elements whose count is above the truth.
    pub too_high: f64,
    /// At each of [`THRESHOLDS`], the share of less frequent elements that reach it.
    pub false_bulk: [Option<f64>; 2],
    /// How many elements that were never added show each of [`UNSEEN`] or more.
    pub unseen: [Option<u64>; 3],
    /// The chance of that for one of them, from the cells of the filter.
    pub expected: [Option<f64>; 3],
    /// Equation 4 of the paper at each of [`THRESHOLDS`], with every addition taken for an element of its own.
    pub equation: [f64; 2],
    /// Equation 4 for the elements that reach each of [`THRESHOLDS`] alone: the chance that they hit all cells, if cells
    /// were not in blocks.
    pub reached: [f64; 2],
}

/// Fills a filter of `blocks` blocks with a history, and looks up all its elements and `unseen` others.
///
/// # Errors
/// When the machine lacks the memory.
pub fn measure(
    layout: Layout,
    blocks: usize,
    history: &History,
    unseen: u64,
) -> Result<Measured, ParameterError> {
    memory::check("blocks", blocks as u64, blocks as u64 * 64)?;
    let mut filter = filter(layout, blocks)?;
    for &i in &history.order {
        filter.add(history.element(i.into()), 1);
    }
    let n = history.elements();
    let m = blocks as u64 * layout.cells_per_block() as u64;
    let (too_high, false_bulk_shares) = seen(&*filter, layout, history);
    let counted = count_unseen(&*filter, history, unseen);
    let told = |at: usize| layout.tells(UNSEEN[at]);
    let k = u32::try_from(layout.k()).unwrap_or(0);
    Ok(Measured {
        cells_per_element: m as f64 / n as f64,
        bits: filter.memory() as f64 * 8.0 / n as f64,
        too_high,
        false_bulk: false_bulk_shares,
        unseen: std::array::from_fn(|at| told(at).then_some(counted[at])),
        expected: std::array::from_fn(|at| told(at).then(|| filter.chance(UNSEEN[at]))),
        equation: THRESHOLDS.map(|t| false_positive_rate(history.additions() as u64, m, k, t)),
        reached: THRESHOLDS.map(|t| false_positive_rate(history.reaching(t) as u64, m, k, 1)),
    })
}

/// The share of counts that are too high, and false bulk at each threshold.
fn seen(filter: &dyn Filter, layout: Layout, history: &History) -> (f64, [Option<f64>; 2]) {
    let (mut high, mut below, mut wrong) = (0u64, [0u64; 2], [0u64; 2]);
    for (i, &truth) in (0..).zip(&history.counts) {
        let shown = filter.count(history.element(i));
        high += u64::from(shown > truth);
        for (at, threshold) in THRESHOLDS.into_iter().enumerate() {
            below[at] += u64::from(truth < threshold);
            wrong[at] += u64::from(truth < threshold && shown >= threshold);
        }
    }
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let false_bulk =
        std::array::from_fn(|at| layout.tells(THRESHOLDS[at]).then(|| share(wrong[at], below[at])));
    (share(high, history.elements() as u64), false_bulk)
}

fn count_unseen(filter: &dyn Filter, history: &History, unseen: u64) -> [u64; 3] {
    let (mut found, first) = ([0; 3], history.elements() as u64);
    for i in first..first.saturating_add(unseen) {
        let shown = filter.count(history.element(i));
        if shown >= UNSEEN[0] {
            found.iter_mut().zip(UNSEEN).for_each(|(found, least)| *found += u64::from(shown >= least));
        }
    }
    found
}

/// The most blocks of a filter that takes at most about `bits` bits of memory for each element of a history, split storage
/// included; `None` when split storage alone takes more, or the machine lacks the memory. Split storage grows in steps: so it may
/// be a few hundredths less.
#[must_use]
pub fn blocks_within(layout: Layout, bits: f64, history: &History) -> Option<usize> {
    const BLOCK_BYTES: f64 = 64.0;
    let budget = bits * history.elements() as f64 / 8.0;
    // Only those need split storage, and elements that share a cell need less of it.
    let heavy = |&(_, count): &(u64, &u32)| *count > layout.fits();
    let (mut before, mut blocks) = (f64::INFINITY, budget / BLOCK_BYTES);
    for _ in 0..ROUNDS {
        let mut filter = filter(layout, whole(blocks)?).ok()?;
        for (i, &count) in (0..).zip(&history.counts).filter(heavy) {
            filter.add(history.element(i), count);
        }
        before = blocks;
        blocks = (budget - filter.further_memory() as f64) / BLOCK_BYTES;
    }
    // At a step it alternates, and only the smaller one keeps to the budget.
    whole(blocks.min(before))
}

/// After each round the memory is closer to the target by a factor of ten or more.
const ROUNDS: usize = 3;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1")]
fn whole(blocks: f64) -> Option<usize> {
    (blocks >= 1.0).then_some(blocks as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::sample::Distribution;

    /// Each layout takes the given memory, split storage included, or is reported as too large.
    #[test]
    fn memory_is_what_was_wanted() {
        let history = History::draw(&Distribution::Pareto, 5000, 1).unwrap();
        for text in ["2x4/4", "2x4/4+8", "8x1/5", "2x4/5+0", "2x4/5+paper", "2x4/8+paper"] {
            let layout: Layout = text.parse().unwrap();
            for wanted in [12.0, 32.0, 48.0] {
                let Some(blocks) = blocks_within(layout, wanted, &history) else {
                    assert!(wanted < 32.0, "{layout} has no room in {wanted} bits");
                    continue;
                };
                let bits = measure(layout, blocks, &history, 10).unwrap().bits;
                // In very little memory, counts that are too high need split storage, too.
                let allowed = if wanted < 32.0 { 0.5 } else { 0.05 };
                assert!((bits / wanted - 1.0).abs() < allowed, "{layout}: {bits} bits, {wanted} were wanted");
            }
        }
    }

    #[test]
    fn what_saturates_tells_no_more() {
        let history = History::draw(&Distribution::Zipf, 2000, 1).unwrap();
        let measured = measure("2x4/5+0".parse().unwrap(), 200, &history, 1000).unwrap();
        assert_eq!((measured.false_bulk[1], measured.unseen[2], measured.expected[2]), (None, None, None));
        assert!(measured.false_bulk[0].is_some() && measured.unseen[1].is_some());
    }
}
