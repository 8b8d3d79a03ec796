// SPDX-License-Identifier: GPL-3.0-or-later
//! A draft of a limited client's growth, beside its layer. No cell gets more from it than its limit, over all windows that are not over;
//! and a window accepts new signatures only within its quota. Reports beyond are left out.

use crate::history::update::Part;
use crate::history::window::{Calendar, Window};
use crate::state::fleet::community::estimate;
use crate::state::layer::Layer;
use crate::state::limited::Limits;
use crate::state::shares::Share;
use bulkmark_filter::{CELLS_PER_BLOCK, Delta, ParameterError, Refined, Scaling, Sparse};
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// One window with growth.
struct ClientWindow {
    /// Raised cells, with their new values.
    raised: BTreeMap<usize, u32>,
    /// The approximate number of signatures.
    distinct: u64,
}

/// The windows of one client.
pub(super) struct ClientDraft<'a> {
    calendar: Calendar,
    layer: Option<&'a Layer>,
    capacity: u32,
    /// An empty filter, for the positions of cells.
    shape: Sparse,
    windows: BTreeMap<Window, ClientWindow>,
}

impl<'a> ClientDraft<'a> {
    /// A draft beside the client's layer; a client without one gets filters for `capacity` signatures.
    ///
    /// # Errors
    /// If there is no filter of that size.
    pub(super) fn new(
        calendar: Calendar,
        layer: Option<&'a Layer>,
        capacity: u32,
    ) -> Result<Self, ParameterError> {
        // Cells are summed over all windows, so these have one size.
        let known = layer.and_then(|layer| layer.windows.values().next());
        let capacity = known.map_or(capacity, |held| held.capacity);
        let (_, blocks) = Scaling::<Refined>::shape(capacity, 0);
        Ok(Self { calendar, layer, capacity, shape: Sparse::new(blocks)?, windows: BTreeMap::new() })
    }

    /// Adds the reports that are within the limits.
    pub(super) fn add(&mut self, window: Window, signature: Signature, times: u32, limits: Limits, at: u64) {
        let cells = self.shape.cells_of(signature.bits());
        let (mut count, mut reach) = (u32::MAX, u32::MAX);
        for &cell in &cells {
            let here = self.get(window, cell);
            let others = self.sum(window, cell, at).saturating_sub(here);
            count = count.min(here);
            reach = reach.min(here.max(limits.influence.saturating_sub(others)));
        }
        let times = times.min(reach.saturating_sub(count));
        let is_new = count == 0;
        let quota = limits.signatures(self.capacity);
        let held = self.window(window);
        if times == 0 || is_new && held.distinct >= quota {
            return;
        }
        held.distinct += u64::from(is_new);
        let target = count.saturating_add(times);
        for cell in cells {
            if self.get(window, cell) < target {
                self.window(window).raised.insert(cell, target);
            }
        }
    }

    fn window(&mut self, window: Window) -> &mut ClientWindow {
        let Self { layer, shape, windows, .. } = self;
        windows.entry(window).or_insert_with(|| {
            let used =
                layer.and_then(|layer| layer.windows.get(&window)).map_or(0, |held| held.filter.used());
            let blocks = shape.blocks();
            let fill = used as f64 / (blocks * CELLS_PER_BLOCK) as f64;
            ClientWindow { raised: BTreeMap::new(), distinct: estimate(fill, blocks) }
        })
    }

    /// The new value of a cell.
    fn get(&self, window: Window, cell: usize) -> u32 {
        let raised = self.windows.get(&window).and_then(|held| held.raised.get(&cell));
        raised.copied().unwrap_or_else(|| self.before(window, cell))
    }

    fn before(&self, window: Window, cell: usize) -> u32 {
        let held = self.layer.and_then(|layer| layer.windows.get(&window));
        held.map_or(0, |held| held.filter.get(cell))
    }

    /// Likewise, over all windows of this kind that are not over.
    fn sum(&self, like: Window, cell: usize, at: u64) -> u32 {
        let known = self.layer.into_iter().flat_map(|layer| layer.windows.keys());
        let new = self
            .windows
            .keys()
            .filter(|window| self.layer.is_none_or(|layer| !layer.windows.contains_key(window)));
        let is_like = |window: Window| window.is_user_report() == like.is_user_report();
        let is_held = |window: Window| is_like(window) && !self.calendar.is_over(window, at);
        let held = known.chain(new).filter(|window| is_held(**window));
        held.fold(0, |sum, &window| sum.saturating_add(self.get(window, cell)))
    }

    /// The growth of a signature's count, by window.
    pub(super) fn growth(&self, signature: Signature) -> impl Iterator<Item = Share> {
        let cells = self.shape.cells_of(signature.bits());
        self.windows.keys().filter(move |window| window.takes(signature)).map(move |&window| {
            let least = |of: &dyn Fn(usize) -> u32| cells.iter().map(|&cell| of(cell)).min().unwrap_or(0);
            let (before, after) =
                (least(&|cell| self.before(window, cell)), least(&|cell| self.get(window, cell)));
            Share { window: window.start, count: after.saturating_sub(before) }
        })
    }

    /// The growth of all windows.
    pub(super) fn parts(&self) -> Vec<Part> {
        let of = |(&window, held): (&Window, &ClientWindow)| {
            let grown = held.raised.iter().map(|(&cell, &value)| (cell, value - self.before(window, cell)));
            let delta = Delta::from_changes(self.shape.blocks(), grown).ok()?;
            (!delta.is_empty()).then_some(Part { window, capacity: self.capacity, slice: 0, delta })
        };
        self.windows.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::state::anomaly::tests::element;
    use proptest::prelude::*;
    use std::num::NonZeroU32;

    const DAY: u64 = 86_400;
    const NOW: u64 = 20_000 * DAY + 1000;
    const LIMITS: Limits = Limits { influence: 5, quota: 1_000_000 };

    fn calendar() -> Calendar {
        let settings = Settings { capacity: NonZeroU32::new(40).unwrap(), ..Settings::default() };
        Calendar::new(&settings)
    }

    proptest! {
        /// For any made-up signatures, on any days and in any steps, no count and no cell rises by more than the limit. The filter is so
        /// small that all of them collide.
        #[test]
        fn no_count_rises_above_the_limit(
            steps in prop::collection::vec(prop::collection::vec((any::<[u8; 16]>(), 1u32..9, 0u64..7), 0..60), 0..6),
            victims in prop::collection::vec(any::<[u8; 16]>(), 20),
        ) {
            let (mut layer, calendar) = (Layer::default(), calendar());
            for step in steps {
                let mut draft = ClientDraft::new(calendar, Some(&layer), 40).unwrap();
                for (bytes, times, day) in step {
                    let at = NOW + day * DAY;
                    draft.add(calendar.at(at), Signature::from_bytes(bytes), times, LIMITS, at);
                }
                for part in draft.parts() {
                    layer.window_mut(part.window, part.capacity).unwrap().apply(&part.delta).unwrap();
                }
            }
            let now = NOW + 6 * DAY;
            for victim in victims {
                prop_assert!(layer.count(calendar, Signature::from_bytes(victim), now) <= LIMITS.influence);
            }
            for cell in 0..40 * 10 {
                prop_assert!(layer.sum(calendar, calendar.at(now), cell, now) <= LIMITS.influence);
            }
        }

        /// Within its limit all reports of a client count, in two steps as in one.
        #[test]
        fn reports_within_the_limit_count(reports in prop::collection::vec((0u8..6, 1u32..4), 0..30), cut in 0usize..30) {
            let (mut layer, calendar) = (Layer::default(), calendar());
            let signature = |n: u8| Signature::from_bytes([n.wrapping_mul(41).wrapping_add(7); 16]);
            let (first, second) = reports.split_at(cut.min(reports.len()));
            for step in [first, second] {
                let mut draft = ClientDraft::new(calendar, Some(&layer), 1000).unwrap();
                step.iter().for_each(|&(n, times)| draft.add(calendar.at(NOW), signature(n), times, LIMITS, NOW));
                for part in draft.parts() {
                    layer.window_mut(part.window, part.capacity).unwrap().apply(&part.delta).unwrap();
                }
            }
            for n in 0..6 {
                let reported: u32 = reports.iter().filter(|(m, _)| *m == n).map(|(_, times)| times).sum();
                prop_assert_eq!(layer.count(calendar, signature(n), NOW), reported.min(LIMITS.influence));
            }
        }
    }

    /// New signatures beyond the quota are left out, known ones are not, and the next window starts over.
    #[test]
    fn beyond_the_quota_nothing_new_is_taken() {
        let (mut layer, calendar) = (Layer::default(), calendar());
        let limits = Limits { influence: 50, quota: 100_000 };
        let signature = |n: u64| Signature::from_bytes(element(n).to_le_bytes());
        for (step, at) in [NOW, NOW, NOW + DAY].into_iter().enumerate() {
            let mut draft = ClientDraft::new(calendar, Some(&layer), 2000).unwrap();
            for n in 0..300 {
                draft.add(calendar.at(at), signature(n), 1, limits, at);
            }
            for part in draft.parts() {
                layer.window_mut(part.window, part.capacity).unwrap().apply(&part.delta).unwrap();
            }
            let counted = (0..300).filter(|&n| layer.count(calendar, signature(n), at) > 0).count();
            // The cells give the approximate number of signatures; other windows have no effect.
            assert!((180..=230).contains(&counted), "{counted} after step {step}");
        }
    }
}
