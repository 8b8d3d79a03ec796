// SPDX-License-Identifier: GPL-3.0-or-later
//! Rate limits: a steady rate, with a burst that unused time saves up.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// A rate with a burst.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// The zero of all times.
    begin: Instant,
    /// Nanoseconds for each act.
    cost: u64,
    /// Nanoseconds for a whole burst.
    burst: u64,
}

/// The time at which all acts so far are paid for, in nanoseconds since the zero.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paid(u64);

impl Rate {
    /// Creates a rate of so many acts in this time, of which `burst` may come at once.
    #[must_use]
    pub fn new(number: NonZeroU32, time: Duration, burst: NonZeroU32) -> Self {
        let cost = nanoseconds(time) / u64::from(number.get());
        Self { begin: Instant::now(), cost, burst: cost.saturating_mul(burst.get().into()) }
    }

    /// Whether `number` more acts are allowed now; if so, records them.
    pub fn admits(&self, paid: &mut Paid, number: u32, now: Instant) -> bool {
        let now = nanoseconds(now.duration_since(self.begin));
        let after = paid.0.max(now).saturating_add(self.cost.saturating_mul(number.into()));
        let is_admitted = after <= now.saturating_add(self.burst);
        if is_admitted {
            paid.0 = after;
        }
        is_admitted
    }

    /// Whether it can be forgotten.
    #[must_use]
    pub fn is_over(&self, paid: Paid, now: Instant) -> bool {
        paid.0 <= nanoseconds(now.duration_since(self.begin))
    }
}

/// The times at which a full table is searched for entries that can be forgotten. Requests of many addresses would otherwise cost a search
/// each.
#[derive(Debug, Default)]
pub struct Sweeps(Option<Instant>);

impl Sweeps {
    /// The least time between two searches.
    pub const PAUSE: Duration = Duration::from_secs(1);

    /// Whether there may be one now; if so, records it.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|last| now.duration_since(last) >= Self::PAUSE);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
