// SPDX-License-Identifier: GPL-3.0-or-later
//! A filter that grows: a row of slices, as in dablooms.
//!
//! When the newest slice holds as many elements as it was made for, a larger one is appended, whose share of wrong counts is
//! smaller by the tightening ratio. So the sum of all shares stays bounded, however many slices there are.

use crate::counting::{Counting, RemoveError, Removing, blocks_for};
use crate::layout::CELLS_PER_ELEMENT;
use crate::params::ParameterError;
use crate::probe::Probe;

/// Each slice is made for twice as many elements as the one before it.
const GROWTH: u32 = 2;

/// dablooms' tightening ratio r: the error bound of slice i is the first one's times r^i.
const TIGHTENING: f64 = 0.9;

/// Cells per element in the first slice (the paper's m/n). With the storage for counts beyond 15 that makes 41 bits an element
/// (docs/filter.md).
pub const CELLS_AT_CAPACITY: f64 = 8.75;

/// The number of cells of an element (the paper's k).
const K: f64 = CELLS_PER_ELEMENT as f64;

/// Returns the probability that all cells of an unknown element were hit by others, at `cells` cells per element that lie anywhere in
/// the filter: the share of wrong counts of the intuitive extension, and a bound for that of the refined one. In blocks, which
/// are not filled evenly, it is somewhat higher: by an eighth in the first slice.
fn error(cells: f64) -> f64 {
    (1.0 - (-K / cells).exp()).powf(K)
}

/// Returns the cells per element in slice `i`: the inverse of [`error`] at the first slice's error times r^i.
fn cells_per_element(i: usize) -> f64 {
    let bound = error(CELLS_AT_CAPACITY) * TIGHTENING.powf(i as f64);
    -K / (-bound.powf(1.0 / K)).ln_1p()
}

/// Returns the geometric series of the errors of all slices: an upper bound of the probability that an unknown element shows a count,
/// whatever their number, if cells lay anywhere in the filter. In blocks it holds for 18 slices, the last of them
/// 131,072 times as large as the first.
#[must_use]
pub fn error_bound() -> f64 {
    error(CELLS_AT_CAPACITY) / (1.0 - TIGHTENING)
}

/// One filter of the row.
pub struct Slice<F> {
    /// The identifier of the first element that was added to it.
    pub from: u64,
    /// The number of elements that it was made for.
    pub capacity: u32,
    /// The number of additions of elements that showed no count in it.
    pub distinct: u64,
    /// The counts.
    pub filter: F,
}

/// The place of an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// The number of the slice.
    pub slice: usize,
    /// The blocks of the element in it.
    pub blocks: [usize; 2],
}

/// A row of slices, the newest last.
///
/// ```
/// use bulkmark_filter::{Refined, Scaling};
///
/// let mut row = Scaling::<Refined>::new(1000);
/// for i in 1..=5000u64 {
///     let element = u128::from(i).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
///     row.add(i, element, 1)?;
/// }
/// assert_eq!(row.slices().len(), 3);
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
pub struct Scaling<F> {
    slices: Vec<Slice<F>>,
    capacity: u32,
    share: u32,
}

impl<F: Counting> Scaling<F> {
    /// Returns an empty row whose first slice will hold `capacity` elements.
    #[must_use]
    pub const fn new(capacity: u32) -> Self {
        Self::roomy(capacity, 1)
    }

    /// Returns a row in which each slice takes only one in `share` of the elements that it is made for before the next one is appended:
    /// `share` times the memory, for far fewer wrong counts. Slices have the same shapes as in any row of this first capacity.
    #[must_use]
    pub const fn roomy(capacity: u32, share: u32) -> Self {
        Self { slices: Vec::new(), capacity, share }
    }

    /// Returns the slices, the newest last.
    #[must_use]
    pub fn slices(&self) -> &[Slice<F>] {
        &self.slices
    }

    /// Returns a slice, to restore its content.
    pub fn slice_mut(&mut self, i: usize) -> Option<&mut Slice<F>> {
        self.slices.get_mut(i)
    }

    /// Appends an empty slice for `capacity` elements.
    ///
    /// # Errors
    /// If the machine lacks the memory.
    pub fn join(&mut self, from: u64, capacity: u32) -> Result<(), ParameterError> {
        let filter = F::sized(capacity, cells_per_element(self.slices.len()))?;
        self.slices.push(Slice { from, capacity, distinct: 0, filter });
        Ok(())
    }

    /// Returns the capacity and the number of blocks of slice `i` of a row with this first capacity.
    #[must_use]
    pub fn shape(capacity: u32, i: u32) -> (u32, usize) {
        let capacity = capacity.saturating_mul(GROWTH.saturating_pow(i));
        (capacity, blocks_for(capacity, cells_per_element(i as usize)))
    }

    /// Returns how often `element` was added: the sum over the slices, each of which may show too much but not too little.
    #[must_use]
    pub fn count(&self, element: u128) -> u32 {
        self.slices.iter().map(|s| s.filter.count(element)).fold(0, u32::saturating_add)
    }

    /// Adds `element`, whose identifier `id` is at least that of earlier additions, `times` times to the newest slice. A new one is
    /// appended first if that is at its capacity.
    ///
    /// # Errors
    /// If the machine lacks the memory for the new slice; nothing is added then.
    pub fn add(&mut self, id: u64, element: u128, times: u32) -> Result<Added, ParameterError> {
        self.add_noting(id, element, times, |_, _, _| ())
    }

    /// The same; calls `note` with the number of the slice, its filter, and the cells before anything is changed.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn add_noting(
        &mut self,
        id: u64,
        element: u128,
        times: u32,
        note: impl FnOnce(usize, &F, &Probe),
    ) -> Result<Added, ParameterError> {
        let next = match self.slices.last() {
            None => Some(self.capacity),
            Some(newest) if newest.distinct.saturating_mul(self.share.into()) >= newest.capacity.into() => {
                Some(newest.capacity.saturating_mul(GROWTH))
            }
            Some(_) => None,
        };
        if let Some(capacity) = next {
            self.join(id, capacity)?;
        }
        let last = self.slices.len() - 1;
        let slice = &mut self.slices[last];
        let probe = slice.filter.probe(element);
        slice.distinct += u64::from(slice.filter.count_at(&probe) == 0);
        note(last, &slice.filter, &probe);
        slice.filter.add_at(&probe, times);
        Ok(Added { slice: last, blocks: probe.blocks })
    }

    /// Removes one addition of `element` from its slice, which the identifier determines: so slices that only seem to have it are not
    /// touched.
    ///
    /// # Errors
    /// As [`Removing::remove`]; and if the identifier is older than all slices.
    pub fn remove(&mut self, id: u64, element: u128) -> Result<(), RemoveError>
    where
        F: Removing,
    {
        let slice = self.slices.iter_mut().rfind(|s| s.from <= id).ok_or(RemoveError::TooOld(id))?;
        slice.filter.remove(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intuitive::Intuitive;
    use crate::refined::Refined;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// An element as random as signatures are: two numbers of SplitMix64.
    fn element(n: u64) -> u128 {
        let half = |i: u64| {
            let z = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            u128::from(z ^ (z >> 31))
        };
        half(2 * n + 1) << 64 | half(2 * n + 2)
    }

    /// A filter on a machine with room for 100 blocks.
    struct Cramped(Refined);

    impl Counting for Cramped {
        fn new(blocks: usize) -> Result<Self, ParameterError> {
            ParameterError::check("blocks", blocks as u64, 1, 100)?;
            Refined::new(blocks).map(Self)
        }

        fn blocks(&self) -> usize {
            self.0.blocks()
        }

        fn count_at(&self, probe: &Probe) -> u32 {
            self.0.count_at(probe)
        }

        fn add_at(&mut self, probe: &Probe, times: u32) -> u32 {
            self.0.add_at(probe, times)
        }
    }

    /// If there is no memory for the next slice, the addition is refused and the row does not change.
    #[test]
    fn a_slice_without_memory_changes_nothing() {
        let mut row = Scaling::<Cramped>::new(1000);
        let (mut n, mut cells) = (0, Vec::new());
        let error = loop {
            match row.add(n, element(n), 1) {
                Ok(_) => cells = row.slices()[0].filter.0.bytes(0..69),
                Err(error) => break error.to_string(),
            }
            n += 1;
        };
        assert!(error.starts_with("blocks is ") && error.ends_with(", expected 1 to 100"), "{error}");
        assert!(n >= 1000 && row.slices().len() == 1 && row.slices()[0].distinct == 1000);
        assert_eq!(row.slices()[0].filter.0.bytes(0..69), cells);
        assert!((0..n).all(|n| row.count(element(n)) >= 1));
    }

    /// 100,000 elements in a row that was made for 500: eight slices, and the error stays below its bound.
    #[test]
    fn the_error_is_bounded_over_many_slices() {
        let mut row = Scaling::<Refined>::new(500);
        for n in 0..100_000 {
            row.add(n, element(n), 1).unwrap();
        }
        assert_eq!(row.slices().len(), 8);
        assert!(row.slices().windows(2).all(|s| s[1].capacity == 2 * s[0].capacity && s[1].from > s[0].from));
        assert!((0..100_000).all(|n| row.count(element(n)) >= 1));
        let strange = (1 << 40..(1 << 40) + 200_000).filter(|&n| row.count(element(n)) > 0).count();
        let share = strange as f64 / 200_000.0;
        assert!(
            share < error_bound(),
            "{share} of strange elements are shown, the bound is {}",
            error_bound()
        );
    }

    /// A slice that takes half of the elements that it is made for shows unknown elements a tenth as often.
    #[test]
    fn room_makes_wrong_counts_rare() {
        let shown = [(20_000, 1), (40_000, 2)].map(|(capacity, share)| {
            let mut row = Scaling::<Refined>::roomy(capacity, share);
            (0..20_000).for_each(|n| _ = row.add(n, element(n), 1).unwrap());
            assert_eq!(row.slices().len(), 1);
            (1 << 40..(1 << 40) + 100_000).filter(|&n| row.count(element(n)) > 0).count()
        });
        assert!(shown[1] > 0 && shown[0] > 10 * shown[1], "{shown:?}");
        let mut row = Scaling::<Refined>::roomy(100, 2);
        (0..200).for_each(|n| _ = row.add(n, element(n), 1).unwrap());
        let slices: Vec<_> = row.slices().iter().map(|slice| (slice.from, slice.capacity)).collect();
        assert_eq!(slices, [(0, 100), (50, 200), (150, 400)]);
    }

    #[test]
    fn tightening_inverts_the_error() {
        assert!((cells_per_element(0) - CELLS_AT_CAPACITY).abs() < 1e-9);
        for i in 0..20u8 {
            let expected = error(CELLS_AT_CAPACITY) * 0.9f64.powi(i.into());
            assert!((error(cells_per_element(i.into())) / expected - 1.0).abs() < 1e-9);
        }
    }

    /// The cost of blocks: four cells of one block are hit by others more often than four from anywhere.
    #[test]
    fn blocks_cost_an_eighth() {
        let mut row = Scaling::<Intuitive>::new(50_000);
        for n in 0..50_000 {
            row.add(n, element(n), 1).unwrap();
        }
        assert_eq!(row.slices().len(), 1);
        let strange = (1 << 40..(1 << 40) + 400_000).filter(|&n| row.count(element(n)) > 0).count();
        let ratio = strange as f64 / 400_000.0 / error(CELLS_AT_CAPACITY);
        assert!((1.05..1.2).contains(&ratio), "{ratio}");
    }

    /// An identifier finds the slice that its element was added to, and no other.
    #[test]
    fn an_identifier_tells_the_slice() {
        let mut row = Scaling::<Intuitive>::new(20);
        for n in 5..200 {
            // Every 50th addition is of one and the same element.
            row.add(n, element(if n % 50 == 10 { 0 } else { n }), 1).unwrap();
        }
        let shown = |row: &Scaling<Intuitive>| -> Vec<u32> {
            row.slices().iter().map(|s| s.filter.count(element(0))).collect()
        };
        let holder = |row: &Scaling<Intuitive>, id| row.slices().iter().rposition(|s| s.from <= id).unwrap();
        let mut expected = shown(&row);
        for id in [110, 10, 160, 60] {
            assert!(expected[holder(&row, id)] >= 1, "{id}");
            expected[holder(&row, id)] -= 1;
            assert_eq!(row.remove(id, element(0)), Ok(()));
            assert_eq!(shown(&row), expected, "{id}");
        }
        assert_eq!(row.remove(4, element(0)), Err(RemoveError::TooOld(4)));
        assert_eq!(RemoveError::TooOld(4).to_string(), "the identifier 4 is older than all slices");
        assert_eq!(row.remove(5, element(1 << 40)), Err(RemoveError::Absent));
        assert_eq!(shown(&row), expected);
    }

    proptest! {
        /// Never below the true count, whichever slices an element's additions went to.
        #[test]
        fn never_undercounts(history in prop::collection::vec((0u64..200, 1u32..40), 0..400), capacity in 1u32..30) {
            let mut row = Scaling::<Refined>::new(capacity);
            let mut model: HashMap<u64, u32> = HashMap::new();
            for (id, (n, times)) in (0..).zip(history) {
                row.add(id, element(n), times).unwrap();
                *model.entry(n).or_default() += times;
                prop_assert!(row.count(element(n)) >= model[&n]);
            }
            for (n, truth) in model {
                prop_assert!(row.count(element(n)) >= truth);
            }
        }

        /// Removal by identifier finds the right slice: the remaining elements are never undercounted, whatever was removed.
        #[test]
        fn removal_leaves_the_others(removed in prop::collection::vec(any::<bool>(), 300)) {
            let mut row = Scaling::<Intuitive>::new(20);
            let mut model = HashMap::new();
            for n in 0..300 {
                row.add(n, element(n), 1).unwrap();
                model.insert(n, 1);
            }
            for (n, _) in (0..).zip(&removed).filter(|(_, removed)| **removed) {
                prop_assert_eq!(row.remove(n, element(n)), Ok(()));
                model.remove(&n);
            }
            for (&n, &truth) in &model {
                prop_assert!(row.count(element(n)) >= truth);
            }
            prop_assert!(row.slices().len() > 3);
        }
    }
}
