// SPDX-License-Identifier: GPL-3.0-or-later
//! A draft of the unlimited clients' growth, beside the merged cells: in the newest slice of a window, with the configured capacity.
//!
//! The number of signatures in a merged slice is not stored. It is estimated from the cells: see [`estimate`].

use crate::history::update::{MAX_SLICES, Part};
use crate::history::window::{Window, capacity_of, share_of};
use crate::state::merged::MergedCounts;
use crate::state::shares::Share;
use bulkmark_filter::{CELLS_PER_BLOCK, Draft, Merged, ParameterError, Refined, Scaling};
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// Cells of an element in each of its two blocks.
const PER_BLOCK: f64 = 4.0;

/// Estimates the number of different signatures in a filter of `blocks` blocks, from its share of nonzero cells.
///
/// An addition leaves none of a signature's cells at zero. The signatures that touch a block have a Poisson distribution with the mean `l =
/// 2n / B`. So a cell stays at zero with the chance `exp(-l (1 - (127/128)^4))`, which gives `n`.
pub(super) fn estimate(fill: f64, blocks: usize) -> u64 {
    let per_block = CELLS_PER_BLOCK as f64;
    let taken = 1.0 - ((per_block - 1.0) / per_block).powf(PER_BLOCK);
    let signatures = -(1.0 - fill).ln() * blocks as f64 / (2.0 * taken);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of signatures, or far more than there are"
    )]
    let signatures = signatures.max(0.0) as u64;
    signatures
}

/// The slices of one window with growth.
struct CommunityWindow<'a> {
    /// The number of the first slice.
    first: u32,
    slices: Vec<Draft<'a>>,
    /// Signatures that the newest slice still has room for.
    room: u64,
}

/// All windows with growth.
pub(super) struct CommunityDraft<'a> {
    merged: &'a MergedCounts,
    capacity: u32,
    rows: BTreeMap<Window, CommunityWindow<'a>>,
}

impl<'a> CommunityDraft<'a> {
    /// A draft beside these counts, in slices of which a window's first is for `capacity` signatures.
    pub(super) const fn new(merged: &'a MergedCounts, capacity: u32) -> Self {
        Self { merged, capacity, rows: BTreeMap::new() }
    }

    /// Adds reports.
    ///
    /// # Errors
    /// If a slice of the necessary size is impossible.
    pub(super) fn add(
        &mut self,
        window: Window,
        signature: Signature,
        times: u32,
    ) -> Result<(), ParameterError> {
        if !self.rows.contains_key(&window) {
            self.rows.insert(window, self.begin(window)?);
        }
        let capacity = capacity_of(window, self.capacity);
        let Some(row) = self.rows.get_mut(&window) else { return Ok(()) };
        let next = row.first + u32::try_from(row.slices.len()).unwrap_or(MAX_SLICES);
        if row.room == 0 && next < MAX_SLICES {
            let (room, blocks) = Scaling::<Refined>::shape(capacity, next);
            row.slices.push(Draft::new(blocks)?);
            row.room = (room / share_of(window)).into();
        }
        if let Some(newest) = row.slices.last_mut() {
            if newest.count(signature.bits()) == 0 {
                row.room = row.room.saturating_sub(1);
            }
            newest.add(signature.bits(), times);
        }
        Ok(())
    }

    /// The slices of a window in the merged counts.
    fn slices(&self, window: Window) -> &'a [Merged] {
        self.merged.of_size(window, capacity_of(window, self.capacity)).map_or(&[], |held| &held.slices)
    }

    /// The newest slice of a window; none in a new window.
    fn begin(&self, window: Window) -> Result<CommunityWindow<'a>, ParameterError> {
        let slices = self.slices(window);
        let Some(newest) = slices.last() else {
            return Ok(CommunityWindow { first: 0, slices: Vec::new(), room: 0 });
        };
        let first = u32::try_from(slices.len() - 1).unwrap_or(MAX_SLICES);
        let (capacity, blocks) = Scaling::<Refined>::shape(capacity_of(window, self.capacity), first);
        let room =
            u64::from(capacity / share_of(window)).saturating_sub(estimate(newest.gauge(1).fill, blocks));
        Ok(CommunityWindow { first, slices: vec![Draft::of(newest)], room })
    }

    /// The growth of a signature's count, by window.
    pub(super) fn growth(&self, signature: Signature) -> impl Iterator<Item = Share> {
        let bits = signature.bits();
        let rows = self.rows.iter().filter(move |(window, _)| window.takes(signature));
        rows.map(move |(&window, row)| {
            let slices = self.slices(window);
            let before = slices.get(row.first as usize).map_or(0, |slice| slice.count(bits));
            let counts = row.slices.iter().map(|slice| slice.count(bits));
            let count = counts.fold(0, u32::saturating_add).saturating_sub(before);
            Share { window: window.start, count }
        })
    }

    /// The growth of all windows.
    pub(super) fn parts(&self) -> Vec<Part> {
        let of = |(&window, row): (&Window, &CommunityWindow<'a>)| -> Vec<Part> {
            let deltas = (row.first..).zip(row.slices.iter().map(Draft::delta));
            let deltas = deltas.filter(|(_, delta)| !delta.is_empty());
            let capacity = capacity_of(window, self.capacity);
            deltas.map(|(slice, delta)| Part { window, capacity, slice, delta }).collect()
        };
        self.rows.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::anomaly::tests::element;
    use bulkmark_filter::{CELLS_AT_CAPACITY, Counting};

    /// The estimate is within a twentieth, from a tenth of the capacity to twice it.
    #[test]
    fn cells_give_the_number_of_signatures() {
        let mut filter = Refined::sized(10_000, CELLS_AT_CAPACITY).unwrap();
        for n in 0..20_000u64 {
            filter.add(element(n), 1 + u32::try_from(n % 30).unwrap());
            if (n + 1) % 1000 == 0 {
                let mut merged = Merged::new(filter.blocks()).unwrap();
                merged.merge(&filter).unwrap();
                let found = estimate(merged.gauge(1).fill, merged.blocks());
                assert!(found.abs_diff(n + 1) <= n / 20, "{found} of {}", n + 1);
            }
        }
        assert_eq!((estimate(0.0, 100), estimate(1.0, 100)), (0, u64::MAX));
    }
}
