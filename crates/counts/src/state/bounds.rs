// SPDX-License-Identifier: GPL-3.0-or-later
//! An upper bound of all limited clients' counts together: one lookup instead of one for each client, for signatures that none of them
//! reported.
//!
//! It is the sum of their cells. The count of a signature over all layers is at most the smallest of its sums: in each layer it is at most
//! that layer's part of each sum. Withdrawn counts stay in the sums until their window is over; so the sums may be too high, but never too
//! low.
//!
//! The sums of a thousand busy clients are soon full, so with them alone every other lookup would need all clients. So each cell also
//! records which of eight groups of clients raised it, and a lookup needs only the clients of the groups that have all cells of a
//! signature.

use crate::history::vector::Origin;
use crate::history::window::{Calendar, Window};
use crate::state::layer::{Layer, LayerWindow};
use bulkmark_filter::{Delta, Groups, ParameterError, Sparse};
use bulkmark_types::Signature;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The lowest bits of an origin; the others are its group. Origins are random numbers.
const GROUP_SHIFT: u32 = u64::BITS - 3;

fn group_of(Origin(origin): Origin) -> u8 {
    u8::try_from(origin >> GROUP_SHIFT).unwrap_or(0)
}

/// The origins of these groups, which are a bit mask.
pub(super) fn origins_of(groups: u8) -> impl Iterator<Item = RangeInclusive<Origin>> {
    let first = |group: u64| group << GROUP_SHIFT;
    let range = move |group| Origin(first(group))..=Origin(first(group) | ((1 << GROUP_SHIFT) - 1));
    (0..8).filter(move |group| groups >> group & 1 == 1).map(range)
}

/// The sums of one window, for filters of one size.
struct WindowSums {
    sums: Sparse,
    groups: Groups,
}

impl WindowSums {
    fn new(capacity: u32) -> Result<Self, ParameterError> {
        let blocks = LayerWindow::blocks(capacity);
        Ok(Self { sums: Sparse::new(blocks)?, groups: Groups::new(blocks)? })
    }
}

/// The sums of one window, to be raised.
pub struct Bound<'a> {
    held: &'a mut WindowSums,
    all: &'a mut Groups,
}

impl Bound<'_> {
    /// Records that the client with this origin raised a cell.
    pub fn raise(&mut self, origin: Origin, cell: usize, by: u32) {
        self.held.sums.raise(cell, by);
        self.held.groups.mark(cell, group_of(origin));
        self.all.mark(cell, group_of(origin));
    }

    /// Records that the client with this origin raised these cells.
    ///
    /// # Errors
    /// If their filters have another size; nothing is added then.
    pub fn apply(&mut self, origin: Origin, delta: &Delta) -> Result<(), ParameterError> {
        self.held.sums.apply(delta)?;
        self.held.groups.mark_all(delta, group_of(origin))?;
        self.all.mark_all(delta, group_of(origin))
    }
}

/// Whether a window is one of user reports, and the size of its filters.
type Like = (bool, u32);

const fn like(window: Window, capacity: u32) -> Like {
    (window.is_user_report(), capacity)
}

/// The sums, by window and size of the filters.
#[derive(Default)]
pub struct Bounds {
    windows: BTreeMap<(Window, u32), WindowSums>,
    /// The groups over all windows of one kind: most signatures are in none, and one lookup is enough for them.
    all: BTreeMap<Like, Groups>,
}

impl Bounds {
    /// The sums of a window's filters of this size, to raise them with a filter.
    ///
    /// # Errors
    /// If there is no filter of that size.
    pub fn window_mut(&mut self, window: Window, capacity: u32) -> Result<Bound<'_>, ParameterError> {
        use std::collections::btree_map::Entry;
        let held = match self.windows.entry((window, capacity)) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(place) => place.insert(WindowSums::new(capacity)?),
        };
        let all = match self.all.entry(like(window, capacity)) {
            Entry::Occupied(all) => all.into_mut(),
            Entry::Vacant(place) => place.insert(Groups::new(LayerWindow::blocks(capacity))?),
        };
        Ok(Bound { held, all })
    }

    /// The sizes of a window's filters.
    pub fn sizes(&self, window: Window) -> impl Iterator<Item = u32> {
        self.windows.range((window, 0)..=(window, u32::MAX)).map(|((_, size), _)| *size)
    }

    /// The windows in which any client brought something.
    pub fn windows(&self) -> impl Iterator<Item = Window> {
        let mut last = None;
        // Filters of several sizes in a window are beside each other.
        self.windows
            .keys()
            .map(|(window, _)| *window)
            .filter(move |window| last.replace(*window) != Some(*window))
    }

    /// Adds the whole layer of the client with this origin.
    ///
    /// # Errors
    /// As [`window_mut`](Self::window_mut).
    pub fn add(&mut self, origin: Origin, layer: &Layer) -> Result<(), ParameterError> {
        for (&window, held) in &layer.windows {
            let cells = held.filter.delta(0..held.filter.blocks());
            self.window_mut(window, held.capacity)?.apply(origin, &cells)?;
        }
        Ok(())
    }

    /// Prefetches the cells of `signature` that most lookups need.
    pub fn prefetch(&self, signature: Signature) {
        self.groups_of(signature).for_each(|groups| groups.prefetch(signature.bits()));
    }

    /// The groups over all windows, for each size of filters.
    fn groups_of(&self, signature: Signature) -> impl Iterator<Item = &Groups> {
        let is_like = move |(of_user_reports, _): &Like| *of_user_reports == signature.is_user_report();
        self.all.iter().filter(move |(like, _)| is_like(like)).map(|(_, groups)| groups)
    }

    /// Whether no client reported `signature` in any window: one lookup for each size.
    fn is_unknown(&self, signature: Signature) -> bool {
        self.groups_of(signature).all(|groups| groups.of(signature.bits()) == 0)
    }

    /// The sums of the windows that count for `signature` at the time `now`; none if no client reported it.
    fn live(&self, calendar: Calendar, signature: Signature, now: u64) -> impl Iterator<Item = &WindowSums> {
        let windows = (!self.is_unknown(signature)).then_some(&self.windows).into_iter().flatten();
        let live = windows.filter(move |((window, _), _)| calendar.counts(*window, signature, now));
        live.map(|(_, held)| held)
    }

    /// An upper bound of the count of `signature` over all layers, in windows that count at the time `now`.
    pub fn count(&self, calendar: Calendar, signature: Signature, now: u64) -> u32 {
        // The sums are full long before the groups are.
        let known = self.live(calendar, signature, now).filter(|held| held.groups.of(signature.bits()) != 0);
        known.map(|held| held.sums.count(signature.bits())).fold(0, u32::saturating_add)
    }

    /// The groups of clients, as a bit mask, that may have reported `signature` in windows that count at the time `now`.
    pub(super) fn groups(&self, calendar: Calendar, signature: Signature, now: u64) -> u8 {
        let groups = self.live(calendar, signature, now).map(|held| held.groups.of(signature.bits()));
        groups.fold(0, |all, groups| all | groups)
    }

    /// Drops the windows that no layer has.
    pub fn keep<'a>(&mut self, layers: impl Iterator<Item = &'a Layer>) {
        let held: BTreeSet<Window> = layers.flat_map(|layer| layer.windows.keys().copied()).collect();
        let before = self.windows.len();
        self.windows.retain(|(window, _), _| held.contains(window));
        if self.windows.len() < before {
            self.look_again();
        }
    }

    /// Recomputes the groups over all windows. Without enough memory they stay as they are, larger than necessary.
    fn look_again(&mut self) {
        let mut all: BTreeMap<Like, Groups> = BTreeMap::new();
        for (&(window, capacity), held) in &self.windows {
            let Ok(new) = Groups::new(LayerWindow::blocks(capacity)) else { return };
            let groups = all.entry(like(window, capacity)).or_insert(new);
            if groups.merge(&held.groups).is_err() {
                return;
            }
        }
        self.all = all;
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let windows = self.windows.values().map(|held| held.sums.memory() + held.groups.memory());
        windows.chain(self.all.values().map(Groups::memory)).sum()
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

    /// Invented clients with filters of many sizes cost a lookup only a few sums: a window accepts four sizes, in one step or several, and
    /// one signature takes some hundred bytes of memory per window.
    #[test]
    fn made_up_clients_have_few_sizes() {
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
        assert_eq!((taken, layers.bounds.windows.len()), (4, 4));
        assert!((50..1000).all(|n| layers.apply(&update(n, capacity(0)), NOW).is_ok()));
        let memory: usize = layers.iter().map(|(_, layer)| layer.memory()).sum();
        assert!(memory < 954 * 300, "{memory}");
        let steps = [4, 5].map(|most| (0..most).map(|n| update(n, capacity(n))).collect::<Vec<_>>());
        let empty = Layers::new(&settings);
        assert_eq!(steps.map(|step| empty.check_all(step.iter(), NOW).is_ok()), [true, false]);
    }

    /// A random number, as origins are.
    fn origin(n: u64) -> Origin {
        Origin((n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Signatures that no partner reported cost no lookup in any of a thousand layers, and those of one partner a lookup in an eighth of
    /// them, here and at other holders. The filters are so small that the sums of all partners are full.
    #[test]
    fn a_thousand_partners_cost_one_lookup() {
        let settings = Settings { capacity: 1000.try_into().unwrap(), ..Settings::default() };
        let (mut limited, mut layers) = (Limited::new(&settings), Layers::new(&settings));
        let (calendar, capacity) = (Calendar::new(&settings), settings.capacity.get());
        let window = calendar.at(NOW);
        for n in 0..1000 {
            let (member, bounds) = limited.member(&format!("p{n}"), origin(n));
            member.add(bounds, window, signature(n), 2, true).unwrap();
            let sparse = Sparse::new(LayerWindow::blocks(capacity)).unwrap();
            let mut cells: Vec<_> =
                sparse.cells_of(signature(n).bits()).into_iter().map(|cell| (cell, 3)).collect();
            cells.sort_unstable();
            let delta = Delta::from_changes(sparse.blocks(), cells).unwrap();
            let parts = vec![Part { window, capacity, slice: 0, delta }];
            let (origin, before) = (origin(n), Chain::default());
            let update = Update { origin, version: 1, before, scope: Scope::Client, parts };
            layers.apply(&update, NOW).unwrap();
        }
        let (bounds, looks) = looked_at(|| {
            let of = |n| {
                assert_eq!((limited.count(signature(n), NOW), layers.count(signature(n), NOW)), (0, 0));
                assert_eq!(limited.count_by_window(signature(n), NOW).count(), 0);
                let in_sums = |held: &WindowSums| held.sums.count(signature(n).bits()) > 0;
                u32::from(layers.bounds.windows.values().any(in_sums))
            };
            (1000..9192).map(of).sum::<u32>()
        });
        // With the sums alone each of these would be a lookup in all thousand, three times.
        assert!(bounds > 50, "{bounds} of 8,192 signatures that nobody brought are in the sums");
        assert!(looks <= 3000, "{looks} looks for 8,192 signatures that nobody brought");
        let ((), looks) = looked_at(|| {
            for n in 0..1000 {
                assert_eq!((limited.count(signature(n), NOW), layers.count(signature(n), NOW)), (2, 3));
            }
        });
        assert!(looks < 2 * 1000 * 1000 / 4, "{looks} looks for a thousand signatures");
        // Windows that no client has any more take no memory.
        for n in 0..1000 {
            limited.withdraw(&format!("p{n}")).unwrap();
            layers.withdraw(origin(n));
        }
        limited.take_expired(NOW);
        layers.take_expired(NOW);
        assert_eq!(limited.bounds_memory() + layers.bounds_memory(), 0);
    }
}
