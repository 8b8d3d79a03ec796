// SPDX-License-Identifier: GPL-3.0-or-later
//! The limited clients of a server: the counts of each, and its limits.
//!
//! No cell holds more from a client than its limit, over all windows together. Since a signature's count in a client's layer is the
//! smallest of its cells in each window, no count rises by more than the limit through it, whoever else reports the signature.

use crate::history::update::Update;
use crate::history::vector::{Mark, Origin};
use crate::history::window::{Calendar, Window};
use crate::settings::Settings;
use crate::state::bounds::{Bounds, origins_of};
use crate::state::layer::Layer;
use crate::state::member::Member;
use crate::state::shares::Share;
use bulkmark_filter::ParameterError;
use bulkmark_types::Signature;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// An update with the reports of one limited client since its last one.
pub struct ClientUpdate {
    /// The client's name.
    pub client: String,
    /// The update.
    pub update: Update,
    /// The coded update.
    pub bytes: Vec<u8>,
}

/// The limits of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most that it can add to any cell, over the whole retention.
    pub influence: u32,
    /// Different signatures, in millionths of the capacity of a window.
    pub quota: u32,
}

impl Limits {
    /// The most different signatures that it may report in a window.
    pub fn signatures(self, capacity: u32) -> u64 {
        (u64::from(capacity) * u64::from(self.quota) / 1_000_000).max(1)
    }
}

/// A client may report no more new signatures in the current window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its quota is used up: {brought} of {quota} different signatures in the window that ends in {hours} hours, and this batch has {more} new ones"
)]
pub struct OverQuota {
    /// Signatures that it has reported.
    pub brought: u64,
    /// Signatures that it may report.
    pub quota: u64,
    /// Signatures that the batch would add.
    pub more: u64,
    /// Hours until the next window begins, rounded up.
    pub hours: u64,
}

/// All limited clients, by name.
pub struct Limited {
    calendar: Calendar,
    capacity: u32,
    members: BTreeMap<String, Member>,
    /// The client that has or had each origin.
    by_origin: BTreeMap<Origin, String>,
    /// An upper bound of all clients' counts together.
    bounds: Bounds,
    /// The clients that may have grown since the last updates: others cost nothing when these are made.
    touched: BTreeSet<String>,
}

impl Limited {
    /// Without clients.
    pub fn new(settings: &Settings) -> Self {
        let (calendar, capacity) = (Calendar::new(settings), settings.capacity.get());
        Self {
            calendar,
            capacity,
            members: BTreeMap::new(),
            by_origin: BTreeMap::new(),
            bounds: Bounds::default(),
            touched: BTreeSet::new(),
        }
    }

    /// Restores a client that was read from disk, without its layer.
    pub fn restore(&mut self, name: String, member: Member) {
        for &origin in member.former.iter().chain([&member.origin]) {
            self.by_origin.insert(origin, name.clone());
        }
        self.touched.insert(name.clone());
        self.members.insert(name, member);
    }

    /// Moves the clients' layers out of `layers` into them.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn restore_layers(&mut self, layers: &mut BTreeMap<Origin, Layer>) -> Result<(), ParameterError> {
        for member in self.members.values_mut() {
            member.layer = layers.remove(&member.origin).unwrap_or_default();
            self.bounds.add(member.origin, &member.layer)?;
        }
        Ok(())
    }

    /// All clients with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Member)> {
        self.members.iter().map(|(name, member)| (&**name, member))
    }

    /// All clients, to read or mark their layers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.members.values_mut()
    }

    /// The client with this origin.
    pub fn of_origin(&self, origin: Origin) -> Option<&Member> {
        self.of_any_origin(origin).filter(|member| member.origin == origin)
    }

    /// The client that has or had this origin.
    pub fn of_any_origin(&self, origin: Origin) -> Option<&Member> {
        self.members.get(self.by_origin.get(&origin)?)
    }

    /// The client with this origin, to add to its layer, and the bounds that rise with it.
    pub fn of_origin_mut(&mut self, origin: Origin) -> Option<(&mut Member, &mut Bounds)> {
        let name = self.by_origin.get(&origin)?;
        let member = self.members.get_mut(name)?;
        touch(&mut self.touched, name);
        (member.origin == origin).then_some((member, &mut self.bounds))
    }

    /// Prefetches the cells of `signature` that most lookups need.
    pub(crate) fn prefetch(&self, signature: Signature) {
        self.bounds.prefetch(signature);
    }

    /// An upper bound of [`count`](Self::count), with one lookup.
    pub(crate) fn bound(&self, signature: Signature, now: u64) -> u32 {
        self.bounds.count(self.calendar, signature, now)
    }

    /// Bytes of memory of the bounds over all clients.
    pub fn bounds_memory(&self) -> usize {
        self.bounds.memory()
    }

    pub(crate) fn count(&self, signature: Signature, now: u64) -> u32 {
        let members = self.may_have(signature, now);
        let counts = members.map(|member| member.layer.count(self.calendar, signature, now));
        counts.fold(0, u32::saturating_add)
    }

    pub(crate) fn count_by_window(&self, signature: Signature, now: u64) -> impl Iterator<Item = Share> {
        let members = self.may_have(signature, now);
        members.flat_map(move |member| member.layer.shares(self.calendar, signature, now))
    }

    /// The clients of the groups that may have a signature.
    fn may_have(&self, signature: Signature, now: u64) -> impl Iterator<Item = &Member> {
        let groups = origins_of(self.bounds.groups(self.calendar, signature, now));
        groups
            .flat_map(|origins| self.by_origin.range(origins))
            .filter_map(|(&origin, _)| self.of_origin(origin))
    }

    /// The client with this name.
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.members.get(name)
    }

    /// The client with this name, made with this origin if it is missing; and the bounds that rise with its layer.
    pub fn member(&mut self, name: &str, origin: Origin) -> (&mut Member, &mut Bounds) {
        let (by_origin, capacity) = (&mut self.by_origin, self.capacity);
        touch(&mut self.touched, name);
        let new = || {
            by_origin.insert(origin, name.to_owned());
            Member::new(origin, Mark::default(), Vec::new(), capacity)
        };
        (self.members.entry(name.to_owned()).or_insert_with(new), &mut self.bounds)
    }

    /// Checks the number of different signatures that a client would have reported in a window after these.
    ///
    /// # Errors
    /// If they are more than it may report.
    pub fn check_quota(
        &self,
        name: &str,
        signatures: impl Iterator<Item = Signature>,
        window: Window,
        limits: Limits,
        now: u64,
    ) -> Result<(), OverQuota> {
        let member = self.members.get(name);
        let quota = limits.signatures(member.map_or(self.capacity, |member| member.capacity));
        let held = member.and_then(|member| member.layer.windows.get(&window));
        let is_new = |signature: &Signature| held.is_none_or(|held| held.filter.count(signature.bits()) == 0);
        let more = signatures.filter(is_new).collect::<HashSet<_>>().len() as u64;
        let brought = held.map_or(0, |held| held.distinct);
        if more == 0 || brought + more <= quota {
            return Ok(());
        }
        let hours = (window.start + window.length).saturating_sub(now).div_ceil(3600);
        Err(OverQuota { brought, quota, more, hours })
    }

    pub(crate) fn has_grown(&self) -> bool {
        self.touched().any(Member::has_grown)
    }

    /// Cells that grew since the last update.
    pub fn grown_cells(&self) -> usize {
        self.touched().map(Member::grown_cells).sum()
    }

    /// The clients that may have grown since the last updates.
    fn touched(&self) -> impl Iterator<Item = &Member> {
        self.touched.iter().filter_map(|name| self.members.get(name))
    }

    /// Makes an update for each client with reports since the last one.
    pub fn cut(&mut self) -> Vec<ClientUpdate> {
        let cut = |name: String| {
            let member = self.members.get_mut(&name)?;
            if let Some(anomaly) = member.look() {
                log::error!(
                    "the client {name} reports signatures that are made up: {anomaly}. Its limits hold; bulkmark client remove \
                     --with-counts {name} withdraws its reports"
                );
            }
            member.cut().map(|(update, bytes)| ClientUpdate { client: name, update, bytes })
        };
        std::mem::take(&mut self.touched).into_iter().filter_map(cut).collect()
    }

    /// Withdraws all counts of a client. Returns the update for others; `None` if there is no such client.
    pub fn withdraw(&mut self, name: &str) -> Option<(Update, Vec<u8>)> {
        let mut member = self.members.remove(name)?;
        self.by_origin.retain(|_, of| of != name);
        Some(member.withdraw())
    }

    /// Gives all members new origins and empty layers. Returns the members as they were before.
    pub fn renew(&mut self, mut new: impl FnMut() -> Origin) -> Vec<(String, Member)> {
        let old = std::mem::take(&mut self.members);
        self.bounds = Bounds::default();
        for (name, member) in &old {
            let former = member.former.iter().copied().chain([member.origin]).collect();
            let fresh = Member::new(new(), Mark::default(), former, member.capacity);
            self.restore(name.clone(), fresh);
        }
        old.into_iter().collect()
    }

    /// Takes the layer of each client, by its origin; nothing of them stays here.
    pub fn take_layers(&mut self) -> Vec<(Origin, Layer)> {
        (self.by_origin, self.bounds) = (BTreeMap::new(), Bounds::default());
        let members = std::mem::take(&mut self.members).into_values();
        members.map(|member| (member.origin, member.layer)).collect()
    }

    /// Removes windows that can be dropped. An empty client gets filters of the present size; if a client has counts under a former origin,
    /// its cells are summed over all of them, so the size stays.
    pub fn take_expired(&mut self, now: u64) {
        for member in self.members.values_mut() {
            member.layer.take_expired(self.calendar, now);
            if member.layer.windows.is_empty() && member.former.is_empty() {
                member.capacity = self.capacity;
            }
        }
        self.bounds.keep(self.members.values().map(|member| &member.layer));
    }
}

fn touch(touched: &mut BTreeSet<String>, name: &str) {
    if !touched.contains(name) {
        touched.insert(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    const DAY: u64 = 86_400;
    const NOW: u64 = 20_000 * DAY + 1000;
    const MOST: u32 = 5;

    fn settings() -> Settings {
        Settings { capacity: NonZeroU32::new(40).unwrap(), ..Settings::default() }
    }

    fn calendar() -> Calendar {
        Calendar::new(&settings())
    }

    #[test]
    fn new_signatures_beyond_the_quota_are_refused_and_known_ones_are_not() {
        let mut limited = Limited::new(&settings());
        let limits = Limits { influence: MOST, quota: 250_000 };
        let window = calendar().at(NOW);
        let signatures =
            |range: std::ops::Range<u8>| range.map(|n| Signature::from_bytes([n.wrapping_mul(23); 16]));
        let check =
            |limited: &Limited, range| limited.check_quota("a", signatures(range), window, limits, NOW);
        assert_eq!(check(&limited, 0..10), Ok(()));
        let over = OverQuota { brought: 0, quota: 10, more: 11, hours: 24 };
        assert_eq!(check(&limited, 0..11), Err(over));
        for signature in signatures(0..10) {
            let (member, bounds) = limited.member("a", Origin(1));
            member.add(bounds, window, signature, 1, true).unwrap();
        }
        assert_eq!(check(&limited, 0..10), Ok(()));
        assert_eq!(check(&limited, 9..11), Err(OverQuota { brought: 10, more: 1, ..over }));
        assert_eq!(
            limited.check_quota("b", signatures(0..10), window, limits, NOW),
            Ok(()),
            "each for itself"
        );
    }

    /// Clients that reported nothing since the last updates are not visited for the next ones, but once after a start.
    #[test]
    fn silent_clients_cost_an_update_nothing() {
        let mut limited = Limited::new(&settings());
        let window = calendar().at(NOW);
        for n in 0..1000u64 {
            let member = Member::new(Origin(n + 1), Mark::default(), Vec::new(), 40);
            limited.restore(format!("c{n}"), member);
        }
        assert_eq!((limited.touched().count(), limited.cut().len()), (1000, 0));
        let (member, bounds) = limited.member("c7", Origin(0));
        member.add(bounds, window, Signature::from_bytes([7; 16]), 1, true).unwrap();
        assert!(limited.of_origin_mut(Origin(9)).is_some());
        assert_eq!((limited.touched().count(), limited.has_grown()), (2, true));
        let cut: Vec<_> = limited.cut().into_iter().map(|update| update.client).collect();
        assert_eq!(cut, ["c7"]);
        assert_eq!((limited.touched().count(), limited.has_grown()), (0, false));
    }
}
