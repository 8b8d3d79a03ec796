// SPDX-License-Identifier: GPL-3.0-or-later
//! The time that the writer has spent on one piece of work. A hanging disk blocks the writer for ever, so other threads must detect it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The start of the present piece of work, readable by all threads, on a monotonic clock.
#[derive(Debug)]
pub(crate) struct Busy {
    began: Instant,
    /// Nanoseconds after `began`, plus one; zero while there is no work.
    since: AtomicU64,
    /// Whether the work waits for the disk.
    of_disk: AtomicBool,
}

impl Busy {
    /// Returns the state without work.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), since: AtomicU64::new(0), of_disk: AtomicBool::new(false) }
    }

    /// Begins a piece of work and ends the one before. `of_disk`: it waits for the disk, otherwise it uses the processor.
    pub(crate) fn begin(&self, of_disk: bool) {
        self.of_disk.store(of_disk, Ordering::Relaxed);
        let nanos = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.since.store(nanos.saturating_add(1), Ordering::Relaxed);
    }

    /// Ends the work.
    pub(crate) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Whether the present piece of work waits for the disk.
    pub(crate) fn is_of_disk(&self) -> bool {
        self.of_disk.load(Ordering::Relaxed)
    }

    /// Returns how long the present piece of work has lasted; zero without one.
    pub(crate) fn elapsed(&self) -> Duration {
        let since = self.since.load(Ordering::Relaxed).checked_sub(1);
        since.map_or(Duration::ZERO, |since| self.began.elapsed().saturating_sub(Duration::from_nanos(since)))
    }
}
