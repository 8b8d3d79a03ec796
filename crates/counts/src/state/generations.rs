// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts in memory: one refined filter for each window of time.

use crate::history::chunks::CHUNK_BLOCKS;
use crate::history::update::Part;
use crate::history::window::{Calendar, Window, capacity_of, share_of};
use crate::settings::Settings;
use crate::state::shares::Share;
use bulkmark_filter::{CELLS_PER_ELEMENT, Counting, Growth, ParameterError, Refined, Scaling};
use bulkmark_types::Signature;

/// The counts of one window.
pub struct Generation {
    /// The window of these reports.
    pub window: Window,
    /// The cells, in slices that join as the window fills.
    pub row: Scaling<Refined>,
    /// For each slice and chunk, whether it has changed since it was written.
    pub dirty: Vec<Vec<bool>>,
    /// For each slice, its growth since the last update.
    growth: Vec<Growth>,
}

impl Generation {
    /// An empty generation, whose first slice is made for `capacity` signatures.
    pub const fn new(window: Window, capacity: u32) -> Self {
        Self {
            window,
            row: Scaling::roomy(capacity, share_of(window)),
            dirty: Vec::new(),
            growth: Vec::new(),
        }
    }

    /// Makes room for a slice that is read from disk.
    pub fn join(&mut self, from: u64, capacity: u32) -> Result<(), ParameterError> {
        self.row.join(from, capacity)?;
        self.watch_new_slices();
        Ok(())
    }

    fn watch_new_slices(&mut self) {
        for slice in self.row.slices().iter().skip(self.dirty.len()) {
            self.dirty.push(vec![false; slice.filter.blocks().div_ceil(CHUNK_BLOCKS)]);
        }
    }

    /// Adds reports. `records` says whether updates need the growth.
    fn add(
        &mut self,
        id: u64,
        signature: Signature,
        times: u32,
        records: bool,
    ) -> Result<(), ParameterError> {
        let growth = &mut self.growth;
        let added = self.row.add_noting(id, signature.bits(), times, |slice, filter, probe| {
            if records {
                growth.resize_with(growth.len().max(slice + 1), Growth::default);
                growth[slice].note(filter, probe, times);
            }
        })?;
        if added.slice >= self.dirty.len() {
            self.watch_new_slices();
            if added.slice > 0 {
                let capacity = self.row.slices()[added.slice].capacity;
                log::info!(
                    "the running generation is at its capacity; a slice for {capacity} more signatures joined it"
                );
            }
        }
        for block in added.blocks {
            self.dirty[added.slice][block / CHUNK_BLOCKS] = true;
        }
        Ok(())
    }
}

/// All generations, and the rules for their beginning and end.
pub struct Generations {
    calendar: Calendar,
    capacity: u32,
    all: Vec<Generation>,
    /// Whether growth is recorded.
    records: bool,
    /// Added reports since growth was taken.
    added: usize,
}

impl Generations {
    /// Without generations.
    pub fn new(settings: &Settings) -> Self {
        Self {
            calendar: Calendar::new(settings),
            capacity: settings.capacity.get(),
            all: Vec::new(),
            records: false,
            added: 0,
        }
    }

    /// Records growth for updates from now on.
    pub const fn record(&mut self) {
        self.records = true;
    }

    /// Takes the growth of the generations since the last call.
    pub fn take_growth(&mut self) -> Vec<Part> {
        self.added = 0;
        let mut parts = Vec::new();
        for Generation { window, row, growth, .. } in &mut self.all {
            let capacity = row.slices().first().map_or(1, |slice| slice.capacity);
            for ((slice, growth), filter) in (0..).zip(growth).zip(row.slices()) {
                let delta = growth.take(&filter.filter);
                if !delta.is_empty() {
                    parts.push(Part { window: *window, capacity, slice, delta });
                }
            }
        }
        parts
    }

    /// The number of blocks that have changed since growth was taken.
    pub fn grown_blocks(&self) -> usize {
        self.all.iter().flat_map(|generation| &generation.growth).map(Growth::len).sum()
    }

    /// The largest possible number of cells that have changed since growth was taken.
    pub const fn grown_cells(&self) -> usize {
        self.added.saturating_mul(CELLS_PER_ELEMENT)
    }

    /// Restores a generation that was read from disk.
    pub fn restore(&mut self, generation: Generation) {
        self.all.push(generation);
    }

    /// The number of reports of `signature` in the windows that count at the time `now`: never too low.
    pub fn count(&self, signature: Signature, now: u64) -> u32 {
        let live = self.all.iter().filter(|g| self.calendar.counts(g.window, signature, now));
        live.map(|g| g.row.count(signature.bits())).fold(0, u32::saturating_add)
    }

    /// Likewise, for each window in which it was reported.
    pub fn count_by_window(&self, signature: Signature, now: u64) -> Vec<Share> {
        let live = self.all.iter().filter(|g| self.calendar.counts(g.window, signature, now));
        let shares = live.map(|g| Share { window: g.window.start, count: g.row.count(signature.bits()) });
        shares.filter(|share| share.count > 0).collect()
    }

    /// The window of a report of `signature` that is made at the time `now`.
    pub const fn window_of(&self, signature: Signature, now: u64) -> Window {
        self.calendar.of(signature, now)
    }

    /// Whether there are user reports.
    pub fn has_user_reports(&self) -> bool {
        self.all.iter().any(|generation| generation.window.is_user_report())
    }

    /// Makes the generation of a window if it is missing. Returns its capacity in signatures then.
    pub fn begin(&mut self, window: Window) -> Option<u32> {
        let missing = !self.all.iter().any(|g| g.window == window);
        missing.then(|| {
            let capacity = capacity_of(window, self.capacity);
            self.all.push(Generation::new(window, capacity));
            capacity
        })
    }

    /// Adds `times` reports of `signature` to `window`, and makes its generation if it is missing. `id` grows with each report: the
    /// sequence number of the change.
    ///
    /// # Errors
    /// If there is not enough memory for another slice; nothing is added then.
    pub fn add(
        &mut self,
        window: Window,
        id: u64,
        signature: Signature,
        times: u32,
    ) -> Result<(), ParameterError> {
        let at = self.all.iter().position(|g| g.window == window).unwrap_or_else(|| {
            self.all.push(Generation::new(window, capacity_of(window, self.capacity)));
            self.all.len() - 1
        });
        self.added += 1;
        self.all[at].add(id, signature, times, self.records)
    }

    /// Prefetches the cells for adding a signature to a window soon.
    pub fn prefetch(&self, window: Window, signature: Signature) {
        if let Some(generation) = self.all.iter().find(|g| g.window == window) {
            generation.row.slices().iter().for_each(|slice| slice.filter.prefetch(signature.bits()));
        }
    }

    /// Removes generations that are no longer needed, and returns their windows.
    ///
    /// Of those that do not count now, the farthest from `now` go first, as long as there are more than the live ones and one: a clock that
    /// jumps ahead for a while makes one generation too many and does not empty the ledger.
    pub fn take_expired(&mut self, now: u64) -> Vec<Window> {
        let calendar = self.calendar;
        let (mut user_reports, mut mail): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.all).into_iter().partition(|g| g.window.is_user_report());
        let mut expired = Vec::new();
        for all in [&mut mail, &mut user_reports] {
            let Some(length) = all.first().map(|g| g.window.length) else { continue };
            all.sort_by_key(|g| (!calendar.is_live(g.window, now), g.window.start.abs_diff(now)));
            let live = all.iter().filter(|g| calendar.is_live(g.window, now)).count();
            let keep = calendar.live(length).saturating_add(1).max(live).min(all.len());
            expired.extend(all.drain(keep..).map(|g| g.window));
        }
        self.all = mail;
        self.all.append(&mut user_reports);
        expired
    }

    /// Removes all generations that are over, and returns their windows. The time must be certain.
    pub fn take_over(&mut self, now: u64) -> Vec<Window> {
        let calendar = self.calendar;
        self.all.extract_if(.., |g| calendar.is_over(g.window, now)).map(|g| g.window).collect()
    }

    /// All generations.
    pub fn iter(&self) -> impl Iterator<Item = &Generation> {
        self.all.iter()
    }

    /// All generations, to mark their chunks as written.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Generation> {
        self.all.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    const DAY: u64 = 86_400;
    const NOW: u64 = 20_000 * DAY + 1000;

    fn generations() -> Generations {
        Generations::new(&Settings { capacity: NonZeroU32::new(1000).unwrap(), ..Settings::default() })
    }

    fn add(generations: &mut Generations, signature: Signature, now: u64) {
        generations.add(generations.window_of(signature, now), now, signature, 1).unwrap();
    }

    #[test]
    fn a_report_counts_for_the_retention() {
        let (mut generations, signature) = (generations(), Signature::from_bytes([7; 16]));
        for day in 0..9 {
            add(&mut generations, signature, NOW + day * DAY);
            assert_eq!(u64::from(generations.count(signature, NOW + day * DAY)), (day + 1).min(7));
        }
        assert_eq!(generations.count(signature, NOW + 14 * DAY), 1);
        assert_eq!(generations.count(signature, NOW + 15 * DAY), 0);
        assert_eq!(generations.take_expired(NOW + 8 * DAY).len(), 1);
        assert_eq!(generations.count(signature, NOW + 8 * DAY), 7);
    }

    #[test]
    fn a_clock_that_jumps_ahead_loses_nothing() {
        let (mut generations, signature) = (generations(), Signature::from_bytes([7; 16]));
        for day in 0..7 {
            add(&mut generations, signature, NOW + day * DAY);
        }
        let far = NOW + 10_000 * DAY;
        add(&mut generations, signature, far);
        assert_eq!(generations.count(signature, far), 1);
        assert!(generations.take_expired(far).is_empty());
        assert_eq!(generations.count(signature, NOW + 6 * DAY), 7);
        add(&mut generations, signature, NOW + 7 * DAY);
        assert_eq!(generations.take_expired(NOW + 7 * DAY).len(), 1, "the one in the future goes");
        assert_eq!(generations.count(signature, NOW + 7 * DAY), 7);
    }
}
