// SPDX-License-Identifier: GPL-3.0-or-later
//! Counts of the last day, minute by minute.

use std::sync::atomic::{AtomicU64, Ordering};

/// Minutes that are kept: a day.
pub const MINUTES: usize = 24 * 60;

/// A ring of minutes for each of `N` kinds. A cell holds the number of its minute in the upper half and its count in the lower,
/// so that no minute is taken for that of the day before, and whoever counts need not wait for whoever clears.
#[derive(Debug)]
pub struct Minutes<const N: usize>(Box<[[AtomicU64; MINUTES]; N]>);

impl<const N: usize> Default for Minutes<N> {
    fn default() -> Self {
        Self(Box::new(std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)))))
    }
}

/// The number of a minute, as cells have it.
fn minute(seconds: u64) -> u64 {
    (seconds / 60) & u64::from(u32::MAX)
}

fn place(minute: u64) -> usize {
    usize::try_from(minute % MINUTES as u64).unwrap_or_default()
}

impl<const N: usize> Minutes<N> {
    /// Counts so many of a kind at the time `now`, in seconds since 1970.
    pub fn add(&self, kind: usize, more: u64, now: u64) {
        let minute = minute(now);
        let add = |cell: u64| {
            let count = if cell >> 32 == minute { cell & u64::from(u32::MAX) } else { 0 };
            Some(minute << 32 | (count + more).min(u32::MAX.into()))
        };
        let _ = self.0[kind][place(minute)].fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The counts of a kind in the last `most` minutes, the minute of `now` last.
    #[must_use]
    pub fn last(&self, kind: usize, most: usize, now: u64) -> Vec<u64> {
        let most = most.min(MINUTES) as u64;
        let end = minute(now) + 1;
        let count = |minute: u64| {
            let cell = self.0[kind][place(minute)].load(Ordering::Relaxed);
            if cell >> 32 == minute { cell & u64::from(u32::MAX) } else { 0 }
        };
        (end.saturating_sub(most)..end).map(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_kept_and_the_day_before_is_not() {
        let minutes = Minutes::<2>::default();
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
}
