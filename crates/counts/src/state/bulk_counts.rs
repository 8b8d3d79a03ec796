// SPDX-License-Identifier: GPL-3.0-or-later
//! A list of bulk: the counts of frequent signatures, in eight bytes for each signature and window. Counts are merged by their maximum, so
//! repeated or late ones change nothing.

use crate::history::bulk::{Print, Section};
use crate::history::window::{Calendar, Window};
use crate::settings::Settings;
use crate::state::shares::Share;
use bulkmark_types::{Signature, UNIT};
use std::collections::{BTreeMap, HashMap};

/// The parts of a window, by the first bits of a print. A part is written as one row, and moved when a new print falls into it: 16 kB in a
/// window with two million signatures.
pub const PARTS: usize = 1 << PART_BITS;
const PART_BITS: u32 = 10;

/// The bits of a count beside its print; their highest number says that the count is stored elsewhere.
const COUNT_BITS: u32 = 16;
const ELSEWHERE: u64 = (1 << COUNT_BITS) - 1;

/// Up to this multiple of the bound every rise is announced; beyond it, only growth by one part in `STEP`. So holders have exact counts
/// wherever a threshold may be, and above it counts that are less than a sixteenth too low, for a fraction of the notes.
const EXACT: u32 = 16;
const STEP: u32 = 16;

/// A part has room for one in so many more, so that it does not move for each new print. Moving it costs less than inserting the print.
const SLACK: usize = 64;

/// Prints with their counts, in order.
#[derive(Default)]
struct Bucket {
    slots: Vec<u64>,
    is_dirty: bool,
}

/// The list of one window.
struct BulkWindow {
    parts: Vec<Bucket>,
    /// Counts that do not fit beside their prints.
    large: HashMap<u64, u32>,
    len: usize,
}

impl BulkWindow {
    fn new() -> Self {
        let parts = std::iter::repeat_with(Bucket::default).take(PARTS).collect();
        Self { parts, large: HashMap::new(), len: 0 }
    }

    fn count(&self, print: Print) -> u32 {
        let slots = &self.parts[part_of(print)].slots;
        slots.binary_search_by_key(&print.bits(), print_in).map_or(0, |at| self.count_in(slots[at]))
    }

    fn count_in(&self, slot: u64) -> u32 {
        match slot & ELSEWHERE {
            ELSEWHERE => self.large.get(&print_in(&slot)).copied().unwrap_or(u32::MAX),
            count => u32::try_from(count).unwrap_or(u32::MAX),
        }
    }

    /// The slot of a print with this count, which is stored separately if it does not fit.
    fn slot(&mut self, print: Print, count: u32) -> u64 {
        let mut beside = u64::from(count);
        if beside >= ELSEWHERE {
            self.large.insert(print.bits(), count);
            beside = ELSEWHERE;
        }
        print.bits() << COUNT_BITS | beside
    }

    /// Raises the counts of prints that all belong to this part; at most `most` new ones are added. Calls `rose` for those that rose.
    /// Returns the number of prints without room.
    fn raise(
        &mut self,
        at: usize,
        entries: &[(Print, u32)],
        most: usize,
        rose: &mut impl FnMut(Print, u32),
    ) -> usize {
        let (mut new, mut left_out, mut is_dirty) = (Vec::new(), 0, false);
        for &(print, count) in entries {
            match self.parts[at].slots.binary_search_by_key(&print.bits(), print_in) {
                Ok(i) if self.count_in(self.parts[at].slots[i]) < count => {
                    self.parts[at].slots[i] = self.slot(print, count);
                }
                Ok(_) => continue,
                Err(_) if new.len() < most => new.push(self.slot(print, count)),
                Err(_) => {
                    left_out += 1;
                    continue;
                }
            }
            is_dirty = true;
            rose(print, count);
        }
        self.len += new.len();
        let part = &mut self.parts[at];
        part.is_dirty |= is_dirty;
        if !new.is_empty() {
            if part.slots.capacity() - part.slots.len() < new.len() {
                part.slots.reserve_exact(new.len() + part.slots.len() / SLACK);
            }
            part.slots.append(&mut new);
            // Two sorted runs: the sort's best case.
            part.slots.sort();
        }
        left_out
    }

    /// Frees unused memory.
    fn shrink(&mut self) {
        self.parts.iter_mut().for_each(|part| part.slots.shrink_to_fit());
    }

    fn memory(&self) -> usize {
        let slots: usize = self.parts.iter().map(|part| part.slots.capacity() * size_of::<u64>()).sum();
        slots + PARTS * size_of::<Bucket>() + self.large.capacity() * size_of::<(u64, u32)>()
    }
}

const fn print_in(slot: &u64) -> u64 {
    *slot >> COUNT_BITS
}

fn part_of(print: Print) -> usize {
    usize::try_from(print.bits() >> (crate::history::bulk::PRINT_BITS - PART_BITS)).unwrap_or(0)
}

/// The list, by window.
pub struct BulkCounts {
    calendar: Calendar,
    /// The most signatures of a window.
    most: usize,
    windows: BTreeMap<Window, BulkWindow>,
    /// Signatures without room.
    left_out: u64,
}

impl BulkCounts {
    /// An empty list. A window holds as many signatures as half of the capacity: of real mail a tenth is bulk.
    pub fn new(settings: &Settings) -> Self {
        let most = settings.capacity.get().div_ceil(2) as usize;
        // All signatures of a small ledger may be bulk.
        let most = most.max(LEAST_ROOM);
        Self { calendar: Calendar::new(settings), most, windows: BTreeMap::new(), left_out: 0 }
    }

    /// The count of a signature on the list, in windows that count at the time `now`.
    pub fn count(&self, signature: Signature, now: u64) -> u32 {
        self.by_window(signature, now).fold(0, |sum, share| sum.saturating_add(share.count))
    }

    /// Likewise, by window.
    pub fn by_window(&self, signature: Signature, now: u64) -> impl Iterator<Item = Share> {
        let print = Print::of(signature);
        let live =
            self.windows.iter().filter(move |(window, _)| self.calendar.counts(**window, signature, now));
        let shares = live.map(move |(window, held)| Share { window: window.start, count: held.count(print) });
        shares.filter(|share| share.count > 0)
    }

    /// Whether there are user reports.
    pub fn has_user_reports(&self) -> bool {
        self.windows.keys().any(|window| window.is_user_report())
    }

    /// Whether this count of a signature in a window must be announced to holders of the same list, which has this bound.
    pub fn must_announce(&self, window: Window, print: Print, count: u32, bound: u32) -> bool {
        let known = self.windows.get(&window).map_or(0, |held| held.count(print));
        // User reports count in parts of a report, and thresholds are a handful of reports.
        let bound = if window.is_user_report() { bound.max(UNIT) } else { bound };
        let least = if known < bound.saturating_mul(EXACT) { 1 } else { known.div_ceil(STEP) };
        count.saturating_sub(known) >= least
    }

    /// Raises the counts of a section that are higher than known ones, and calls `rose` for them. Windows that are over or impossible are
    /// ignored.
    pub fn raise(&mut self, section: &Section, now: u64, mut rose: impl FnMut(Window, Print, u32)) {
        let window = section.window;
        if section.entries.is_empty() || !self.admits(window, now) {
            return;
        }
        let most = self.most;
        if !self.windows.contains_key(&window) {
            // Earlier windows will hardly grow any more.
            self.windows.values_mut().for_each(BulkWindow::shrink);
        }
        let held = self.windows.entry(window).or_insert_with(BulkWindow::new);
        for entries in section.entries.chunk_by(|(a, _), (b, _)| part_of(*a) == part_of(*b)) {
            let room = most.saturating_sub(held.len);
            let mut rose = |print, count| rose(window, print, count);
            self.left_out += held.raise(part_of(entries[0].0), entries, room, &mut rose) as u64;
        }
    }

    fn admits(&self, window: Window, now: u64) -> bool {
        self.calendar.check_length(window.length).is_ok()
            && !self.calendar.is_over(window, now)
            && (self.windows.contains_key(&window)
                || self.windows.len() < self.calendar.most()
                    && self.calendar.admit(window, self.windows.keys().copied(), now).is_ok())
    }

    /// Removes the windows that are over, and returns them.
    pub fn take_expired(&mut self, now: u64) -> Vec<Window> {
        let over = self.calendar.over(self.windows.keys().copied(), now);
        self.windows.retain(|window, _| !over.contains(window));
        over
    }

    /// The number of signatures, one for each window.
    pub fn signatures(&self) -> usize {
        self.windows.values().map(|held| held.len).sum()
    }

    /// Signatures that found no room since the start.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.windows.values().map(BulkWindow::memory).sum()
    }

    /// The parts that have changed since they were written, each with its number in its window.
    pub fn dirty(&self) -> impl Iterator<Item = (u32, Section)> {
        self.windows.iter().flat_map(|(&window, held)| {
            let parts = (0..).zip(&held.parts).filter(|(_, part)| part.is_dirty);
            parts.map(move |(number, part)| {
                let entry = |&slot: &u64| Some((Print::from_bits(print_in(&slot))?, held.count_in(slot)));
                (number, Section { window, entries: part.slots.iter().filter_map(entry).collect() })
            })
        })
    }

    /// Whether anything has changed since it was written.
    pub fn is_dirty(&self) -> bool {
        self.windows.values().any(|held| held.parts.iter().any(|part| part.is_dirty))
    }

    /// Marks everything as written.
    pub fn mark_clean(&mut self) {
        let parts = self.windows.values_mut().flat_map(|held| &mut held.parts);
        parts.for_each(|part| part.is_dirty = false);
    }
}

/// The fewest signatures that a window has room for, in half a megabyte.
const LEAST_ROOM: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use proptest::prelude::*;

    const DAY: u64 = 86_400;
    const NOW: u64 = 20_000 * DAY + 1000;

    fn signature(n: u16) -> Signature {
        let mixed = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        Signature::from_bytes((mixed ^ mixed >> 61).to_le_bytes())
    }

    fn section(day: u64, counts: &[(u16, u32)]) -> Section {
        let sorted: BTreeMap<_, _> =
            counts.iter().map(|&(n, count)| (Print::of(signature(n)), count)).collect();
        Section {
            window: Window { start: NOW / DAY * DAY - day * DAY, length: DAY },
            entries: sorted.into_iter().collect(),
        }
    }

    fn held(sections: &[Section]) -> BulkCounts {
        let mut held = BulkCounts::new(&Settings::default());
        sections.iter().for_each(|section| held.raise(section, NOW, |_, _, _| ()));
        held
    }

    proptest! {
        /// Sections in any order, some of them twice: each count is the highest that was announced, window by window.
        #[test]
        fn the_maximum_in_any_order(
            announced in prop::collection::vec((0u64..3, prop::collection::vec((0u16..40, 1u32..100_000), 0..20)), 0..20),
            seed in any::<prop::sample::Index>(),
        ) {
            let sections: Vec<_> = announced.iter().map(|(day, counts)| section(*day, counts)).collect();
            let mut other = sections.clone();
            other.reverse();
            if !other.is_empty() {
                let at = seed.index(other.len());
                other.rotate_left(at);
                other.extend_from_slice(&sections[..at]);
            }
            let (one, two) = (held(&sections), held(&other));
            for n in 0..40 {
                let print = Print::of(signature(n));
                for day in 0..3 {
                    let of_day = sections.iter().filter(|s| s.window == section(day, &[]).window);
                    let counts = of_day.flat_map(|s| &s.entries).filter(|(p, _)| *p == print);
                    let highest = counts.map(|&(_, count)| count).max().unwrap_or(0);
                    let found = |held: &BulkCounts| {
                        let start = section(day, &[]).window.start;
                        held.by_window(signature(n), NOW).filter(|s| s.window == start).map(|s| s.count).sum::<u32>()
                    };
                    prop_assert_eq!((found(&one), found(&two)), (highest, highest));
                }
            }
        }
    }

    /// A count falls when its windows are over, and is exact, however large.
    #[test]
    fn counts_leave_with_their_windows() {
        let mut held = held(&[section(6, &[(1, 70_000)]), section(0, &[(1, 12), (2, 65_535)])]);
        assert_eq!([1, 2, 3].map(|n| held.count(signature(n), NOW)), [70_012, 65_535, 0]);
        assert_eq!(held.count(signature(1), NOW + DAY), 12);
        assert_eq!(
            (held.take_expired(NOW + 9 * DAY).len(), held.signatures()),
            (0, 3),
            "a clock that jumps empties nothing"
        );
    }

    /// Each rise is announced up to sixteen times the bound, so no lower threshold is passed unnoticed. Beyond it, the held count is less
    /// than a sixteenth too low, in whatever steps it grew.
    #[test]
    fn counts_are_exact_up_to_the_highest_threshold() {
        for step in [1, 7, 150, 1000] {
            let (mut held, mut announced) = (held(&[]), 0);
            let of = |count| section(0, &[(1, count)]);
            for count in (10..20_000).step_by(step) {
                if held.must_announce(of(0).window, Print::of(signature(1)), count, 10) {
                    held.raise(&of(count), NOW, |_, _, _| announced += 1);
                }
                let known = held.count(signature(1), NOW);
                assert!(known == count || known >= 160 && count - known <= known / 16, "{known} of {count}");
            }
            assert!(announced < 260, "{announced} of {}", 20_000 / step);
        }
    }

    /// The number of signatures in a window is bounded, and their counts still rise.
    #[test]
    fn a_window_is_bounded() {
        let settings = Settings { capacity: 1.try_into().unwrap(), ..Settings::default() };
        let mut held = BulkCounts::new(&settings);
        held.most = 3;
        let all: Vec<_> = (0..10).map(|n| (n, 12)).collect();
        held.raise(&section(0, &all), NOW, |_, _, _| ());
        assert_eq!((held.signatures(), held.left_out()), (3, 7));
        let before: Vec<_> = (0..10).filter(|&n| held.count(signature(n), NOW) > 0).collect();
        held.raise(&section(0, &all.iter().map(|&(n, _)| (n, 13)).collect::<Vec<_>>()), NOW, |_, _, _| ());
        assert!(before.iter().all(|&n| held.count(signature(n), NOW) == 13));
    }
}
