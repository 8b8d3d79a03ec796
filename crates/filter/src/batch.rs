// SPDX-License-Identifier: GPL-3.0-or-later
//! Batches of additions or lookups, whose memory is fetched in parallel.

use crate::layout::CELL_MAX;
use crate::probe::Probe;
use crate::refined::Refined;
use crate::split::Split;

/// Additions or lookups that are processed together.
const BATCH: usize = 32;

/// Of those, how many are processed before their places in split storage are prefetched.
const GROUP: usize = 16;

impl Refined {
    /// Adds each element so many times, in this order, and writes its new count to `counts` at the same index; like
    /// [`add`](crate::Counting::add) one by one, but faster. Elements beyond `counts.len()` are ignored.
    pub fn add_batch(&mut self, additions: &[(u128, u32)], counts: &mut [u32]) {
        for (additions, counts) in additions.chunks(BATCH).zip(counts.chunks_mut(BATCH)) {
            let probes = fetched(&self.cells, additions.iter().map(|&(element, _)| element));
            let mut saturated = Saturated::default();
            let groups = additions.chunks(GROUP).zip(counts.chunks_mut(GROUP));
            for ((additions, counts), (probes, first)) in groups.zip(probes.chunks(GROUP).zip([0, GROUP])) {
                for ((probe, &(_, times)), count) in probes.iter().zip(additions).zip(&mut *counts) {
                    *count = self.cells.add_base(probe, times);
                }
                for (i, (count, &(_, times))) in counts.iter_mut().zip(additions).enumerate() {
                    let sum = count.saturating_add(times);
                    *count = sum;
                    if sum >= CELL_MAX {
                        saturated.note(&self.cells, &probes[i], first + i);
                    }
                }
            }
            for &i in saturated.places() {
                counts[i] = self.cells.add_further(&probes[i], counts[i] - CELL_MAX);
            }
        }
    }

    /// Writes the count of each element to `counts` at the same index. Elements beyond `counts.len()` are ignored.
    pub fn count_batch(&self, elements: &[u128], counts: &mut [u32]) {
        for (elements, counts) in elements.chunks(BATCH).zip(counts.chunks_mut(BATCH)) {
            let asked = elements.len().min(counts.len());
            let counts = &mut counts[..asked];
            let probes = fetched(&self.cells, elements.iter().copied());
            let mut saturated = Saturated::default();
            for ((counts, probes), first) in
                counts.chunks_mut(GROUP).zip(probes.chunks(GROUP)).zip([0, GROUP])
            {
                for (probe, count) in probes.iter().zip(&mut *counts) {
                    *count = self.cells.count_base(probe);
                }
                for (i, _) in counts.iter().enumerate().filter(|&(_, &count)| count == CELL_MAX) {
                    saturated.note(&self.cells, &probes[i], first + i);
                }
            }
            for &i in saturated.places() {
                counts[i] = self.cells.count_further(&probes[i]);
            }
        }
    }
}

/// The cells of at most a batch of elements, whose blocks are being fetched from memory. Further elements are not used.
///
/// All prefetches come before the first use, with as little as possible between them: measurements showed that prefetches hold up
/// work between them.
#[inline]
fn fetched(cells: &Split, elements: impl Iterator<Item = u128>) -> [Probe; BATCH] {
    let blocks = cells.blocks();
    let mut probes = [Probe::default(); BATCH];
    for (probe, element) in probes.iter_mut().zip(elements) {
        *probe = Probe::new(element, blocks);
        cells.prefetch(probe);
    }
    probes
}

/// The indices of those elements in a batch that have more in split storage, which is being fetched from memory.
#[derive(Default)]
struct Saturated {
    places: [usize; BATCH],
    number: usize,
}

impl Saturated {
    #[inline]
    fn note(&mut self, cells: &Split, probe: &Probe, place: usize) {
        cells.prefetch_further(probe);
        self.places[self.number] = place;
        self.number += 1;
    }

    fn places(&self) -> &[usize] {
        &self.places[..self.number]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::Counting;
    use crate::refined::tests::history;
    use proptest::prelude::*;

    #[test]
    fn elements_beyond_the_counts_are_ignored_and_other_counts_stay() {
        let [a, b] = [1u128, 2].map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
        let mut filter = Refined::new(100).unwrap();
        let mut counts = [7; 3];
        filter.add_batch(&[(a, 2), (b, 3)], &mut counts[..1]);
        assert_eq!(counts, [2, 7, 7]);
        filter.count_batch(&[a, b], &mut counts);
        assert_eq!(counts, [2, 0, 7]);
        filter.add_batch(&[(a, 1)], &mut counts);
        assert_eq!(counts, [3, 0, 7]);
    }

    proptest! {
        /// A batch has the same effect and result as single additions; so has a batch of lookups.
        #[test]
        fn batches_are_singles(history in history(), blocks in 1usize..4) {
            let mut singly = Refined::new(blocks).unwrap();
            let after: Vec<u32> = history.iter().map(|&(element, times)| singly.add(element, times)).collect();
            let elements: Vec<u128> = history.iter().map(|&(element, _)| element).collect();
            let at_last: Vec<u32> = elements.iter().map(|&element| singly.count(element)).collect();
            let mut batch = Refined::new(blocks).unwrap();
            let mut counts = vec![0; history.len()];
            batch.add_batch(&history, &mut counts);
            prop_assert_eq!(&counts, &after);
            prop_assert_eq!(batch.bytes(0..blocks), singly.bytes(0..blocks));
            batch.count_batch(&elements, &mut counts);
            prop_assert_eq!(&counts, &at_last);
        }
    }
}
