// SPDX-License-Identifier: GPL-3.0-or-later
//! Refined filters of any layout, behind one interface.

use super::further::{MOST, Tables};
use super::layout::{Layout, Storage};
use super::probes::Probes;
use bulkmark_filter::ParameterError;
use bulkmark_filter::internals::{Cell, Cells, Overflow, Packed, add_refined, count};

/// A counting filter of some layout, with the refined extension.
pub trait Filter: Send {
    /// Adds an element so many times and returns its new count, which is never below the truth as long as the layout can
    /// represent it.
    fn add(&mut self, element: u128, times: u32) -> u32;

    /// How often an element was added.
    fn count(&self, element: u128) -> u32;

    /// The number of blocks.
    fn blocks(&self) -> usize;

    /// Bytes of memory: blocks and split storage, with its free places.
    fn memory(&self) -> usize;

    /// Bytes of split storage.
    fn further_memory(&self) -> usize;

    /// The chance that an element that was never added shows `threshold` or more: for each of its blocks the mean over
    /// all blocks of the chance in that block, as in [`Gauge`](bulkmark_filter::Gauge). Reads all cells.
    fn chance(&self, threshold: u32) -> f64;
}

/// An empty filter of `blocks` blocks of 64 bytes.
///
/// # Errors
/// When `blocks` is 0 or above 2^32, or the machine lacks the memory.
pub fn filter(layout: Layout, blocks: usize) -> Result<Box<dyn Filter>, ParameterError> {
    Ok(match (layout.bits(), layout.storage()) {
        (4, Storage::Tables) => Box::new(Flagged::<4>::new(layout, blocks)?),
        (5, Storage::Tables) => Box::new(Flagged::<5>::new(layout, blocks)?),
        (_, Storage::Tables) => Box::new(Flagged::<8>::new(layout, blocks)?),
        (4, _) => Box::new(Split::<4>::new(layout, blocks)?),
        (5, _) => Box::new(Split::<5>::new(layout, blocks)?),
        (_, _) => Box::new(Split::<8>::new(layout, blocks)?),
    })
}

/// As in the shipped filter, the largest value of a cell means that there may be more, for some cells of an element or none.
struct Split<const BITS: usize> {
    layout: Layout,
    base: Packed<BITS>,
    /// How many of an element's cells have further counts.
    split: usize,
    further: Overflow,
}

impl<const BITS: usize> Split<BITS> {
    fn new(layout: Layout, blocks: usize) -> Result<Self, ParameterError> {
        let split = match layout.storage() {
            Storage::Split(cells) => cells,
            Storage::Saturating | Storage::Tables => 0,
        };
        let base = Packed::new(blocks)?;
        Ok(Self { layout, base, split, further: Overflow::new(blocks) })
    }

    fn probes(&self, element: u128) -> Probes {
        Probes::new::<BITS>(&self.layout, self.base.blocks(), element)
    }

    fn least_further(&self, probes: &Probes) -> u32 {
        probes.first(self.split).map(|at| self.further.get(at)).min().unwrap_or(0)
    }
}

impl<const BITS: usize> Filter for Split<BITS> {
    fn add(&mut self, element: u128, times: u32) -> u32 {
        let probes = self.probes(element);
        let (before, after) = add_refined(&mut self.base, probes.groups(), times);
        if after < Packed::<BITS>::MAX || self.split == 0 {
            return after;
        }
        // The rest continues from the cells' values there, which others may have raised.
        let left = times - (after - before);
        let target = self.least_further(&probes).saturating_add(left);
        if left > 0 {
            probes.first(self.split).for_each(|at| self.further.raise_to(at, target));
        }
        after.saturating_add(target)
    }

    fn count(&self, element: u128) -> u32 {
        if is_new::<BITS>(&self.base, &self.layout, self.base.blocks(), element) {
            return 0;
        }
        let probes = self.probes(element);
        let base = count(&self.base, probes.groups());
        if base < Packed::<BITS>::MAX { base } else { base.saturating_add(self.least_further(&probes)) }
    }

    fn blocks(&self) -> usize {
        self.base.blocks()
    }

    fn memory(&self) -> usize {
        self.base.memory() + self.further_memory()
    }

    fn further_memory(&self) -> usize {
        self.further.memory()
    }

    fn chance(&self, threshold: u32) -> f64 {
        let max = Packed::<BITS>::MAX;
        if threshold > max && self.split == 0 {
            return 0.0;
        }
        let entries = self
            .further
            .entries(0..self.base.blocks())
            .filter(|&(_, value)| value >= threshold.saturating_sub(max));
        let mut entries = entries.map(|(at, _)| at.block).peekable();
        let per_group = self.layout.cells();
        // The cells with further counts, in each block of an element.
        let split: Vec<usize> = (0..self.layout.blocks())
            .map(|group| self.split.saturating_sub(group * per_group).min(per_group))
            .collect();
        let mut sums = vec![0.0; split.len()];
        for block in 0..self.base.blocks() {
            let reached = share::<BITS>(&self.base, block, threshold.min(max));
            let mut beyond = 0.0;
            while entries.next_if_eq(&block).is_some() {
                beyond += 1.0 / Packed::<BITS>::PER_BLOCK as f64;
            }
            for (sum, &split) in sums.iter_mut().zip(&split) {
                let split = if threshold > max { split } else { 0 };
                *sum += power(beyond, split) * power(reached, per_group - split);
            }
        }
        sums.iter().map(|sum| sum / self.base.blocks() as f64).product()
    }
}

/// The paper's split storage: a flag in each cell, and hash tables for the further bits.
struct Flagged<const BITS: usize> {
    layout: Layout,
    cells: FlaggedCells<BITS>,
}

/// The highest bit of a cell is the flag; the bits of the value above the others are in the tables.
struct FlaggedCells<const BITS: usize> {
    base: Packed<BITS>,
    further: Tables<BITS>,
}

impl<const BITS: usize> FlaggedCells<BITS> {
    const LOW_BITS: usize = BITS - 1;
    const FLAG: u32 = 1 << Self::LOW_BITS;
}

impl<const BITS: usize> Cells for FlaggedCells<BITS> {
    const MAX: u32 = MOST << Self::LOW_BITS | (Self::FLAG - 1);

    fn get(&self, at: Cell) -> u32 {
        let base = self.base.get(at);
        if base < Self::FLAG { base } else { (base - Self::FLAG) + (self.further.get(at) << Self::LOW_BITS) }
    }

    fn set(&mut self, at: Cell, value: u32) {
        let value = value.min(Self::MAX);
        let (high, low) = (value >> Self::LOW_BITS, value % Self::FLAG);
        if high == 0 {
            self.base.set(at, low);
            return;
        }
        // Seven of eight additions do not change the further bits.
        if self.base.get(at) < Self::FLAG || self.further.get(at) != high {
            self.further.set(at, high);
        }
        self.base.set(at, Self::FLAG | low);
    }
}

impl<const BITS: usize> Flagged<BITS> {
    fn new(layout: Layout, blocks: usize) -> Result<Self, ParameterError> {
        let base = Packed::new(blocks)?;
        Ok(Self { layout, cells: FlaggedCells { base, further: Tables::new(blocks) } })
    }

    fn probes(&self, element: u128) -> Probes {
        Probes::new::<BITS>(&self.layout, self.blocks(), element)
    }
}

impl<const BITS: usize> Filter for Flagged<BITS> {
    fn add(&mut self, element: u128, times: u32) -> u32 {
        let probes = self.probes(element);
        add_refined(&mut self.cells, probes.groups(), times).1
    }

    fn count(&self, element: u128) -> u32 {
        if is_new::<BITS>(&self.cells, &self.layout, self.blocks(), element) {
            return 0;
        }
        count(&self.cells, self.probes(element).groups())
    }

    fn blocks(&self) -> usize {
        self.cells.base.blocks()
    }

    fn memory(&self) -> usize {
        self.cells.base.memory() + self.further_memory()
    }

    fn further_memory(&self) -> usize {
        self.cells.further.memory()
    }

    fn chance(&self, threshold: u32) -> f64 {
        let (per_group, blocks) = (self.layout.cells(), self.blocks());
        let chance = |block| power(share::<BITS>(&self.cells, block, threshold), per_group);
        let sum: f64 = (0..blocks).map(chance).sum();
        power(sum / blocks as f64, self.layout.blocks())
    }
}

/// Whether an element has a zero in its first block, as most elements that were never added: then its other cells are not needed.
fn is_new<const BITS: usize>(cells: &impl Cells, layout: &Layout, blocks: usize, element: u128) -> bool {
    let probes = Probes::of_blocks::<BITS>(layout, blocks, element, 1);
    probes.groups().all(|group| cells.least(group) == 0)
}

/// The share of cells of a block whose value is `threshold` or more.
fn share<const BITS: usize>(cells: &impl Cells, block: usize, threshold: u32) -> f64 {
    let per_block = Packed::<BITS>::PER_BLOCK;
    let reached = (0..=u8::MAX).take(per_block).filter(|&cell| cells.get(Cell { block, cell }) >= threshold);
    reached.count() as f64 / per_block as f64
}

/// For few cells: k is at most 16.
fn power(base: f64, exponent: usize) -> f64 {
    (0..exponent).map(|_| base).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_filter::{Counting, Refined};
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Elements from a small set, so that histories repeat and cells collide; some are added often.
    fn history() -> impl Strategy<Value = Vec<(u128, u32)>> {
        let element = (0u64..60).prop_map(|i| crate::layouts::sample::element(3, i));
        prop::collection::vec((element, prop_oneof![4 => 0u32..6, 1 => 1u32..400]), 0..200)
    }

    /// A layout of any shape.
    fn layouts() -> impl Strategy<Value = Layout> {
        let storage = prop_oneof![Just(Storage::Tables), (0usize..=16).prop_map(Storage::Split)];
        (1usize..=5, 1usize..=8, prop::sample::select(vec![4, 5, 8]), storage)
            .prop_filter_map("senseless", |(blocks, cells, bits, storage)| {
                Layout::new(blocks, cells, bits, storage).ok()
            })
    }

    /// A model of the paper's split storage: whole numbers.
    #[derive(Default)]
    struct Exact(HashMap<Cell, u32>);

    impl Cells for Exact {
        const MAX: u32 = u32::MAX;

        fn get(&self, at: Cell) -> u32 {
            self.0.get(&at).copied().unwrap_or(0)
        }

        fn set(&mut self, at: Cell, value: u32) {
            self.0.insert(at, value);
        }
    }

    fn tables_are_exact<const BITS: usize>(
        shape: &str,
        history: &[(u128, u32)],
        blocks: usize,
    ) -> Result<(), TestCaseError> {
        let layout: Layout = format!("{shape}/{BITS}+paper").parse().unwrap();
        let (mut filter, mut exact) = (Flagged::<BITS>::new(layout, blocks).unwrap(), Exact::default());
        for &(element, times) in history {
            let (_, expected) = add_refined(&mut exact, filter.probes(element).groups(), times);
            prop_assert_eq!(filter.add(element, times), expected);
        }
        for (&at, &value) in &exact.0 {
            prop_assert_eq!(filter.cells.get(at), value);
        }
        for i in 0..80 {
            let element = crate::layouts::sample::element(3, i);
            prop_assert_eq!(filter.count(element), count(&exact, filter.probes(element).groups()));
        }
        Ok(())
    }

    proptest! {
        /// The study's filter of the shipped layout is the shipped filter.
        #[test]
        fn two_blocks_of_four_count_as_the_shipped_filter(history in history(), blocks in 1usize..80) {
            let (mut ours, mut shipped) = (filter("2x4/4".parse().unwrap(), blocks).unwrap(), Refined::new(blocks).unwrap());
            for &(element, times) in &history {
                prop_assert_eq!(ours.add(element, times), shipped.add(element, times));
            }
            for i in 0..80 {
                let element = crate::layouts::sample::element(3, i);
                prop_assert_eq!(ours.count(element), shipped.count(element));
            }
            for threshold in [1, 2, 15, 16, 20, 100] {
                let (ours, shipped) = (ours.chance(threshold), shipped.gauge(threshold).false_positive_rate);
                prop_assert!((ours - shipped).abs() <= shipped * 1e-9, "{threshold}: {ours:e} and {shipped:e}");
            }
        }

        /// The paper's split storage counts as cells do that hold whole numbers.
        #[test]
        fn flags_and_tables_are_whole_numbers(history in history(), blocks in 1usize..80) {
            tables_are_exact::<4>("2x4", &history, blocks)?;
            tables_are_exact::<5>("8x1", &history, blocks)?;
            tables_are_exact::<8>("1x6", &history, blocks)?;
        }

        /// No layout counts below the truth in its range, however crowded.
        #[test]
        fn none_undercounts(layout in layouts(), history in history(), blocks in 1usize..4) {
            let mut filter = filter(layout, blocks).unwrap();
            let most = if layout.storage() == Storage::Saturating { layout.fits() } else { u32::MAX };
            let mut model: HashMap<u128, u32> = HashMap::new();
            for (element, times) in history {
                let truth = model.entry(element).or_default();
                *truth += times;
                prop_assert!(filter.add(element, times) >= (*truth).min(most), "{}", layout);
            }
            for (element, truth) in model {
                prop_assert!(filter.count(element) >= truth.min(most), "{}", layout);
            }
        }
    }

    /// The chance equals the share of false finds among elements that were never added, in filters so crowded that many are taken
    /// for bulk.
    #[test]
    fn the_chance_is_what_is_found() {
        for text in ["2x4/4", "2x4/4+6", "1x4/5+2", "4x1/4", "3x2/8+0", "2x3/5+paper"] {
            let layout: Layout = text.parse().unwrap();
            let mut filter = filter(layout, 6000 / layout.cells_per_block()).unwrap();
            for n in 0..2500 {
                let times = if n % 3 == 0 { 40 } else { 1 + u32::try_from(n % 7).unwrap() };
                filter.add(crate::layouts::sample::element(1, n), times);
            }
            assert_eq!(filter.memory(), filter.blocks() * 64 + filter.further_memory());
            let strange = 50_000u32;
            for threshold in [1, 2, 16, 20, 40] {
                let shown = |n: &u64| filter.count(crate::layouts::sample::element(1, *n)) >= threshold;
                let found = (1 << 40..).take(strange as usize).filter(shown).count() as f64;
                let expected = filter.chance(threshold) * f64::from(strange);
                assert!(
                    (found - expected).abs() <= 5.0 * expected.sqrt() + 1.0,
                    "{text}: {found} strange elements show {threshold}, {expected} are expected"
                );
            }
        }
    }

    #[test]
    fn senseless_sizes_are_refused_by_name() {
        for text in ["2x4/4", "2x4/5+paper", "2x4/8+0"] {
            let refused = |blocks| filter(text.parse().unwrap(), blocks).err().map(|e| e.to_string());
            assert_eq!(refused(0).as_deref(), Some("blocks is 0, expected 1 to 4294967296"));
            assert_eq!(
                refused((1 << 32) + 1).as_deref(),
                Some("blocks is 4294967297, expected 1 to 4294967296")
            );
        }
    }
}
