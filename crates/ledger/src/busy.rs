// SPDX-License-Identifier: GPL-3.0-or-later
//! How long the writer has been at one piece of work. A disk that hangs holds it for ever, and only others can tell.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When the present piece of work began, for all to see. By a clock that nobody sets.
#[derive(Debug)]
pub(crate) struct Busy {
    began: Instant,
    /// Nanoseconds after `began`, and one; zero while there is no work.
    since: AtomicU64,
}

impl Busy {
    /// Without work.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), since: AtomicU64::new(0) }
    }

    /// A piece of work begins, and the one before it is done.
    pub(crate) fn begin(&self) {
        let nanos = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.since.store(nanos.saturating_add(1), Ordering::Relaxed);
    }

    /// There is no work.
    pub(crate) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// How long the present piece of work has lasted; zero without one.
    pub(crate) fn elapsed(&self) -> Duration {
        let since = self.since.load(Ordering::Relaxed).checked_sub(1);
        since.map_or(Duration::ZERO, |since| self.began.elapsed().saturating_sub(Duration::from_nanos(since)))
    }
}
