// SPDX-License-Identifier: GPL-3.0-or-later
//! One limited client: its cells, its remaining allowance, and its updates for others.

use crate::history::update::{Part, Scope, Update};
use crate::history::vector::{Mark, Origin};
use crate::history::window::{Calendar, Window};
use crate::state::anomaly::Anomaly;
use crate::state::bounds::Bounds;
use crate::state::layer::{Layer, LayerWindow};
use bulkmark_filter::{Delta, ParameterError};
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// Reports of one signature.
pub struct Reported {
    /// The window in which it was seen.
    pub window: Window,
    /// The signature.
    pub signature: Signature,
    /// How often it was seen.
    pub times: u32,
}

/// One client.
pub struct Member {
    /// The origin of its updates.
    pub origin: Origin,
    /// The end of its history.
    pub mark: Mark,
    /// The origins that it had before this server began new ones. Their counts are within its limits too.
    pub former: Vec<Origin>,
    /// The size of its filters.
    pub capacity: u32,
    /// The cells that it raised.
    pub layer: Layer,
    /// The growth of its cells since the last update.
    growth: BTreeMap<Window, BTreeMap<usize, u32>>,
    /// The reports that caused the growth.
    since: Vec<Reported>,
    looked_at: Look,
}

/// The last check of a window's cells.
struct Look {
    window: Window,
    /// The window's number of signatures then.
    distinct: u64,
    anomaly: Option<Anomaly>,
}

/// The time of a check is proportional to the cells. So the next one is due when there are a quarter more signatures.
const LOOK_AGAIN: u64 = 4;

impl Member {
    /// A client with an empty layer.
    pub const fn new(origin: Origin, mark: Mark, former: Vec<Origin>, capacity: u32) -> Self {
        let layer = Layer { windows: BTreeMap::new() };
        let looked_at = Look { window: Window { start: 0, length: 0 }, distinct: 0, anomaly: None };
        Self { origin, mark, former, capacity, layer, growth: BTreeMap::new(), since: Vec::new(), looked_at }
    }

    /// The number of the `times` reports that are within its limit: no cell may hold more than `most` over all windows. `elsewhere` returns
    /// the part of a cell outside its layer.
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
                empty = LayerWindow::new(self.capacity)?;
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

    /// Adds reports: raises the smallest cells (H1), each once (H2), and with them the `bounds` over all clients. `records` says whether
    /// the growth is for the next update.
    pub fn add(
        &mut self,
        bounds: &mut Bounds,
        window: Window,
        signature: Signature,
        times: u32,
        records: bool,
    ) -> Result<(), ParameterError> {
        let mut bound = bounds.window_mut(window, self.capacity)?;
        let held = self.layer.window_mut(window, self.capacity)?;
        let count = held.filter.count(signature.bits());
        held.distinct += u64::from(count == 0);
        let target = count.saturating_add(times);
        for cell in held.filter.cells_of(signature.bits()) {
            let by = target.saturating_sub(held.filter.get(cell));
            if by > 0 {
                held.raise(cell, by);
                bound.raise(self.origin, cell, by);
                if records {
                    *self.growth.entry(window).or_default().entry(cell).or_default() += by;
                }
            }
        }
        if records {
            self.since.push(Reported { window, signature, times });
        }
        Ok(())
    }

    pub(crate) fn has_grown(&self) -> bool {
        !self.growth.is_empty()
    }

    /// The number of cells that grew since the last update.
    pub(super) fn grown_cells(&self) -> usize {
        self.growth.values().map(BTreeMap::len).sum()
    }

    /// The deviation of its signatures in the newest window.
    pub const fn anomaly(&self) -> Option<Anomaly> {
        self.looked_at.anomaly
    }

    /// Checks its counts in the newest window. Returns a deviation once.
    pub(super) fn look(&mut self) -> Option<Anomaly> {
        let mut newest = self.layer.windows.iter().rev();
        let (&window, held) = newest.find(|(window, _)| !window.is_user_report())?;
        let before = &self.looked_at;
        if window == before.window && held.distinct < before.distinct + before.distinct.div_ceil(LOOK_AGAIN) {
            return None;
        }
        let (anomaly, had_anomaly) = (held.anomaly(), before.anomaly.is_some());
        self.looked_at = Look { window, distinct: held.distinct, anomaly };
        anomaly.filter(|_| !had_anomaly)
    }

    /// Makes the next update with its bytes; `None` if nothing was added since the last one.
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

    /// Makes the update that withdraws all its counts.
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

    /// Returns its layer as others know it, without the growth since the last update, and the reports that caused the growth.
    pub fn into_published(mut self) -> Result<(Layer, Vec<Reported>), ParameterError> {
        for (window, grown) in &self.growth {
            let Some(held) = self.layer.windows.remove(window) else { continue };
            let published = self.layer.window_mut(*window, self.capacity)?;
            for (cell, value) in held.filter.delta(0..held.filter.blocks()).changes() {
                published.raise(cell, value.saturating_sub(grown.get(&cell).copied().unwrap_or(0)));
            }
        }
        Ok((self.layer, self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
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

    /// Reports as a server does.
    fn report(member: &mut Member, signature: Signature, times: u32, now: u64) -> u32 {
        let window = calendar().at(now);
        let allowed = member.allowed(calendar(), window, (signature, times), MOST, now, |_| 0).unwrap();
        if allowed > 0 {
            member.add(&mut Bounds::default(), window, signature, allowed, true).unwrap();
        }
        allowed
    }

    fn member() -> Member {
        Member::new(Origin(1), Mark::default(), Vec::new(), settings().capacity.get())
    }

    proptest! {
        /// For any made-up signatures on any days, no count and no cell rises by more than the limit. The filter is so small that all of
        /// them collide.
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

        /// Within its limit a client's reports all count, and the count is never lower.
        #[test]
        fn reports_within_the_limit_count(
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

        /// Others get the same layer from the updates.
        #[test]
        fn updates_contain_all_reports(rounds in prop::collection::vec(prop::collection::vec((any::<[u8; 16]>(), 1u32..9), 0..20), 0..6)) {
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

    /// The limit spans all windows: there is room again only when a window is over.
    #[test]
    fn the_limit_is_for_the_whole_retention() {
        let (mut member, signature) = (member(), Signature::from_bytes([7; 16]));
        let days: Vec<_> = (0..8).map(|day| report(&mut member, signature, 3, NOW + day * DAY)).collect();
        assert_eq!(days, [3, 2, 0, 0, 0, 0, 0, 3]);
    }
}
