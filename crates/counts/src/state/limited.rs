// SPDX-License-Identifier: GPL-3.0-or-later
//! The limited clients of a server: what each brought, and how much more it may.
//!
//! No cell holds more from a client than its limit, over all windows together. Since a signature's count in a client's layer is in
//! each window the smallest of its cells, no count, whoever's the signature is, rises by more than the limit through it.

use crate::history::update::{Part, Scope, Update};
use crate::history::vector::{Mark, Origin};
use crate::history::window::{Calendar, Window};
use crate::settings::Settings;
use crate::state::layer::Layer;
use crate::state::oddity::Oddity;
use crate::state::shares::Share;
use bulkmark_filter::{Delta, ParameterError};
use bulkmark_types::Signature;
use std::collections::{BTreeMap, HashSet};

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

/// Reports of a signature in a window, and how often it was seen.
pub type Reported = (Window, Signature, u32);

/// One client.
pub struct Member {
    /// The origin under which its updates are made.
    pub origin: Origin,
    /// Where its history stands.
    pub mark: Mark,
    /// The origins that it had before this server began anew. What they brought counts as brought.
    pub former: Vec<Origin>,
    /// The size of its filters.
    pub capacity: u32,
    /// The cells that it raised.
    pub layer: Layer,
    /// What its cells grew by since the last update.
    growth: BTreeMap<Window, BTreeMap<usize, u32>>,
    /// The reports that they grew by.
    since: Vec<Reported>,
    /// What is strange about its signatures in a window, and how many these were when that was looked at.
    odd: (Window, u64, Option<Oddity>),
}

/// A look at the cells takes as long as they are many. So they are looked at again when there are a quarter more signatures.
const LOOK_AGAIN: u64 = 4;

impl Member {
    /// A client with an empty layer.
    pub const fn new(origin: Origin, mark: Mark, former: Vec<Origin>, capacity: u32) -> Self {
        let layer = Layer { windows: BTreeMap::new() };
        let odd = (Window { start: 0, length: 0 }, 0, None);
        Self { origin, mark, former, capacity, layer, growth: BTreeMap::new(), since: Vec::new(), odd }
    }

    /// How many of `times` reports it may bring, when no cell may hold more than `most` over all windows, and `elsewhere` is what
    /// a cell holds from it that is not in its layer.
    pub fn allowed(
        &self,
        calendar: Calendar,
        window: Window,
        (signature, times): (Signature, u32),
        most: u32,
        now: u64,
        elsewhere: impl Fn(usize) -> u32,
    ) -> Result<u32, ParameterError> {
        let empty;
        let filter = match self.layer.windows.get(&window) {
            Some(held) => &held.filter,
            None => {
                empty = crate::state::layer::LayerWindow::new(self.capacity)?;
                &empty.filter
            }
        };
        let (mut count, mut reach) = (u32::MAX, u32::MAX);
        for cell in filter.cells_of(signature.bits()) {
            let here = filter.get(cell);
            let others = self.layer.sum(calendar, window, cell, now).saturating_sub(here) + elsewhere(cell);
            count = count.min(here);
            reach = reach.min(here.max(most.saturating_sub(others)));
        }
        Ok(times.min(reach.saturating_sub(count)))
    }

    /// Adds reports: raises the smallest cells (H1), each once (H2). `records` says whether that is to be in the next update.
    pub fn add(
        &mut self,
        window: Window,
        signature: Signature,
        times: u32,
        records: bool,
    ) -> Result<(), ParameterError> {
        let held = self.layer.window_mut(window, self.capacity)?;
        let count = held.filter.count(signature.bits());
        held.distinct += u64::from(count == 0);
        let target = count.saturating_add(times);
        for cell in held.filter.cells_of(signature.bits()) {
            let by = target.saturating_sub(held.filter.get(cell));
            if by > 0 {
                held.raise(cell, by);
                if records {
                    *self.growth.entry(window).or_default().entry(cell).or_default() += by;
                }
            }
        }
        if records {
            self.since.push((window, signature, times));
        }
        Ok(())
    }

    pub(crate) fn has_grown(&self) -> bool {
        !self.growth.is_empty()
    }

    /// What is strange about its signatures in the newest window.
    pub const fn odd(&self) -> Option<Oddity> {
        self.odd.2
    }

    /// Looks at what it brought in the newest window. What is strange there is returned once.
    fn look(&mut self) -> Option<Oddity> {
        let mut newest = self.layer.windows.iter().rev();
        let (&window, held) = newest.find(|(window, _)| !window.is_of_people())?;
        let (before, looked_at, known) = self.odd;
        if window == before && held.distinct < looked_at + looked_at.div_ceil(LOOK_AGAIN) {
            return None;
        }
        let found = held.oddity();
        self.odd = (window, held.distinct, found);
        found.filter(|_| known.is_none())
    }

    /// What it grew by since the last update, as the next one with its bytes; none when nothing was added.
    pub fn cut(&mut self) -> Option<(Update, Vec<u8>)> {
        let parts: Vec<Part> = std::mem::take(&mut self.growth)
            .into_iter()
            .filter_map(|(window, cells)| {
                let blocks = self.layer.windows.get(&window)?.filter.blocks();
                let delta = Delta::from_changes(blocks, cells).ok()?;
                Some(Part { window, capacity: self.capacity, slice: 0, delta })
            })
            .collect();
        self.since.clear();
        (!parts.is_empty()).then(|| self.publish(Scope::Client, parts))
    }

    /// The update that takes all back.
    pub fn withdraw(&mut self) -> (Update, Vec<u8>) {
        self.publish(Scope::Withdrawn, Vec::new())
    }

    fn publish(&mut self, scope: Scope, parts: Vec<Part>) -> (Update, Vec<u8>) {
        let version = self.mark.version + 1;
        let update = Update { origin: self.origin, version, before: self.mark.chain, scope, parts };
        let bytes = update.encode();
        self.mark = update.mark(&bytes);
        (update, bytes)
    }

    /// Its layer as others know it, without what it grew by since the last update; and the reports by which it grew.
    pub fn into_told(mut self) -> Result<(Layer, Vec<Reported>), ParameterError> {
        for (window, grown) in &self.growth {
            let Some(held) = self.layer.windows.remove(window) else { continue };
            let told = self.layer.window_mut(*window, self.capacity)?;
            for (cell, value) in held.filter.delta(0..held.filter.blocks()).changes() {
                told.raise(cell, value.saturating_sub(grown.get(&cell).copied().unwrap_or(0)));
            }
        }
        Ok((self.layer, self.since))
    }
}

/// All limited clients, by name.
pub struct Limited {
    calendar: Calendar,
    capacity: u32,
    members: BTreeMap<String, Member>,
}

impl Limited {
    /// Nobody yet.
    pub fn new(settings: &Settings) -> Self {
        let (calendar, capacity) = (Calendar::new(settings), settings.capacity.get());
        Self { calendar, capacity, members: BTreeMap::new() }
    }

    /// Puts a client back that was read from disk.
    pub fn restore(&mut self, name: String, member: Member) {
        self.members.insert(name, member);
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
        self.members.values().find(|member| member.origin == origin)
    }

    /// The client that has or had this origin.
    pub fn of_any_origin(&self, origin: Origin) -> Option<&Member> {
        self.members.values().find(|member| member.origin == origin || member.former.contains(&origin))
    }

    /// The client under this origin, to add to its layer.
    pub fn of_origin_mut(&mut self, origin: Origin) -> Option<&mut Member> {
        self.members.values_mut().find(|member| member.origin == origin)
    }

    pub(crate) fn count(&self, signature: Signature, now: u64) -> u32 {
        let counts = self.members.values().map(|member| member.layer.count(self.calendar, signature, now));
        counts.fold(0, u32::saturating_add)
    }

    pub(crate) fn count_by_window(&self, signature: Signature, now: u64) -> impl Iterator<Item = Share> {
        self.members.values().flat_map(move |member| member.layer.shares(self.calendar, signature, now))
    }

    /// The client of this name.
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.members.get(name)
    }

    /// The client of this name, which is made when it is missing, with an origin of this number.
    pub fn member(&mut self, name: &str, origin: Origin) -> &mut Member {
        let new = || Member::new(origin, Mark::default(), Vec::new(), self.capacity);
        self.members.entry(name.to_owned()).or_insert_with(new)
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
        self.members.values().flat_map(|member| member.growth.values()).map(BTreeMap::len).sum()
    }

    /// An update for each client that brought something since the last ones, with its name.
    pub fn cut(&mut self) -> Vec<(String, Update, Vec<u8>)> {
        let cut = |(name, member): (&String, &mut Member)| {
            if let Some(odd) = member.look() {
                log::error!(
                    "the client {name} reports signatures that are made up: {odd}. Its limits hold; bulkmark client remove \
                     --with-counts {name} takes back what it reported"
                );
            }
            member.cut().map(|(update, bytes)| (name.clone(), update, bytes))
        };
        self.members.iter_mut().filter_map(cut).collect()
    }

    /// Takes all back that a client brought: the update that says so. None when there is no such client.
    pub fn withdraw(&mut self, name: &str) -> Option<(Update, Vec<u8>)> {
        self.members.remove(name).map(|mut member| member.withdraw())
    }

    /// All members under new origins and with empty layers. Returns, for each, what it was before.
    pub fn renew(&mut self, mut new: impl FnMut() -> Origin) -> Vec<(String, Member)> {
        let old = std::mem::take(&mut self.members);
        for (name, member) in &old {
            let former = member.former.iter().copied().chain([member.origin]).collect();
            let fresh = Member::new(new(), Mark::default(), former, member.capacity);
            self.members.insert(name.clone(), fresh);
        }
        old.into_iter().collect()
    }

    /// What each of them brought, by the origin under which it is told; nothing of it stays here.
    pub fn take_layers(&mut self) -> Vec<(Origin, Layer)> {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
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

    /// As the server does it.
    fn report(member: &mut Member, signature: Signature, times: u32, now: u64) -> u32 {
        let window = calendar().at(now);
        let allowed = member.allowed(calendar(), window, (signature, times), MOST, now, |_| 0).unwrap();
        if allowed > 0 {
            member.add(window, signature, allowed, true).unwrap();
        }
        allowed
    }

    fn member() -> Member {
        Member::new(Origin(1), Mark::default(), Vec::new(), settings().capacity.get())
    }

    proptest! {
        /// Whatever signatures a client makes up, on whatever days: no count rises by more than its limit, and no cell either.
        /// The filter is so small that all of them meet.
        #[test]
        fn no_count_rises_above_the_limit(
            reports in prop::collection::vec((any::<[u8; 16]>(), 1u32..9, 0u64..7), 0..300),
            victims in prop::collection::vec(any::<[u8; 16]>(), 20),
        ) {
            let mut member = member();
            let mut days: Vec<_> = reports;
            days.sort_by_key(|&(_, _, day)| day);
            for (bytes, times, day) in days {
                report(&mut member, Signature::from_bytes(bytes), times, NOW + day * DAY);
            }
            let now = NOW + 6 * DAY;
            for victim in victims {
                prop_assert!(member.layer.count(calendar(), Signature::from_bytes(victim), now) <= MOST);
            }
            for cell in 0..settings().capacity.get() as usize * 10 {
                prop_assert!(member.layer.sum(calendar(), calendar().at(now), cell, now) <= MOST);
            }
        }

        /// As long as it has room, a client brings what it may, and its count is never below that.
        #[test]
        fn what_is_allowed_is_counted(
            reports in prop::collection::vec((0u8..6, 1u32..4, 0u64..7), 0..30),
        ) {
            let (mut member, mut brought) = (member(), BTreeMap::<u8, u32>::new());
            let mut days = reports;
            days.sort_by_key(|&(_, _, day)| day);
            for (n, times, day) in days {
                let signature = Signature::from_bytes([n.wrapping_mul(41).wrapping_add(7); 16]);
                *brought.entry(n).or_default() += report(&mut member, signature, times, NOW + day * DAY);
            }
            for (n, brought) in brought {
                let signature = Signature::from_bytes([n.wrapping_mul(41).wrapping_add(7); 16]);
                prop_assert!(member.layer.count(calendar(), signature, NOW + 6 * DAY) >= brought);
            }
        }

        /// What others hear makes the same layer.
        #[test]
        fn updates_tell_all(rounds in prop::collection::vec(prop::collection::vec((any::<[u8; 16]>(), 1u32..9), 0..20), 0..6)) {
            let (mut member, mut held) = (member(), Layer::default());
            for round in rounds {
                for (bytes, times) in round {
                    report(&mut member, Signature::from_bytes(bytes), times, NOW);
                }
                if let Some((update, bytes)) = member.cut() {
                    let read = Update::decode(&bytes).unwrap();
                    prop_assert_eq!(&read, &update);
                    for part in &read.parts {
                        held.window_mut(part.window, part.capacity).unwrap().apply(&part.delta).unwrap();
                    }
                }
            }
            let parts = |layer: &Layer| -> Vec<_> { layer.windows.values().map(|held| held.part(0)).collect() };
            prop_assert_eq!(parts(&held), parts(&member.layer));
        }
    }

    /// In another window the client begins nothing anew; only when a window is over is there room again.
    #[test]
    fn the_limit_is_for_the_whole_retention() {
        let (mut member, signature) = (member(), Signature::from_bytes([7; 16]));
        let days: Vec<_> = (0..8).map(|day| report(&mut member, signature, 3, NOW + day * DAY)).collect();
        assert_eq!(days, [3, 2, 0, 0, 0, 0, 0, 3]);
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
            limited.member("a", Origin(1)).add(window, signature, 1, true).unwrap();
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
