// SPDX-License-Identifier: GPL-3.0-or-later
//! The limited clients of other servers: each has a separate layer, so that its counts can be bounded and withdrawn.
//!
//! The count of a signature is that of the merged cells plus, for each limited client, that of its layer. So whatever signatures a client
//! makes up, a count rises by no more than its cells hold.

use crate::history::chunks::layer_parts;
use crate::history::refusal::Refusal;
use crate::history::row::Row;
use crate::history::update::{Update, most_capacity};
use crate::history::vector::Origin;
use crate::history::window::{Calendar, MAX_SIZES, NotAdmitted, Window};
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

/// A lookup reads one sum for each size in a window, so these are few.
fn check_sizes(sizes: &BTreeSet<u32>) -> Result<(), ParameterError> {
    ParameterError::check("the number of capacities in a window", sizes.len() as u64, 0, MAX_SIZES as u64)
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
        self.check(update, now)?;
        let origin = update.origin;
        let calendar = self.calendar;
        for part in update.parts.iter().filter(|part| !calendar.is_over(part.window, now)) {
            // The window was admitted, and the delta was read for that size.
            let added = self.add(origin, part.window, part.capacity, &part.delta);
            added.map_err(|error| Refusal::Parameter { origin, error })?;
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

    /// Whether an update can be applied.
    fn check(&self, update: &Update, now: u64) -> Result<(), Refusal> {
        let (origin, version) = (update.origin, update.version);
        for part in &update.parts {
            self.admit(origin, part.window, part.capacity, now).map_err(|why| match why {
                NotAdmitted::Clock(why) => {
                    Refusal::Clock { origin, version, window: part.window.to_string(), why }
                }
                NotAdmitted::Parameter(error) => Refusal::Parameter { origin, error },
            })?;
        }
        Ok(())
    }

    /// Whether all of these updates, of different origins, can be applied.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn check_all<'a>(&self, updates: impl Iterator<Item = &'a Update>, now: u64) -> Result<(), Refusal> {
        let mut layers = self.all.len();
        let mut all_sizes: BTreeMap<Window, BTreeSet<u32>> = BTreeMap::new();
        for update in updates {
            self.check(update, now)?;
            let origin = update.origin;
            let parameter = |error| Refusal::Parameter { origin, error };
            layers += usize::from(!self.all.contains_key(&origin));
            ParameterError::check("the number of limited clients", layers as u64, 0, MAX_LAYERS as u64)
                .map_err(parameter)?;
            // Parts in a new window must all have one size.
            let mut sizes = BTreeMap::new();
            for part in &update.parts {
                let size = *sizes.entry(part.window).or_insert(part.capacity);
                ParameterError::same("capacity", size.into(), part.capacity.into()).map_err(parameter)?;
                let known = || self.bounds.sizes(part.window).collect();
                let all = all_sizes.entry(part.window).or_insert_with(known);
                all.insert(size);
                check_sizes(all).map_err(parameter)?;
            }
        }
        Ok(())
    }

    /// Whether there may be a filter of this size.
    fn admit(&self, origin: Origin, window: Window, capacity: u32, now: u64) -> Result<(), NotAdmitted> {
        let parameter = NotAdmitted::Parameter;
        self.calendar.check_length(window.length).map_err(parameter)?;
        let most = most_capacity(self.capacity).into();
        ParameterError::check("capacity", capacity.into(), 1, most).map_err(parameter)?;
        let mut sizes: BTreeSet<u32> = self.bounds.sizes(window).collect();
        sizes.insert(capacity);
        check_sizes(&sizes).map_err(parameter)?;
        match self.all.get(&origin) {
            None => {
                let layers = self.all.len() as u64 + 1;
                ParameterError::check("the number of limited clients", layers, 0, MAX_LAYERS as u64)
                    .map_err(parameter)?;
            }
            Some(layer) => {
                if let Some(held) = layer.windows.get(&window) {
                    return ParameterError::same("capacity", held.capacity.into(), capacity.into())
                        .map_err(parameter);
                }
                let (windows, most) = (layer.windows.len() as u64 + 1, self.calendar.most() as u64);
                ParameterError::check("the number of windows", windows, 0, most).map_err(parameter)?;
            }
        }
        if self.bounds.windows().any(|known| known == window) {
            return Ok(());
        }
        // The windows of all clients together are few, so that made-up clients bring no more of them than one.
        self.calendar.admit(window, self.bounds.windows(), now).map_err(NotAdmitted::Clock)
    }

    /// Removes all counts of a client.
    pub fn withdraw(&mut self, origin: Origin) {
        self.all.remove(&origin);
    }

    /// Adds a row of a snapshot. Returns false if it does not fit its place. A row with more cells than the budget of all rows allows is
    /// skipped: its client made them up, and this must not prevent the snapshot.
    ///
    /// # Errors
    /// If its filter has an unjustified size, or more parts than that size has.
    pub fn add_row(
        &mut self,
        origin: Origin,
        row: &Row,
        allowance: &mut Allowance,
    ) -> Result<bool, ParameterError> {
        match self.admit(origin, row.window, row.capacity, row.window.start) {
            Err(NotAdmitted::Parameter(error)) => return Err(error),
            Err(NotAdmitted::Clock(_)) => return Ok(false),
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
    use crate::history::update::{Part, Scope};
    use crate::history::vector::Chain;
    use crate::history::window::FUTURE_WINDOWS;

    const NOW: u64 = 1_800_000_000;

    /// Clients that nobody has make their members take no more than so many layers; those that are known are counted on.
    #[test]
    fn no_member_holds_more_than_so_many_clients() {
        let settings = Settings::default();
        let window = Calendar::new(&settings).at(NOW);
        let capacity = settings.capacity.get();
        let blocks = LayerWindow::blocks(capacity);
        let update = |client: u64| {
            let delta = Delta::from_changes(blocks, [(7, 1)]).unwrap();
            let parts = vec![Part { window, capacity, slice: 0, delta }];
            Update {
                origin: Origin(client),
                version: 1,
                before: Chain::default(),
                scope: Scope::Client,
                parts,
            }
        };
        let mut layers = Layers::new(&settings);
        (1..16_384).for_each(|client| layers.insert(Origin(client), Layer::default()).unwrap());
        let known = update(1);
        let new = [16_384, 16_385].map(update);
        assert!(layers.check_all(new.iter(), NOW).is_err(), "there is room for one of them");
        assert!(layers.check_all([&known, &new[0]].into_iter(), NOW).is_ok());
        layers.apply(&new[0], NOW).unwrap();
        let refusal = layers.apply(&new[1], NOW).unwrap_err();
        assert!(matches!(refusal, Refusal::Parameter { origin: Origin(16_385), .. }), "{refusal}");
        layers.apply(&known, NOW).unwrap();
        assert_eq!(layers.iter().count(), 16_384);
    }

    /// Each of many made-up clients brings another window that never ends: as few are taken as of one client.
    #[test]
    fn made_up_clients_bring_few_windows() {
        let settings = Settings::default();
        let calendar = Calendar::new(&settings);
        let capacity = settings.capacity.get();
        let mut layers = Layers::new(&settings);
        let apply = |layers: &mut Layers, client: u64, window| {
            let delta = Delta::from_changes(LayerWindow::blocks(capacity), [(7, 1)]).unwrap();
            let parts = vec![Part { window, capacity, slice: 0, delta }];
            let origin = Origin(client);
            layers.apply(
                &Update { origin, version: 1, before: Chain::default(), scope: Scope::Client, parts },
                NOW,
            )
        };
        let day = |n: u64| calendar.at(NOW + n * 86_400);
        let taken = (1..100).filter(|&n| apply(&mut layers, n, day(n)).is_ok()).count();
        let odd = Window { start: day(0).start + 1, ..day(0) };
        assert!(apply(&mut layers, 100, odd).is_err(), "it begins where no window does");
        assert_eq!(taken, FUTURE_WINDOWS);
        assert!(apply(&mut layers, 101, day(0)).is_ok() && apply(&mut layers, 102, day(1)).is_ok());
    }
}
