// SPDX-License-Identifier: GPL-3.0-or-later
//! What all limited clients together brought at most: one look at it instead of one at each of them, where none brought anything.
//!
//! It is the sum of their cells. The count of a signature over all layers is no higher than the smallest of its sums: in each layer it
//! is at most the cell that the sum of that place has from it. What was taken back stays in the sums until its window is over; so they
//! are sometimes higher than need be, and never too low.

use crate::history::window::{Calendar, Window};
use crate::state::layer::{Layer, LayerWindow};
use bulkmark_filter::{ParameterError, Sparse};
use bulkmark_types::Signature;
use std::collections::{BTreeMap, BTreeSet};

/// The sums, by window and size of the filters.
#[derive(Default)]
pub struct Bounds(BTreeMap<(Window, u32), Sparse>);

impl Bounds {
    /// The sums of a window's filters of this size, to raise them with a filter.
    ///
    /// # Errors
    /// When there is no filter of that size.
    pub fn window_mut(&mut self, window: Window, capacity: u32) -> Result<&mut Sparse, ParameterError> {
        use std::collections::btree_map::Entry;
        match self.0.entry((window, capacity)) {
            Entry::Occupied(sums) => Ok(sums.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(Sparse::new(LayerWindow::blocks(capacity))?)),
        }
    }

    /// The sizes of a window's filters.
    pub fn sizes(&self, window: Window) -> impl Iterator<Item = u32> {
        self.0.range((window, 0)..=(window, u32::MAX)).map(|((_, size), _)| *size)
    }

    /// Adds a whole layer.
    ///
    /// # Errors
    /// As [`window_mut`](Self::window_mut).
    pub fn add(&mut self, layer: &Layer) -> Result<(), ParameterError> {
        for (&window, held) in &layer.windows {
            let cells = held.filter.delta(0..held.filter.blocks());
            self.window_mut(window, held.capacity)?.apply(&cells)?;
        }
        Ok(())
    }

    /// At least the count of `signature` over all layers, in windows that count at the time `now`.
    pub fn count(&self, calendar: Calendar, signature: Signature, now: u64) -> u32 {
        let live = self.0.iter().filter(|((window, _), _)| calendar.counts(*window, signature, now));
        live.fold(0, |sum, (_, sums)| sum.saturating_add(sums.count(signature.bits())))
    }

    /// Lets go of the windows that no layer has.
    pub fn keep<'a>(&mut self, layers: impl Iterator<Item = &'a Layer>) {
        let held: BTreeSet<Window> = layers.flat_map(|layer| layer.windows.keys().copied()).collect();
        self.0.retain(|(window, _), _| held.contains(window));
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.0.values().map(Sparse::memory).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::update::{Part, Scope, Update};
    use crate::history::vector::{Chain, Origin};
    use crate::settings::Settings;
    use crate::state::layer::looked_at;
    use crate::state::layers::Layers;
    use crate::state::limited::Limited;
    use bulkmark_filter::Delta;

    const NOW: u64 = 20_000 * 86_400 + 1000;

    fn signature(n: u64) -> Signature {
        let mixed = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        Signature::from_bytes((mixed ^ mixed >> 61).to_le_bytes())
    }

    /// Clients that are made up, each with a filter of another size, make no count look at more than a few sums: four sizes are taken for
    /// a window, one by one or together, and one signature takes some hundred bytes of memory for each window.
    #[test]
    fn made_up_clients_are_few_sizes() {
        let settings = Settings::default();
        let window = Calendar::new(&settings).at(NOW);
        let update = |n: u64, capacity: u32| {
            let delta = Delta::from_changes(LayerWindow::blocks(capacity), [(7, 3)]).unwrap();
            let parts = vec![Part { window, capacity, slice: 0, delta }];
            Update { origin: Origin(n), version: 1, before: Chain::default(), scope: Scope::Client, parts }
        };
        let capacity = |n: u64| (1 << 24) - 100_000 * u32::try_from(n).unwrap();
        let mut layers = Layers::new(&settings);
        let taken = (0..50).filter(|&n| layers.apply(&update(n, capacity(n)), NOW).is_ok()).count();
        assert_eq!((taken, layers.bounds.0.len()), (4, 4));
        assert!((50..1000).all(|n| layers.apply(&update(n, capacity(0)), NOW).is_ok()));
        let memory: usize = layers.iter().map(|(_, layer)| layer.memory()).sum();
        assert!(memory < 954 * 300, "{memory}");
        let steps = [4, 5].map(|most| (0..most).map(|n| update(n, capacity(n))).collect::<Vec<_>>());
        let empty = Layers::new(&settings);
        assert_eq!(steps.map(|step| empty.check_all(step.iter(), NOW).is_ok()), [true, false]);
    }

    /// What nobody brought costs no look at any of a thousand partners, and what one brought is found, here and at other holders.
    #[test]
    fn a_thousand_partners_cost_one_look() {
        let settings = Settings::default();
        let (mut limited, mut layers) = (Limited::new(&settings), Layers::new(&settings));
        let (calendar, capacity) = (Calendar::new(&settings), settings.capacity.get());
        let window = calendar.at(NOW);
        for n in 0..1000 {
            let (member, bounds) = limited.member(&format!("p{n}"), Origin(n));
            member.add(bounds, window, signature(n), 2, true).unwrap();
            let sparse = Sparse::new(LayerWindow::blocks(capacity)).unwrap();
            let mut cells: Vec<_> =
                sparse.cells_of(signature(n).bits()).into_iter().map(|cell| (cell, 3)).collect();
            cells.sort_unstable();
            let delta = Delta::from_changes(sparse.blocks(), cells).unwrap();
            let parts = vec![Part { window, capacity, slice: 0, delta }];
            let (origin, before) = (Origin(n), Chain::default());
            let update = Update { origin, version: 1, before, scope: Scope::Client, parts };
            layers.apply(&update, NOW).unwrap();
        }
        let ((), looks) = looked_at(|| {
            for n in 1000..9192 {
                assert_eq!((limited.count(signature(n), NOW), layers.count(signature(n), NOW)), (0, 0));
                assert_eq!(limited.count_by_window(signature(n), NOW).count(), 0);
            }
        });
        // By chance a cell or two are another's, and hardly ever all of them.
        assert!(looks <= 2000, "{looks} looks for 8,192 signatures that nobody brought");
        for n in 0..1000 {
            assert_eq!((limited.count(signature(n), NOW), layers.count(signature(n), NOW)), (2, 3));
        }
        // What nobody has any more takes no memory.
        for n in 0..1000 {
            limited.withdraw(&format!("p{n}")).unwrap();
            layers.withdraw(Origin(n));
        }
        limited.take_expired(NOW);
        layers.take_expired(NOW);
        assert_eq!(limited.bounds_memory() + layers.bounds_memory(), 0);
    }
}
