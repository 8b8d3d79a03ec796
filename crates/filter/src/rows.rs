// SPDX-License-Identifier: GPL-3.0-or-later
//! Sorted rows with free places between: where in its row an entry is follows from its key.
//!
//! A row is a hash table with open addressing whose hash keeps the order. What is looked for is at its home, the share of the
//! row that its key is of all keys, or as near to it as there was room, with no free place between. So it takes one wait for
//! memory, where a list of its own length takes two: one for its address and one for what is in it.
//!
//! The price: up to a fifth of the places are free, and a new entry moves up to 128 others (512 bytes in one piece). Since rows grow by
//! a sixteenth, each entry is moved some 17 times in all, and the addition at which they grow waits for all rows: 20 ms for 20 MB.
//! A reader pays neither: rows keep still between two additions.

use crate::blocks::{Block, Blocks, prefetch};
use std::alloc::{Layout, handle_alloc_error};
use std::collections::BTreeMap;
use std::iter::from_fn;
use std::mem::take;

/// Bits of the value in an entry. The key is above them.
pub(crate) const VALUE_BITS: u32 = 15;

/// The largest value of an entry.
pub(crate) const VALUE_MAX: u32 = (1 << VALUE_BITS) - 1;

/// Homes of a row, each for as many keys as there are cells in a block: those are looked for together.
pub(crate) const HOMES: usize = 1 << (u32::BITS - VALUE_BITS - HOME_BITS);

/// Bits of a key that keys of one home differ in.
pub(crate) const HOME_BITS: u32 = 7;

/// What a place holds: an entry, little-endian, or [`FREE`].
type Place = [u8; 4];

/// No entry is zero, since no value is.
const FREE: Place = [0; 4];

/// Places of a cache line.
const LINE: usize = size_of::<Block>() / size_of::<Place>();

/// Rows grow by one place for so many.
const GROWTH: usize = 16;

/// Lines by which they grow at least.
const LEAST_GROWTH: usize = 8;

/// Rows are crowded when no more than one place in so many is free. Then they grow as soon as a new entry has no free place
/// within [`REACH`]; before, only when its row is full.
const LEAST_FREE: usize = 8;

/// Lines up to which rows grow when one of them is full, whatever the others hold: a fourth of the blocks that they stand for.
/// Longer ones grow only when they have entries for half of their places. So entries that somebody directs to one row do not
/// make thousands of rows as long as it.
const FREELY: usize = 256;

/// Places from an entry to a free one at most, in rows that are crowded.
const REACH: usize = 128;

/// Places that are fetched at once: two lines, the home of the entry in the middle half.
const WINDOW: usize = 2 * LINE;

/// Rows of the same length, which grow together, so that a row is found without reading anything first.
pub(crate) struct Rows {
    /// None as long as there is no entry.
    lines: Option<Blocks>,
    rows: usize,
    /// Lines of a row.
    length: usize,
    used: usize,
    /// By row and key, what has no room in its row while the rows must not grow.
    beside: BTreeMap<(usize, u32), u32>,
}

const fn entry(place: Place) -> u32 {
    u32::from_le_bytes(place)
}

const fn key(place: Place) -> u32 {
    entry(place) >> VALUE_BITS
}

/// Where in a row of so many places the entries of a key's home would best be.
const fn home(places: usize, key: u32) -> usize {
    places * (key >> HOME_BITS) as usize / HOMES
}

/// Where the first entry is whose key is not smaller; or, when none of that home is, where it would be.
fn begin(row: &[Place], wanted: u32) -> usize {
    let mut at = home(row.len(), wanted);
    while at > 0 && row[at - 1] != FREE && key(row[at - 1]) >= wanted {
        at -= 1;
    }
    while row.get(at).is_some_and(|&place| place != FREE && key(place) < wanted) {
        at += 1;
    }
    at
}

/// Where the window of a key begins, which is fetched at once. None in rows that are shorter.
fn window(places: usize, key: u32) -> Option<usize> {
    let last = places.checked_sub(WINDOW)?;
    Some(last.min(home(places, key).saturating_sub(WINDOW / 4) / LINE * LINE))
}

/// Where these keys of one home have their entries.
#[inline]
fn locate<const N: usize>(row: &[Place], keys: [u32; N]) -> [Option<usize>; N] {
    let mut found = [None; N];
    if let (Some(&least), Some(&most)) = (keys.iter().min(), keys.iter().max()) {
        let start = begin(row, least);
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
    // No early end: so it is a few instructions on vectors.
    line.iter().fold(false, |free, &place| free | (place == FREE))
}

/// How many places there are before the first free one.
fn free_after(places: &[Place]) -> Option<usize> {
    let line = places.chunks(LINE).position(has_free)? * LINE;
    Some(line + places[line..].iter().position(|&place| place == FREE)?)
}

/// How many places there are behind the last free one.
fn free_before(places: &[Place]) -> Option<usize> {
    let line = places.rchunks(LINE).position(has_free)? * LINE;
    let places = &places[..places.len() - line];
    Some(line + places.iter().rev().position(|&place| place == FREE)?)
}

/// Puts an entry before the one at `at`, and moves what is between there and the nearest free place. False when there is none
/// within `reach`.
fn insert(row: &mut [Place], at: usize, new: Place, reach: usize) -> bool {
    let after = free_after(&row[at..row.len().min(at.saturating_add(reach))]);
    let nearer = after.unwrap_or(reach);
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

/// Spreads the entries of a row over a longer one that is free.
fn spread(old: &[Place], new: &mut [Place]) {
    let mut left = old.iter().filter(|&&place| place != FREE).count();
    let mut next = 0;
    for &place in old {
        if left == 0 {
            break;
        }
        let at = home(new.len(), key(place)).max(next).min(new.len() - left);
        // What is free is written, too, and then written over: a jump that nobody can foresee would take longer.
        new[at] = place;
        let moved = usize::from(place != FREE);
        (next, left) = (at + moved, left - moved);
    }
}

impl Rows {
    pub(crate) const fn new(rows: usize) -> Self {
        Self { lines: None, rows, length: 0, used: 0, beside: BTreeMap::new() }
    }

    /// The places of a row.
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

    /// Asks the processor to fetch the window of a key.
    #[inline]
    pub(crate) fn prefetch(&self, row: usize, key: u32) {
        let row = self.row(row);
        if let Some(start) = window(row.len(), key) {
            [start, start + LINE].iter().for_each(|&at| prefetch(&row[at]));
        }
    }

    /// The values of these keys of one home; zero where there is no entry.
    #[inline]
    pub(crate) fn get<const N: usize>(&self, row: usize, keys: [u32; N]) -> [u32; N] {
        let places = self.row(row);
        let mut values = locate(places, keys).map(|at| at.map_or(0, |at| entry(places[at]) & VALUE_MAX));
        if !self.beside.is_empty() {
            for (value, key) in values.iter_mut().zip(keys) {
                *value = self.beside.get(&(row, key)).copied().unwrap_or(*value);
            }
        }
        values
    }

    /// Raises these keys of one home to what `target` makes of their values, when all have an entry. What is there already
    /// stays. None, and nothing is done, when one has no entry in its row or there is no target.
    #[inline]
    pub(crate) fn raise_all<const N: usize>(
        &mut self,
        row: usize,
        keys: [u32; N],
        target: impl FnOnce([u32; N]) -> Option<u32>,
    ) -> Option<u32> {
        let row = self.row_mut(row);
        let mut places = [0; N];
        for (place, found) in places.iter_mut().zip(locate(row, keys)) {
            *place = found?;
        }
        let target = target(places.map(|at| entry(row[at]) & VALUE_MAX))?;
        for (at, key) in places.into_iter().zip(keys) {
            row[at] = entry(row[at]).max(key << VALUE_BITS | target).to_le_bytes();
        }
        Some(target)
    }

    /// Raises a key to a value from 1 to [`VALUE_MAX`]; what is there already stays.
    pub(crate) fn raise(&mut self, row: usize, wanted: u32, value: u32) {
        if let Some(known) = self.beside.get_mut(&(row, wanted)) {
            *known = value.max(*known);
            return;
        }
        let new = wanted << VALUE_BITS | value;
        loop {
            let places = self.rows * self.length * LINE;
            let crowded = places - self.used <= places / LEAST_FREE;
            let in_row = self.row_mut(row);
            let reach = if crowded { REACH } else { in_row.len() };
            let at = begin(in_row, wanted);
            if let Some(place) = in_row.get_mut(at).filter(|place| **place != FREE && key(**place) == wanted)
            {
                // Of two entries of one key the larger one has the larger value.
                *place = new.max(entry(*place)).to_le_bytes();
                return;
            }
            if insert(in_row, at, new.to_le_bytes(), reach) {
                self.used += 1;
                return;
            }
            if self.length >= FREELY && (self.used + self.beside.len()) * 2 < places {
                self.beside.insert((row, wanted), value);
                return;
            }
            self.grow();
        }
    }

    /// Makes all rows longer, and takes in what now has room.
    fn grow(&mut self) {
        let length = self.length + (self.length / GROWTH).max(LEAST_GROWTH);
        let lines = self.rows * length;
        let Ok(mut longer) = Blocks::dense(lines) else {
            handle_alloc_error(Layout::array::<Block>(lines).unwrap_or(Layout::new::<Block>()));
        };
        for (row, new) in longer.chunks_exact_mut(length).enumerate() {
            spread(self.row(row), new.as_flattened_mut().as_chunks_mut().0);
        }
        (self.lines, self.length) = (Some(longer), length);
        for ((row, key), value) in take(&mut self.beside) {
            self.raise(row, key, value);
        }
    }

    /// The keys of a row from `first` on, with their values, ascending.
    pub(crate) fn entries(&self, row: usize, first: u32) -> impl Iterator<Item = (u32, u32)> {
        let places = self.row(row);
        let in_row = places[begin(places, first)..].iter().filter(|&&place| place != FREE);
        let mut in_row = in_row.map(|&place| (key(place), entry(place) & VALUE_MAX)).peekable();
        let beside = self.beside.range((row, first)..(row + 1, 0));
        let mut beside = beside.map(|(&(_, key), &value)| (key, value)).peekable();
        from_fn(move || match (in_row.peek(), beside.peek()) {
            (Some((a, _)), Some((b, _))) if b < a => beside.next(),
            (None, _) => beside.next(),
            _ => in_row.next(),
        })
    }

    /// Bytes, free places included.
    pub(crate) fn memory(&self) -> usize {
        self.rows * self.length * size_of::<Block>() + self.beside.len() * size_of::<((usize, u32), u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: usize = 32;

    fn entries(rows: &Rows) -> usize {
        (0..ROWS).map(|row| rows.entries(row, 0).count()).sum()
    }

    /// What is spread as signatures are leaves at most a fifth free, at any size.
    #[test]
    fn places_are_used() {
        let mut rows = Rows::new(ROWS);
        let mut random = 1u64;
        for n in 1..=40_000 {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let [.., a, b, c, d] = random.to_le_bytes();
            let home = u32::from_le_bytes([a, b, 0, 0]) % 1024;
            // Three entries of one home, as an element has them.
            let first = (home << HOME_BITS) + u32::from(d) % 125;
            (first..first + 3).for_each(|key| rows.raise(usize::from(c) % ROWS, key, 1));
            if n % 10_000 == 0 {
                let share = (entries(&rows) * size_of::<Place>()) as f64 / rows.memory() as f64;
                assert!(share > 0.8, "{share} of the places are used after {n}");
            }
        }
    }

    /// The key zero is not the zeros of a free place.
    #[test]
    fn a_free_place_is_no_entry() {
        let mut rows = Rows::new(ROWS);
        for key in [1, 2] {
            rows.raise(0, key, 5);
        }
        assert_eq!(rows.get(0, [0, 1, 2]), [0, 5, 5]);
        assert_eq!(rows.raise_all(0, [0, 1, 2], |_| Some(9)), None);
        assert_eq!(rows.raise_all(0, [1, 1, 2], |_| Some(5)), Some(5));
        assert_eq!(rows.entries(0, 0).collect::<Vec<_>>(), [(1, 5), (2, 5)]);
    }

    /// Entries that somebody directs to a row make the others as long as they may be in any full filter, and no longer. All are
    /// found, and are taken in when the rows grow for another reason.
    #[test]
    fn a_crowd_takes_its_row() {
        let mut rows = Rows::new(ROWS);
        let crowd = (400..440u32).flat_map(|home| (0..128).map(move |key| home << HOME_BITS | key));
        let holds = |rows: &Rows| {
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
        };
        // Those of one kind fill the row, so that what is beside it comes between them.
        for even in [true, false] {
            for key in crowd.clone().filter(|key| key.is_multiple_of(2) == even) {
                rows.raise(7, key, 1);
                rows.raise(7, key, key % 1000 + 1);
            }
        }
        assert!(!rows.beside.is_empty());
        assert!(rows.memory() < ROWS * FREELY * size_of::<Block>() * 17 / 16 + crowd.clone().count() * 16);
        holds(&rows);
        for row in (0..ROWS).filter(|row| ![6, 7].contains(row)) {
            (0..6000).for_each(|n| rows.raise(row, n * 21, 1));
        }
        assert!(rows.beside.is_empty());
        holds(&rows);
    }
}
