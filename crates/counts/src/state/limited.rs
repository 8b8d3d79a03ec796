// SPDX-License-Identifier: GPL-3.0-or-later
//! The limited clients of a server: what each brought, and how much more it may.
//!
//! No cell holds more from a client than its limit, over all windows together. Since a signature's count in a client's layer is in
//! each window the smallest of its cells, no count, whoever's the signature is, rises by more than the limit through it.

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
use std::collections::{BTreeMap, HashSet};

/// An update with what one limited client brought since its last one.
pub struct ClientUpdate {
    /// The client's name.
    pub client: String,
    /// The update.
    pub update: Update,
    /// The update as it travels.
    pub bytes: Vec<u8>,
}

/// What a client may bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// To any cell, over the whole retention.
    pub influence: u32,
    /// Different signatures, in millionths of the capacity of a window.
    pub quota: u32,
}

impl Limits {
    /// Different signatures that it may bring in a window.
    pub fn signatures(self, capacity: u32) -> u64 {
        (u64::from(capacity) * u64::from(self.quota) / 1_000_000).max(1)
    }
}

/// A client may bring no more signatures in the running window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its quota is used up: {brought} of {quota} different signatures in the window that ends in {hours} hours, and this batch has {more} new ones"
)]
pub struct OverQuota {
    /// What it brought.
    pub brought: u64,
    /// What it may bring.
    pub quota: u64,
    /// What the batch would add.
    pub more: u64,
    /// Until the next window begins, rounded up.
    pub hours: u64,
}

/// All limited clients, by name.
pub struct Limited {
    calendar: Calendar,
    capacity: u32,
    members: BTreeMap<String, Member>,
    /// The client that has or had each origin.
    by_origin: BTreeMap<Origin, String>,
    /// What all of them brought together, at most.
    bounds: Bounds,
}

impl Limited {
    /// Nobody yet.
    pub fn new(settings: &Settings) -> Self {
        let (calendar, capacity) = (Calendar::new(settings), settings.capacity.get());
        Self {
            calendar,
            capacity,
            members: BTreeMap::new(),
            by_origin: BTreeMap::new(),
            bounds: Bounds::default(),
        }
    }

    /// Puts a client back that was read from disk, without what it brought.
    pub fn restore(&mut self, name: String, member: Member) {
        for &origin in member.former.iter().chain([&member.origin]) {
            self.by_origin.insert(origin, name.clone());
        }
        self.members.insert(name, member);
    }

    /// Gives all clients what they brought, which is taken out of `layers`.
    ///
    /// # Errors
    /// When there is no memory.
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

    /// The client under this origin.
    pub fn of_origin(&self, origin: Origin) -> Option<&Member> {
        self.of_any_origin(origin).filter(|member| member.origin == origin)
    }

    /// The client that has or had this origin.
    pub fn of_any_origin(&self, origin: Origin) -> Option<&Member> {
        self.members.get(self.by_origin.get(&origin)?)
    }

    /// The client under this origin, to add to its layer, and the bounds that rise with it.
    pub fn of_origin_mut(&mut self, origin: Origin) -> Option<(&mut Member, &mut Bounds)> {
        let member = self.members.get_mut(self.by_origin.get(&origin)?)?;
        (member.origin == origin).then_some((member, &mut self.bounds))
    }

    /// At least [`count`](Self::count), by one look.
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

    /// The client of this name.
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.members.get(name)
    }

    /// The client of this name, which is made when it is missing, with an origin of this number; and the bounds that rise with its
    /// layer.
    pub fn member(&mut self, name: &str, origin: Origin) -> (&mut Member, &mut Bounds) {
        let (by_origin, capacity) = (&mut self.by_origin, self.capacity);
        let new = || {
            by_origin.insert(origin, name.to_owned());
            Member::new(origin, Mark::default(), Vec::new(), capacity)
        };
        (self.members.entry(name.to_owned()).or_insert_with(new), &mut self.bounds)
    }

    /// How many different signatures a client would have brought to a window after these.
    ///
    /// # Errors
    /// When they are more than it may bring.
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
        self.members.values().any(Member::has_grown)
    }

    /// Cells that grew since the last update.
    pub fn grown_cells(&self) -> usize {
        self.members.values().map(Member::grown_cells).sum()
    }

    /// An update for each client that brought something since the last ones.
    pub fn cut(&mut self) -> Vec<ClientUpdate> {
        let cut = |(name, member): (&String, &mut Member)| {
            if let Some(odd) = member.look() {
                log::error!(
                    "the client {name} reports signatures that are made up: {odd}. Its limits hold; bulkmark client remove \
                     --with-counts {name} takes back what it reported"
                );
            }
            member.cut().map(|(update, bytes)| ClientUpdate { client: name.clone(), update, bytes })
        };
        self.members.iter_mut().filter_map(cut).collect()
    }

    /// Takes all back that a client brought: the update that says so. None when there is no such client.
    pub fn withdraw(&mut self, name: &str) -> Option<(Update, Vec<u8>)> {
        let mut member = self.members.remove(name)?;
        self.by_origin.retain(|_, of| of != name);
        Some(member.withdraw())
    }

    /// All members under new origins and with empty layers. Returns, for each, what it was before.
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

    /// What each of them brought, by the origin under which it is told; nothing of it stays here.
    pub fn take_layers(&mut self) -> Vec<(Origin, Layer)> {
        (self.by_origin, self.bounds) = (BTreeMap::new(), Bounds::default());
        let members = std::mem::take(&mut self.members).into_values();
        members.map(|member| (member.origin, member.layer)).collect()
    }

    /// Takes out windows that are over. A client of whom nothing is left may begin anew with filters of another size; of one that has
    /// something under a former origin, what its cells hold is added up over all of them, so they stay of one size.
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
}
