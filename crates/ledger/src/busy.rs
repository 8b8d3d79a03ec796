// SPDX-License-Identifier: GPL-3.0-or-later
//! How long the writer has been at one piece of work. A disk that hangs holds it for ever, and only others can tell.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When the present piece of work began, for all to see. By a clock that nobody sets.
#[derive(Debug)]
pub(crate) struct Busy {
    began: Instant,
    /// Nanoseconds after `began`, and one; zero while there is no work.
    since: AtomicU64,
    /// Whether it is the disk's.
    of_disk: AtomicBool,
}

impl Busy {
    /// Without work.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), since: AtomicU64::new(0), of_disk: AtomicBool::new(false) }
    }

    /// A piece of work begins, and the one before it is done. `of_disk` is one that waits for the disk; another one is the processor's.
    pub(crate) fn begin(&self, of_disk: bool) {
        self.of_disk.store(of_disk, Ordering::Relaxed);
        let nanos = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.since.store(nanos.saturating_add(1), Ordering::Relaxed);
    }

    /// There is no work.
    pub(crate) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Whether the present piece of work waits for the disk.
    pub(crate) fn is_of_disk(&self) -> bool {
        self.of_disk.load(Ordering::Relaxed)
    }

    /// How long the present piece of work has lasted; zero without one.
    pub(crate) fn elapsed(&self) -> Duration {
        let since = self.since.load(Ordering::Relaxed).checked_sub(1);
        since.map_or(Duration::ZERO, |since| self.began.elapsed().saturating_sub(Duration::from_nanos(since)))
    }
}
