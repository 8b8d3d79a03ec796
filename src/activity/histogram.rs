// SPDX-License-Identifier: GPL-3.0-or-later
//! Durations, in classes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the classes in microseconds: from the time of a count in memory to a delay that an MTA notices.
const BOUNDS: [u64; 13] =
    [250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000];

/// Counts of durations.
#[derive(Debug, Default)]
pub struct Histogram {
    /// One for each bound, and the last for longer durations.
    classes: [AtomicU64; BOUNDS.len() + 1],
    microseconds: AtomicU64,
}

impl Histogram {
    /// Counts one duration.
    pub fn add(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let class = BOUNDS.partition_point(|&bound| bound < time);
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        self.microseconds.fetch_add(time, Ordering::Relaxed);
    }

    /// Returns each bound in seconds with the number of durations up to it; the last bound is infinite.
    #[must_use]
    pub fn cumulative(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS.iter().map(|&bound| bound as f64 / 1e6).chain([f64::INFINITY]);
        let mut sum = 0;
        bounds
            .zip(&self.classes)
            .map(|(bound, class)| {
                sum += class.load(Ordering::Relaxed);
                (bound, sum)
            })
            .collect()
    }

    /// Returns the sum of all, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.microseconds.load(Ordering::Relaxed) as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_class() {
        let histogram = Histogram::default();
        for time in [250, 251, 6_000_000] {
            histogram.add(Duration::from_micros(time));
        }
        let found = histogram.cumulative();
        assert_eq!(found[..2], [(0.00025, 1), (0.0005, 2)]);
        assert_eq!(found[12..], [(5.0, 2), (f64::INFINITY, 3)]);
        assert!((histogram.seconds() - 6.000501).abs() < 1e-9);
    }
}
