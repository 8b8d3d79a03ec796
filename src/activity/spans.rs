// SPDX-License-Identifier: GPL-3.0-or-later
//! Counts of the last day, minute by minute, and of the last month, hour by hour.

use std::sync::atomic::{AtomicU64, Ordering};

/// Minutes that are kept: a day.
pub const MINUTES: usize = 24 * 60;

/// Hours that are kept: a month.
pub const HOURS: usize = 31 * 24;

/// A ring of time spans for each of `N` kinds. A cell has the number of its span in the upper half and its count in the lower, so that an old
/// span is never mistaken for the present one, and counting needs no lock against clearing.
#[derive(Debug)]
pub struct Spans<const N: usize> {
    /// Seconds of a span.
    length: u64,
    cells: [Box<[AtomicU64]>; N],
}

/// The count of one span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanCount {
    /// The kind, an index of the ring's kinds.
    pub kind: usize,
    /// The number of the span since 1970.
    pub number: u32,
    /// The count.
    pub count: u32,
}

impl<const N: usize> Spans<N> {
    /// Creates a ring of `most` spans of `length` seconds.
    #[must_use]
    pub fn new(length: u64, most: usize) -> Self {
        let ring = || (0..most).map(|_| AtomicU64::new(0)).collect();
        Self { length, cells: std::array::from_fn(|_| ring()) }
    }

    /// Returns the number of the span at a time, as cells have it.
    fn number(&self, seconds: u64) -> u64 {
        (seconds / self.length) & u64::from(u32::MAX)
    }

    fn cell(&self, kind: usize, number: u64) -> &AtomicU64 {
        let ring = &self.cells[kind];
        &ring[usize::try_from(number % ring.len() as u64).unwrap_or_default()]
    }

    /// Adds `more` to the count of a kind at the time `now`, in seconds since 1970.
    pub fn add(&self, kind: usize, more: u64, now: u64) {
        let number = self.number(now);
        let add = |cell: u64| {
            let count = if cell >> 32 == number { cell & u64::from(u32::MAX) } else { 0 };
            Some(number << 32 | (count + more).min(u32::MAX.into()))
        };
        let _ = self.cell(kind, number).fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Returns the counts of a kind in the last `most` spans; the span of `now` is the last.
    #[must_use]
    pub fn last(&self, kind: usize, most: usize, now: u64) -> Vec<u64> {
        let most = most.min(self.cells[kind].len()) as u64;
        let end = self.number(now) + 1;
        let count = |number: u64| {
            let cell = self.cell(kind, number).load(Ordering::Relaxed);
            if cell >> 32 == number { cell & u64::from(u32::MAX) } else { 0 }
        };
        (end.saturating_sub(most)..end).map(count).collect()
    }

    /// Returns all counts that are not zero.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "each is half of a cell")]
    pub fn kept(&self) -> Vec<SpanCount> {
        let mut kept = Vec::new();
        for (kind, ring) in self.cells.iter().enumerate() {
            let cells = ring.iter().map(|cell| cell.load(Ordering::Relaxed));
            kept.extend(cells.map(|cell| SpanCount {
                kind,
                number: (cell >> 32) as u32,
                count: cell as u32,
            }));
        }
        kept.retain(|span| span.count > 0);
        kept
    }

    /// Restores counts of an earlier daemon that are within the ring and not in the future.
    pub fn restore(&self, kept: &[SpanCount], now: u64) {
        let present = self.number(now);
        for &SpanCount { kind, number, count } in kept {
            let age = present.checked_sub(number.into());
            if kind < N && age.is_some_and(|age| age < self.cells[kind].len() as u64) {
                self.add(kind, count.into(), u64::from(number) * self.length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_kept_and_the_day_before_is_not() {
        let minutes = Spans::<2>::new(60, MINUTES);
        let now = 1_800_000_000;
        minutes.add(0, 3, now);
        minutes.add(0, 1, now + 59);
        minutes.add(1, 7, now + 60);
        assert_eq!(minutes.last(0, 3, now + 60), [0, 4, 0]);
        assert_eq!(minutes.last(1, 3, now + 60), [0, 0, 7]);
        let day = MINUTES as u64 * 60;
        assert_eq!(minutes.last(0, MINUTES, now + day - 60)[0], 4);
        assert!(minutes.last(0, MINUTES, now + day).iter().all(|&count| count == 0));
        minutes.add(0, 1, now + day);
        assert_eq!(minutes.last(0, 1, now + day), [1]);
    }

    #[test]
    fn counts_of_an_earlier_daemon_are_restored() {
        let now = 1_800_000_000;
        let [before, after] = [(); 2].map(|()| Spans::<2>::new(3600, HOURS));
        before.add(0, 3, now - 3600);
        before.add(1, 9, now);
        after.add(1, 1, now);
        let mut kept = before.kept();
        // Spans of a wrong clock and of a past month, and a removed kind.
        let wrong = [(0, u32::MAX), (0, 1), (7, 500_000)];
        kept.extend(wrong.map(|(kind, number)| SpanCount { kind, number, count: 5 }));
        after.restore(&kept, now);
        assert_eq!((after.last(0, 2, now), after.last(1, 2, now)), (vec![3, 0], vec![0, 10]));
        assert_eq!(after.kept().len(), 2);
    }
}
