// SPDX-License-Identifier: GPL-3.0-or-later
//! Sorted rows with free places in between: the position of an entry in its row follows from its key.
//!
//! A row is a hash table with open addressing whose hash keeps the order. An entry is at its home, the share of the row that its key is
//! of all keys, or as near to it as there was room, with no free place in between. So a lookup waits for memory once, where separate
//! lists need two waits: one for the list's address and one for its content.
//!
//! The price: up to a fifth of the places are free, and a new entry moves up to 128 others (512 bytes in one piece). Since rows grow by
//! a sixteenth, each entry is moved about 17 times in all, and the addition at which they grow waits for all rows: 20 ms for 20 MB.
//! A reader pays neither: rows do not change between two additions.
//!
//! # The worst case
//!
//! Others choose the keys. So no entry is farther than 2,048 places from its home, and a row that would violate this becomes a
//! [`Crowd`], where each entry takes one step. Rows grow together only when three quarters of all places are used, or half of
//! them while rows are short. So they never have more than about two places for an entry, and growing moves each entry 34 times
//! at most in all. Adversarial entries cost at most 4,200 visited places each in a row that is no crowd yet; and one step and 256 bytes
//! each in one that is. They cost other rows nothing.

use crate::blocks::{Block, Blocks, prefetch};
use crate::crowd::Crowd;
use crate::placed::{HOME_BITS, Placed, VALUE_BITS, VALUE_MAX};
use crate::work::touch;
use std::alloc::{Layout, handle_alloc_error};

/// The content of a place: an entry, little-endian, or [`FREE`].
type Place = [u8; 4];

/// No entry is zero, since no value is.
const FREE: Place = [0; 4];

/// The number of places of a cache line.
const LINE: usize = size_of::<Block>() / size_of::<Place>();

/// Rows grow by one place for each so many.
const GROWTH: usize = 16;

/// The smallest growth in lines; the first few double the rows, so that a filter of one element takes little. Shorter rows become no
/// crowds.
const LEAST_GROWTH: usize = 8;

/// Rows are crowded if at most one place in so many is free. Then they grow as soon as a new entry has no free place within
/// [`REACH`]; before, only if it has none within [`FAR`].
const LEAST_FREE: usize = 8;

/// The number of lines from which rows are long: random entries do not fill any of them while a fourth of all places is free.
const LONG: usize = 64;

/// The largest distance from an entry to a free place in crowded rows.
const REACH: usize = 128;

/// The same in other rows, and from a new entry to its home. Random keys do not place so many entries together while a fourth of all
/// places is free; chosen keys can.
const FAR: usize = 1024;

/// The largest number of places moved or passed on the way to an entry: a new one is no farther than [`FAR`] from its home, and moves at
/// most [`FAR`] others, which stay within [`FAR`] of its place.
const FARTHEST: usize = 2 * FAR;

/// The number of places fetched at once: two lines, with the home of the entry in the middle half.
const WINDOW: usize = 2 * LINE;

/// Rows of the same length, which grow together, so that a row is found without reading anything else first.
pub(crate) struct Rows {
    /// `None` as long as there is no entry.
    lines: Option<Blocks>,
    rows: usize,
    /// The number of homes of a row, so that random entries are equally dense everywhere.
    homes: usize,
    /// The number of lines of a row.
    length: usize,
    used: usize,
    /// Rows that became crowds, by row. Empty if there are none.
    crowds: Vec<Option<Box<Crowd>>>,
    /// Their bytes of memory.
    crowds_memory: usize,
}

const fn entry(place: Place) -> u32 {
    u32::from_le_bytes(place)
}

const fn key(place: Place) -> u32 {
    entry(place) >> VALUE_BITS
}

/// Returns the ideal position of a home's entries in a row of so many places and homes.
const fn home(places: usize, homes: usize, key: u32) -> usize {
    places * (key >> HOME_BITS) as usize / homes
}

/// Returns the position of the first entry whose key is not smaller; or, if its home has none, where it would be.
fn begin(row: &[Place], homes: usize, wanted: u32) -> usize {
    let mut at = home(row.len(), homes, wanted);
    while at > 0 && row[at - 1] != FREE && key(row[at - 1]) >= wanted {
        at -= 1;
    }
    while row.get(at).is_some_and(|&place| place != FREE && key(place) < wanted) {
        at += 1;
    }
    touch(home(row.len(), homes, wanted).abs_diff(at) + 1);
    at
}

/// Returns the entries in these places.
fn placed(places: &[Place]) -> impl Iterator<Item = Placed> {
    let used = places.iter().filter(|&&place| place != FREE);
    used.map(|&place| (key(place), entry(place) & VALUE_MAX))
}

/// Returns the start of a key's window, which is fetched at once. `None` in shorter rows.
fn window(places: usize, homes: usize, key: u32) -> Option<usize> {
    let last = places.checked_sub(WINDOW)?;
    Some(last.min(home(places, homes, key).saturating_sub(WINDOW / 4) / LINE * LINE))
}

/// Returns the positions of the entries of these keys of one home.
#[inline]
fn locate<const N: usize>(row: &[Place], homes: usize, keys: [u32; N]) -> [Option<usize>; N] {
    let mut found = [None; N];
    if let (Some(&least), Some(&most)) = (keys.iter().min(), keys.iter().max()) {
        let start = begin(row, homes, least);
        let near = row[start..].iter().take_while(|&&place| place != FREE && key(place) <= most);
        for (at, &place) in (start..).zip(near) {
            for (found, &wanted) in found.iter_mut().zip(&keys) {
                if key(place) == wanted {
                    *found = Some(at);
                }
            }
        }
    }
    found
}

fn has_free(line: &[Place]) -> bool {
    // Without an early exit the compiler uses a few vector instructions.
    line.iter().fold(false, |free, &place| free | (place == FREE))
}

/// Returns the number of places before the first free one.
fn free_after(places: &[Place]) -> Option<usize> {
    let line = places.chunks(LINE).position(has_free)? * LINE;
    Some(line + places[line..].iter().position(|&place| place == FREE)?)
}

/// Returns the number of places after the last free one.
fn free_before(places: &[Place]) -> Option<usize> {
    let line = places.rchunks(LINE).position(has_free)? * LINE;
    let places = &places[..places.len() - line];
    Some(line + places.iter().rev().position(|&place| place == FREE)?)
}

/// Inserts an entry before the one at `at`, and moves the entries between there and the nearest free place. Returns false if there is
/// none within `reach`.
fn insert(row: &mut [Place], at: usize, new: Place, reach: usize) -> bool {
    let after = free_after(&row[at..row.len().min(at.saturating_add(reach))]);
    let nearer = after.unwrap_or(reach);
    touch(nearer.min(row.len()) * 2);
    match (free_before(&row[at.saturating_sub(nearer)..at]), after) {
        (Some(moved), _) => {
            row.copy_within(at - moved..at, at - moved - 1);
            row[at - 1] = new;
        }
        (None, Some(moved)) => {
            row.copy_within(at..at + moved, at + 1);
            row[at] = new;
        }
        (None, None) => return false,
    }
    true
}

/// Spreads the entries of a row over a longer, empty one. Returns the largest distance of an entry from its home.
fn spread(old: &[Place], new: &mut [Place], homes: usize) -> usize {
    touch(old.len());
    let mut left = old.iter().filter(|&&place| place != FREE).count();
    let (mut next, mut farthest) = (0, 0);
    for &place in old {
        if left == 0 {
            break;
        }
        let home = home(new.len(), homes, key(place));
        let at = home.max(next).min(new.len() - left);
        // A free place is written, too, and overwritten by the next entry: an unpredictable jump would take longer.
        new[at] = place;
        let moved = usize::from(place != FREE);
        farthest = farthest.max(home.abs_diff(at) * moved);
        (next, left) = (at + moved, left - moved);
    }
    farthest
}

impl Rows {
    /// Returns this number of rows, with at most [`HOMES`](crate::placed::HOMES) homes each.
    pub(crate) const fn new(rows: usize, homes: usize) -> Self {
        Self { lines: None, rows, homes, length: 0, used: 0, crowds: Vec::new(), crowds_memory: 0 }
    }

    /// Returns the places of a row.
    #[inline]
    fn row(&self, row: usize) -> &[Place] {
        let lines = self.lines.as_deref().unwrap_or_default();
        lines[row * self.length..][..self.length].as_flattened().as_chunks().0
    }

    #[inline]
    fn row_mut(&mut self, row: usize) -> &mut [Place] {
        let lines = self.lines.as_deref_mut().unwrap_or_default();
        lines[row * self.length..][..self.length].as_flattened_mut().as_chunks_mut().0
    }

    /// Returns the crowd that replaced a row, if any.
    #[inline]
    fn crowd(&self, row: usize) -> Option<&Crowd> {
        self.crowds.get(row)?.as_deref()
    }

    /// Prefetches the window of a key.
    #[inline]
    pub(crate) fn prefetch(&self, row: usize, key: u32) {
        let row = self.row(row);
        if let Some(start) = window(row.len(), self.homes, key) {
            [start, start + LINE].iter().for_each(|&at| prefetch(&row[at]));
        }
    }

    /// Returns the values of these keys of one home; zero without an entry.
    #[inline]
    pub(crate) fn get<const N: usize>(&self, row: usize, keys: [u32; N]) -> [u32; N] {
        if let Some(crowd) = self.crowd(row) {
            return keys.map(|key| crowd.get(key));
        }
        let places = self.row(row);
        locate(places, self.homes, keys).map(|at| at.map_or(0, |at| entry(places[at]) & VALUE_MAX))
    }

    /// Raises these keys of one home to `target` of their values, if all have an entry; larger old values stay. Returns `None` and changes
    /// nothing if a key has no entry in its row or there is no target.
    #[inline]
    pub(crate) fn raise_all<const N: usize>(
        &mut self,
        row: usize,
        keys: [u32; N],
        target: impl FnOnce([u32; N]) -> Option<u32>,
    ) -> Option<u32> {
        if let Some(crowd) = self.crowds.get_mut(row).and_then(Option::as_mut) {
            let values = keys.map(|key| crowd.get(key));
            let target = if values.contains(&0) { None } else { target(values) }?;
            keys.iter().for_each(|&key| crowd.raise(key, target));
            return Some(target);
        }
        let homes = self.homes;
        let row = self.row_mut(row);
        let mut places = [0; N];
        for (place, found) in places.iter_mut().zip(locate(row, homes, keys)) {
            *place = found?;
        }
        let target = target(places.map(|at| entry(row[at]) & VALUE_MAX))?;
        for (at, key) in places.into_iter().zip(keys) {
            row[at] = entry(row[at]).max(key << VALUE_BITS | target).to_le_bytes();
        }
        Some(target)
    }

    /// Raises a key to a value from 1 to [`VALUE_MAX`]; a larger old value stays.
    pub(crate) fn raise(&mut self, row: usize, wanted: u32, value: u32) {
        let new = wanted << VALUE_BITS | value;
        loop {
            if let Some(crowd) = self.crowds.get_mut(row).and_then(Option::as_mut) {
                let before = crowd.memory();
                crowd.raise(wanted, value);
                self.crowds_memory += crowd.memory() - before;
                return;
            }
            let places = self.rows * self.length * LINE;
            let crowded = places - self.used <= places / LEAST_FREE;
            let homes = self.homes;
            let in_row = self.row_mut(row);
            let at = begin(in_row, homes, wanted);
            if let Some(place) = in_row.get_mut(at).filter(|place| **place != FREE && key(**place) == wanted)
            {
                // Of two entries with the same key the larger one has the larger value.
                *place = new.max(entry(*place)).to_le_bytes();
                return;
            }
            let near = at.abs_diff(home(in_row.len(), homes, wanted)) <= FAR;
            if near && insert(in_row, at, new.to_le_bytes(), if crowded { REACH } else { FAR }) {
                self.used += 1;
                return;
            }
            // Half of the places of short rows, and three quarters of long ones.
            let many = if self.length < LONG { places / 2 } else { places / 4 * 3 };
            if crowded || self.used >= many || self.length < LEAST_GROWTH {
                self.grow();
            } else {
                self.crowd_row(row);
            }
        }
    }

    /// Makes all rows longer.
    fn grow(&mut self) {
        let length = self.length + (self.length / GROWTH).max(LEAST_GROWTH.min(self.length)).max(1);
        let lines = self.rows * length;
        let Ok(mut longer) = Blocks::dense(lines) else {
            handle_alloc_error(Layout::array::<Block>(lines).unwrap_or(Layout::new::<Block>()));
        };
        let mut crowds = Vec::new();
        for (row, new) in longer.chunks_exact_mut(length).enumerate() {
            if spread(self.row(row), new.as_flattened_mut().as_chunks_mut().0, self.homes) > FARTHEST {
                crowds.push(row);
            }
        }
        (self.lines, self.length) = (Some(longer), length);
        crowds.into_iter().for_each(|row| self.crowd_row(row));
    }

    /// Replaces a row by a crowd.
    fn crowd_row(&mut self, row: usize) {
        self.crowds.resize_with(self.rows, || None);
        let places = self.row_mut(row);
        let crowd = Crowd::of(placed(places));
        let used = places.iter().filter(|&&place| place != FREE).count();
        places.fill(FREE);
        self.used -= used;
        self.crowds_memory += crowd.memory();
        self.crowds[row] = Some(Box::new(crowd));
    }

    /// Returns the keys of a row from `first` on, with their values, ascending.
    pub(crate) fn entries(&self, row: usize, first: u32) -> impl Iterator<Item = Placed> {
        let places = self.row(row);
        let crowd = self.crowd(row).into_iter().flat_map(move |crowd| crowd.entries(first));
        placed(&places[begin(places, self.homes, first)..]).chain(crowd)
    }

    /// Returns the bytes of memory, free places included.
    pub(crate) fn memory(&self) -> usize {
        self.rows * self.length * size_of::<Block>()
            + self.crowds.capacity() * size_of::<Option<Box<Crowd>>>()
            + self.crowds_memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placed::HOMES;
    use crate::work::touched;

    const ROWS: usize = 32;

    /// The row and key of the entry with this number.
    type Aim = fn(u32) -> (usize, u32);

    fn entries(rows: &Rows) -> usize {
        (0..ROWS).map(|row| rows.entries(row, 0).count()).sum()
    }

    /// Returns a random row and key.
    fn anywhere(random: &mut u64, rows: usize) -> (usize, u32) {
        *random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let mixed = (*random ^ *random >> 29).wrapping_mul(0x94D0_49BB_1331_11EB) >> 20;
        ((mixed >> 17) as usize % rows, (mixed & 0x1_FFFF) as u32)
    }

    /// Entries that are spread as signatures are leave at most a fifth of the places free, at any size. On the way an addition reads fewer
    /// than 200 places, and makes 17 moves while rows grow.
    #[test]
    fn places_are_used() {
        let mut rows = Rows::new(ROWS, HOMES);
        let mut random = 1u64;
        let (mut moved, mut near) = (0, 0);
        for n in 1..=40_000 {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let [.., a, b, c, d] = random.to_le_bytes();
            let home = u32::from_le_bytes([a, b, 0, 0]) % 1024;
            // Three entries of one home, as an element has them.
            let first = (home << HOME_BITS) + u32::from(d) % 125;
            let length = rows.length;
            let ((), cost) =
                touched(|| (first..first + 3).for_each(|key| rows.raise(usize::from(c) % ROWS, key, 1)));
            *if rows.length > length { &mut moved } else { &mut near } += cost;
            if n % 10_000 == 0 {
                let entries = entries(&rows);
                let share = (entries * size_of::<Place>()) as f64 / rows.memory() as f64;
                assert!(share > 0.8, "{share} of the places are used after {n}");
                assert!(moved / entries <= 17, "{moved} moves of {entries} entries as rows grew");
                assert!(near / entries < 200, "{near} places for {entries} entries, without those moves");
            }
        }
    }

    /// The key zero differs from the zeros of a free place.
    #[test]
    fn a_free_place_is_no_entry() {
        let mut rows = Rows::new(ROWS, HOMES);
        for key in [1, 2] {
            rows.raise(0, key, 5);
        }
        assert_eq!(rows.get(0, [0, 1, 2]), [0, 5, 5]);
        assert_eq!(rows.raise_all(0, [0, 1, 2], |_| Some(9)), None);
        assert_eq!(rows.raise_all(0, [1, 1, 2], |values| (values == [5; 3]).then_some(6)), Some(6));
        assert_eq!(rows.entries(0, 0).collect::<Vec<_>>(), [(1, 6), (2, 6)]);
    }

    /// Entries directed to one row become a crowd, found as before; the other rows stay as short as they are.
    #[test]
    fn a_crowd_takes_its_row() {
        let mut rows = Rows::new(ROWS, HOMES);
        let crowd = (400..440u32).flat_map(|home| (0..128).map(move |key| home << HOME_BITS | key));
        // Those of one kind fill the row, so that the others come between them.
        for even in [true, false] {
            for key in crowd.clone().filter(|key| key.is_multiple_of(2) == even) {
                rows.raise(7, key, 1);
                rows.raise(7, key, key % 1000 + 1);
            }
        }
        for key in crowd.clone().step_by(17) {
            let home = key >> HOME_BITS << HOME_BITS;
            let keys = [0, 1, 60].map(|further| home + (key + further) % 128);
            assert_eq!(rows.get(7, keys), keys.map(|key| key % 1000 + 1));
        }
        assert!(rows.entries(7, 0).eq(crowd.clone().map(|key| (key, key % 1000 + 1))));
        let later = crowd.clone().skip(10 * 128).map(|key| (key, key % 1000 + 1));
        assert!(rows.entries(7, 410 << HOME_BITS).eq(later));
        assert_eq!(rows.get(7, [440 << HOME_BITS]), [0]);
        assert_eq!(rows.get(6, [400 << HOME_BITS]), [0]);
        assert_eq!(rows.raise_all(7, [440 << HOME_BITS, 400 << HOME_BITS], |_| Some(9)), None);
        assert_eq!(rows.raise_all(7, [400 << HOME_BITS], |[value]| Some(value + 3000)), Some(3201));
        assert_eq!(rows.get(7, [400 << HOME_BITS]), [3201]);
        assert_eq!(rows.length, LEAST_GROWTH);
        assert!(rows.memory() < 64 * 1024, "{}", rows.memory());
        // With the pages that the crowd got since it is one.
        assert_eq!(rows.crowd(7).map(Crowd::memory), Some(rows.crowds_memory));
    }

    /// Random entries make no crowd, in a table as large as that of a full filter.
    #[test]
    fn chance_makes_no_crowd() {
        let mut rows = Rows::new(2048, HOMES);
        let mut random = 1u64;
        for n in 0..1_500_000 {
            let (row, key) = anywhere(&mut random, 2048);
            (0..3).for_each(|n| rows.raise(row, (key & !127) | ((key + 41 * n) % 128), 1));
            assert!(rows.crowds.is_empty(), "after {n}, with {} lines in a row", rows.length);
        }
        assert!(rows.used * size_of::<Place>() * 5 > rows.memory() * 4);
    }

    /// However a million entries are directed, each costs a bounded number of places, growth included; and others' entries in other rows
    /// cost no more than before.
    #[test]
    fn aimed_entries_cost_themselves_alone() {
        let aims: [(&str, Aim); 4] = [
            ("homes one after the other", |n| (n as usize >> 17, n & 0x1_FFFF)),
            ("one home in each row, then the next", |n| {
                (n as usize / 128 % ROWS, ((n >> 12) << 7) | (n & 127))
            }),
            ("from the last home down", |n| (n as usize >> 17, 0x1_FFFF - (n & 0x1_FFFF))),
            ("all homes of a row alike", |n| (n as usize >> 17, (n << 7 | (n >> 10 & 127)) & 0x1_FFFF)),
        ];
        for (aim, place) in aims {
            let mut rows = Rows::new(ROWS, HOMES);
            // Honest entries, in the rows behind: so many that rows become full now and then.
            let mut random = 1u64;
            let mut honest = |rows: &mut Rows| {
                let (row, key) = anywhere(&mut random, ROWS / 2);
                (0..3).for_each(|n| rows.raise(ROWS / 2 + row, (key & !127) | ((key + 41 * n) % 128), 1));
            };
            let ((), alone) = touched(|| (0..5000).for_each(|_| honest(&mut rows)));
            let (mut aimed, mut beside) = (0, 0);
            for n in 0..1 << 20 {
                let (row, key) = place(n);
                aimed += touched(|| rows.raise(row, key, n % 1000 + 1)).1;
                if n % 128 == 0 {
                    beside += touched(|| honest(&mut rows)).1;
                }
            }
            assert!(aimed < 24 << 20, "{aim}: {aimed} places for a million");
            assert!(beside / 8192 <= 4 * alone / 5000, "{aim}: {beside} beside, {alone} for 5,000 alone");
            for n in (0..1 << 20).step_by(1001) {
                let (row, key) = place(n);
                assert!(rows.get(row, [key])[0] > n % 1000, "{aim}: {n}");
            }
            assert!(rows.memory() < ROWS * HOMES * (1 << HOME_BITS) * 9 / 4, "{aim}: {}", rows.memory());
        }
    }
}
