// SPDX-License-Identifier: GPL-3.0-or-later
//! How often somebody may do something: at a steady rate, and for a while at once as often as it was not done before.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// A rate, and how many may come at once.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// When time began.
    begin: Instant,
    /// Nanoseconds for each.
    cost: u64,
    /// Nanoseconds for all that come at once.
    burst: u64,
}

/// When all that somebody did so far is paid for, in nanoseconds since time began.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paid(u64);

impl Rate {
    /// So many in this time, of which `burst` may come at once.
    #[must_use]
    pub fn new(number: NonZeroU32, time: Duration, burst: NonZeroU32) -> Self {
        let cost = nanoseconds(time) / u64::from(number.get());
        Self { begin: Instant::now(), cost, burst: cost.saturating_mul(burst.get().into()) }
    }

    /// Whether `number` more may be done now; if so, notes them.
    pub fn admits(&self, paid: &mut Paid, number: u32, now: Instant) -> bool {
        let now = nanoseconds(now.duration_since(self.begin));
        let after = paid.0.max(now).saturating_add(self.cost.saturating_mul(number.into()));
        let is_admitted = after <= now.saturating_add(self.burst);
        if is_admitted {
            paid.0 = after;
        }
        is_admitted
    }

    /// Whether nothing of it is to be remembered any more.
    #[must_use]
    pub fn is_over(&self, paid: Paid, now: Instant) -> bool {
        paid.0 <= nanoseconds(now.duration_since(self.begin))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
