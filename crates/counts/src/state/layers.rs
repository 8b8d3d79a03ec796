// SPDX-License-Identifier: GPL-3.0-or-later
//! The limited clients of other servers: each has a separate layer, so that its counts can be bounded and withdrawn.
//!
//! The count of a signature is that of the merged cells plus, for each limited client, that of its layer. So whatever signatures a client
//! makes up, a count rises by no more than its cells hold.

use crate::history::chunks::layer_parts;
use crate::history::refusal::Refusal;
use crate::history::row::Row;
use crate::history::update::{Part, Update, most_capacity};
use crate::history::vector::Origin;
use crate::history::window::{Calendar, FUTURE_WINDOWS, MAX_SIZES, NotAdmitted, Window};
use crate::settings::Settings;
use crate::state::allowance::Allowance;
use crate::state::bounds::{Bounds, origins_of};
use crate::state::layer::{Layer, LayerWindow};
use crate::state::shares::Share;
use bulkmark_filter::{Delta, ParameterError};
use bulkmark_types::Signature;
use std::collections::{BTreeMap, BTreeSet};

/// The most limited clients of all servers together. Most lookups need only the bounds, whatever their number.
const MAX_LAYERS: usize = 16_384;

/// The filters that parts would add, so that each part is checked together with those before it.
#[derive(Default)]
struct Planned {
    /// Clients without a layer.
    layers: BTreeSet<Origin>,
    /// The capacity of each filter.
    filters: BTreeMap<(Origin, Window), u32>,
    /// The windows of the bounds, and their sizes.
    sizes: BTreeSet<(Window, u32)>,
}

/// The layers, by the origin of the client.
pub struct Layers {
    calendar: Calendar,
    capacity: u32,
    all: BTreeMap<Origin, Layer>,
    /// An upper bound of all layers together.
    pub(super) bounds: Bounds,
}

impl Layers {
    /// Without layers.
    pub fn new(settings: &Settings) -> Self {
        let (calendar, capacity) = (Calendar::new(settings), settings.capacity.get());
        Self { calendar, capacity, all: BTreeMap::new(), bounds: Bounds::default() }
    }

    /// All layers with their origins.
    pub fn iter(&self) -> impl Iterator<Item = (Origin, &Layer)> {
        self.all.iter().map(|(&origin, layer)| (origin, layer))
    }

    /// All layers, to mark their parts as written.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Layer> {
        self.all.values_mut()
    }

    /// The layer under this origin.
    pub fn get(&self, origin: Origin) -> Option<&Layer> {
        self.all.get(&origin)
    }

    /// Inserts a layer.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn insert(&mut self, origin: Origin, layer: Layer) -> Result<(), ParameterError> {
        self.bounds.add(origin, &layer)?;
        self.all.insert(origin, layer);
        Ok(())
    }

    /// Prefetches the cells of `signature` that most lookups need.
    pub(crate) fn prefetch(&self, signature: Signature) {
        self.bounds.prefetch(signature);
    }

    /// An upper bound of [`count`](Self::count), with one lookup.
    pub(crate) fn bound(&self, signature: Signature, now: u64) -> u32 {
        self.bounds.count(self.calendar, signature, now)
    }

    /// Bytes of memory of the bounds over all layers.
    pub fn bounds_memory(&self) -> usize {
        self.bounds.memory()
    }

    pub(crate) fn count(&self, signature: Signature, now: u64) -> u32 {
        let counts = self.may_have(signature, now).map(|layer| layer.count(self.calendar, signature, now));
        counts.fold(0, u32::saturating_add)
    }

    pub(crate) fn count_by_window(&self, signature: Signature, now: u64) -> impl Iterator<Item = Share> {
        self.may_have(signature, now).flat_map(move |layer| layer.shares(self.calendar, signature, now))
    }

    /// The layers of the groups that may have a signature.
    fn may_have(&self, signature: Signature, now: u64) -> impl Iterator<Item = &Layer> {
        let groups = origins_of(self.bounds.groups(self.calendar, signature, now));
        groups.flat_map(|origins| self.all.range(origins)).map(|(_, layer)| layer)
    }

    /// Whether there are user reports.
    pub fn has_user_reports(&self) -> bool {
        self.all.values().flat_map(|layer| layer.windows.keys()).any(|window| window.is_user_report())
    }

    /// Applies an update of a client.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is changed then.
    pub fn apply(&mut self, update: &Update, now: u64) -> Result<(), Refusal> {
        self.check_all([update].into_iter(), now)?;
        self.apply_checked(update, now).map_err(|error| Refusal::Parameter { origin: update.origin, error })
    }

    /// Applies an update that [`check_all`](Self::check_all) accepted.
    ///
    /// # Errors
    /// If there is not enough memory; then a part of it is applied.
    pub(crate) fn apply_checked(&mut self, update: &Update, now: u64) -> Result<(), ParameterError> {
        let calendar = self.calendar;
        for part in update.parts.iter().filter(|part| !calendar.is_over(part.window, now)) {
            self.add(update.origin, part.window, part.capacity, &part.delta)?;
        }
        Ok(())
    }

    /// Adds cells to a layer and to the bounds.
    fn add(
        &mut self,
        origin: Origin,
        window: Window,
        capacity: u32,
        delta: &Delta,
    ) -> Result<(), ParameterError> {
        let held = self.all.entry(origin).or_default().window_mut(window, capacity)?;
        held.apply(delta)?;
        self.bounds.window_mut(window, capacity)?.apply(origin, delta)
    }

    /// Whether all of these updates can be applied.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn check_all<'a>(&self, updates: impl Iterator<Item = &'a Update>, now: u64) -> Result<(), Refusal> {
        let mut planned = Planned::default();
        for update in updates {
            let (origin, version) = (update.origin, update.version);
            for &Part { window, capacity, .. } in &update.parts {
                let known_length = self.calendar.check_length(window.length);
                known_length.map_err(|error| Refusal::Parameter { origin, error })?;
                // Such parts are skipped.
                if self.calendar.is_over(window, now) {
                    continue;
                }
                self.admit(&mut planned, (origin, window, capacity), now).map_err(|why| match why {
                    NotAdmitted::Clock(why) => {
                        Refusal::Clock { origin, version, window: window.to_string(), why }
                    }
                    NotAdmitted::Parameter(error) => Refusal::Parameter { origin, error },
                })?;
            }
        }
        Ok(())
    }

    /// Whether a client may have a filter of this size in this window, beside those that are here or `planned`. It is planned then.
    fn admit(
        &self,
        planned: &mut Planned,
        (origin, window, capacity): (Origin, Window, u32),
        now: u64,
    ) -> Result<(), NotAdmitted> {
        let parameter = NotAdmitted::Parameter;
        self.calendar.check_length(window.length).map_err(parameter)?;
        let most = most_capacity(self.capacity).into();
        ParameterError::check("capacity", capacity.into(), 1, most).map_err(parameter)?;
        let layer = self.all.get(&origin);
        let held = layer.and_then(|layer| layer.windows.get(&window)).map(|held| held.capacity);
        if let Some(known) = held.or_else(|| planned.filters.get(&(origin, window)).copied()) {
            return ParameterError::same("capacity", known.into(), capacity.into()).map_err(parameter);
        }
        if layer.is_none() && planned.layers.insert(origin) {
            let layers = (self.all.len() + planned.layers.len()) as u64;
            ParameterError::check("the number of limited clients", layers, 0, MAX_LAYERS as u64)
                .map_err(parameter)?;
        }
        self.admit_sum(planned, (window, capacity), now)?;
        planned.filters.insert((origin, window), capacity);
        Ok(())
    }

    /// Likewise, for the sum of a window's filters of this size. All clients together have few windows, since each sum takes memory for its
    /// size, and each lookup reads all sums of a window.
    fn admit_sum(
        &self,
        planned: &mut Planned,
        (window, capacity): (Window, u32),
        now: u64,
    ) -> Result<(), NotAdmitted> {
        let planned_sizes = planned.sizes.range((window, 0)..=(window, u32::MAX)).map(|(_, size)| *size);
        let sizes: BTreeSet<u32> = self.bounds.sizes(window).chain(planned_sizes).collect();
        if sizes.contains(&capacity) {
            return Ok(());
        }
        if sizes.is_empty() {
            let new = planned.sizes.iter().map(|(window, _)| *window);
            let windows: BTreeSet<Window> = self.bounds.windows().chain(new).collect();
            let (number, most) = (windows.len() as u64 + 1, self.calendar.most() as u64);
            self.calendar.admit(window, windows.into_iter(), now).map_err(NotAdmitted::Clock)?;
            ParameterError::check("the number of windows", number, 0, most)
                .map_err(NotAdmitted::Parameter)?;
        }
        let number = sizes.len() as u64 + 1;
        ParameterError::check("the number of capacities in a window", number, 0, MAX_SIZES as u64)
            .map_err(NotAdmitted::Parameter)?;
        planned.sizes.insert((window, capacity));
        Ok(())
    }

    /// Removes all counts of a client.
    pub fn withdraw(&mut self, origin: Origin) {
        self.all.remove(&origin);
    }

    /// Adds a row of a snapshot at the time `now`. Returns false if it does not fit its place. A row with more cells than the budget of all
    /// rows allows is skipped: its client made them up, and this must not prevent the snapshot. Rows of windows that are over are kept: the
    /// clock may be ahead for a while.
    ///
    /// # Errors
    /// If its filter has an unjustified size, or more parts than that size has; or if there are too many windows.
    pub fn add_row(
        &mut self,
        origin: Origin,
        row: &Row,
        now: u64,
        allowance: &mut Allowance,
    ) -> Result<bool, ParameterError> {
        match self.admit(&mut Planned::default(), (origin, row.window, row.capacity), now) {
            Err(NotAdmitted::Parameter(error)) => return Err(error),
            Err(NotAdmitted::Clock(_)) => {
                let ahead = self.bounds.windows().filter(|known| known.start > now).count() as u64;
                let most = FUTURE_WINDOWS as u64;
                // A clock behind the server's is the usual reason.
                ParameterError::check("the number of windows that have yet to begin", ahead + 1, 0, most)?;
                return Ok(false);
            }
            Ok(()) => (),
        }
        let parts = layer_parts(LayerWindow::blocks(row.capacity)).end;
        ParameterError::check("part", row.chunk.into(), 0, u64::from(parts).saturating_sub(1))?;
        let most = allowance.most(row.bytes.len());
        if LayerWindow::cells_of_part(&row.bytes).is_some_and(|cells| cells > most as u64) {
            log::warn!(
                "a snapshot has too many made-up cells; the counts of the client {origin} are skipped"
            );
            allowance.leave_out()?;
            return Ok(true);
        }
        let Some(delta) = LayerWindow::decode_part(row.capacity, &row.bytes, most) else { return Ok(false) };
        allowance.spend(row.bytes.len(), delta.len());
        self.add(origin, row.window, row.capacity, &delta)?;
        Ok(true)
    }

    /// Whether the layers of another, none of whose origins is here, can be added.
    ///
    /// # Errors
    /// If there would be too many clients, windows, or sizes in a window.
    pub fn check_addition(&self, others: &Self) -> Result<(), ParameterError> {
        let mut planned = Planned::default();
        for (&origin, layer) in &others.all {
            for (&window, held) in &layer.windows {
                // The other admitted it at its time.
                let place = (origin, window, held.capacity);
                if let Err(NotAdmitted::Parameter(error)) = self.admit(&mut planned, place, window.start) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Adds the layers of another, none of whose origins is here.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn add_all(&mut self, others: &Self) -> Result<(), ParameterError> {
        for (&origin, layer) in &others.all {
            for (&window, held) in &layer.windows {
                self.add(origin, window, held.capacity, &held.filter.delta(0..held.filter.blocks()))?;
            }
        }
        Ok(())
    }

    /// The number of cells that differ from those of others in windows from `from` on, and the largest difference.
    pub fn differences(&self, others: &Self, from: Option<Window>) -> (u64, u32) {
        let cells = |layers: &Self| -> BTreeMap<_, _> {
            let windows = layers.all.iter().flat_map(|(&origin, layer)| {
                layer.windows.iter().map(move |(&window, held)| (origin, window, held))
            });
            let windows = windows.filter(|&(_, window, _)| Some(window) >= from);
            let cells = windows.flat_map(|(origin, window, held)| {
                let all = held.filter.delta(0..held.filter.blocks());
                all.changes().map(move |(cell, value)| ((origin, window, cell), value)).collect::<Vec<_>>()
            });
            cells.collect()
        };
        let (ours, theirs) = (cells(self), cells(others));
        let all: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
        let value = |of: &BTreeMap<_, u32>, cell| of.get(cell).copied().unwrap_or(0);
        let differences = all.into_iter().map(|cell| value(&ours, cell).abs_diff(value(&theirs, cell)));
        let differences = differences.filter(|&by| by > 0);
        differences.fold((0, 0), |(cells, largest), by| (cells + 1, by.max(largest)))
    }

    /// Removes windows that can be dropped.
    pub fn take_expired(&mut self, now: u64) {
        for layer in self.all.values_mut() {
            layer.take_expired(self.calendar, now);
        }
        self.all.retain(|_, layer| !layer.windows.is_empty());
        self.bounds.keep(self.all.values());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::update::Scope;
    use crate::history::vector::Chain;

    const NOW: u64 = 1_800_000_000;

    fn layers() -> Layers {
        Layers::new(&Settings::default())
    }

    /// The window `n` days from now.
    fn day(n: u64) -> Window {
        Calendar::new(&Settings::default()).at(NOW + n * 86_400)
    }

    /// The first update of a client, with a part for each of these windows and capacities.
    fn update(client: u64, parts: impl IntoIterator<Item = (Window, u32)>) -> Update {
        let part = |(window, capacity)| {
            let delta = Delta::from_changes(LayerWindow::blocks(capacity), [(7, 1)]).unwrap();
            Part { window, capacity, slice: 0, delta }
        };
        let parts = parts.into_iter().map(part).collect();
        Update { origin: Origin(client), version: 1, before: Chain::default(), scope: Scope::Client, parts }
    }

    const CAPACITY: u32 = 1_000_000;

    /// Clients that nobody has make their members take no more than so many layers; those that are known are counted on.
    #[test]
    fn no_member_holds_more_than_so_many_clients() {
        let mut layers = layers();
        (1..16_384).for_each(|client| layers.insert(Origin(client), Layer::default()).unwrap());
        let known = update(1, [(day(0), CAPACITY)]);
        let new = [16_384, 16_385].map(|client| update(client, [(day(0), CAPACITY)]));
        assert!(layers.check_all(new.iter(), NOW).is_err(), "there is room for one of them");
        assert!(layers.check_all([&known, &new[0]].into_iter(), NOW).is_ok());
        layers.apply(&new[0], NOW).unwrap();
        let refusal = layers.apply(&new[1], NOW).unwrap_err();
        assert!(matches!(refusal, Refusal::Parameter { origin: Origin(16_385), .. }), "{refusal}");
        layers.apply(&known, NOW).unwrap();
        assert_eq!(layers.iter().count(), 16_384);
    }

    /// The same holds for the sum of two members' layers; and cells that differ between members are found, but no others.
    #[test]
    fn layers_of_two_members_are_added_and_compared() {
        let with = |clients: std::ops::Range<u64>| {
            let mut layers = layers();
            clients.for_each(|client| {
                layers.apply(&update(client, [(day(0), CAPACITY)]), NOW).unwrap();
            });
            layers
        };
        let mut ours = layers();
        (1..16_381).for_each(|client| ours.insert(Origin(client), Layer::default()).unwrap());
        assert!(ours.check_addition(&with(20_000..20_005)).is_err());
        let four = with(20_000..20_004);
        ours.check_addition(&four).unwrap();
        ours.add_all(&four).unwrap();
        assert_eq!((ours.iter().count(), ours.differences(&four, None)), (16_384, (0, 0)));
        let more = with(20_000..20_006);
        assert_eq!((four.differences(&more, None), more.differences(&four, Some(day(1)))), ((2, 1), (0, 0)));
    }

    /// Each of many made-up clients brings another window that never ends: as few are taken as of one client.
    #[test]
    fn made_up_clients_bring_few_windows() {
        let mut layers = layers();
        let apply =
            |layers: &mut Layers, client, window| layers.apply(&update(client, [(window, CAPACITY)]), NOW);
        let taken = (1..100).filter(|&n| apply(&mut layers, n, day(n)).is_ok()).count();
        let odd = Window { start: day(0).start + 1, ..day(0) };
        assert!(apply(&mut layers, 100, odd).is_err(), "it begins where no window does");
        assert_eq!(taken, FUTURE_WINDOWS);
        assert!(apply(&mut layers, 101, day(0)).is_ok() && apply(&mut layers, 102, day(1)).is_ok());
    }

    /// Parts are checked together with those before them, in one update and in several: a refused one leaves nothing.
    #[test]
    fn parts_are_checked_together() {
        let windows = |days: std::ops::Range<u64>| days.map(|n| (day(n), CAPACITY));
        let refused = [
            ("1,024 windows that have yet to begin", update(1, windows(1..1025))),
            (
                "two sizes in one window of a client",
                update(1, [(day(0), CAPACITY), (day(0), CAPACITY + 1000)]),
            ),
        ];
        for (name, update) in &refused {
            let mut layers = layers();
            assert!(layers.check_all([update].into_iter(), NOW).is_err(), "{name}");
            assert!(layers.apply(update, NOW).is_err(), "{name}");
            assert_eq!((layers.iter().count(), layers.bounds.windows().count()), (0, 0), "{name}");
        }
        let step = |last| [update(1, windows(0..4)), update(2, windows(3..last))];
        let accepted = |last| layers().check_all(step(last).iter(), NOW).is_ok();
        assert_eq!([5, 6].map(accepted), [true, false], "of two clients");
        let over = update(
            1,
            (1..1000).map(|n| (Calendar::new(&Settings::default()).at(NOW - n * 86_400), CAPACITY)),
        );
        let mut layers = layers();
        layers.apply(&over, NOW).unwrap();
        assert_eq!(layers.bounds.windows().count(), 6, "parts of windows that are over have no effect");
    }
}
