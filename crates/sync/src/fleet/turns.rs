// SPDX-License-Identifier: GPL-3.0-or-later
//! Schedules drafts of steps among aggregators. Nobody is elected, and two drafts at once do no harm: the log takes one of them. To save
//! the losers' work, the aggregator that made the last step makes the next one, and the others wait a little longer.

use std::time::{Duration, Instant};

/// The schedule of one of several aggregators.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    /// The time between two steps.
    interval: Duration,
    /// Whether it made the last step.
    won: bool,
    /// The source of the random part of its waiting time.
    seed: u64,
}

impl Turns {
    /// Creates the schedule of an aggregator that has made no step yet.
    pub(super) const fn new(interval: Duration, seed: u64) -> Self {
        Self { interval, won: false, seed }
    }

    /// Records whether it made the last step. The next waiting time has another random part.
    pub(super) fn made(&mut self, own: bool) {
        self.won = own;
        // The generator of SplitMix64.
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    }

    /// Whether it made the last step.
    pub(super) const fn is_last(&self) -> bool {
        self.won
    }

    /// Returns when it drafts a step of batches that wait since `since`, enough for a whole one if `full`; the step before it came at
    /// `stepped`.
    pub(super) fn due(&self, since: Instant, full: bool, stepped: Instant) -> Instant {
        match self.won {
            true if full => since,
            true => since.max(stepped + self.wait()),
            false => since.max(stepped) + self.wait(),
        }
    }

    /// Returns the waiting time, from the arrival of the first batch and of the step before: the interval for the aggregator that made the
    /// last step, otherwise one and a half to two and a half intervals. So counts are shared again within three seconds of its death.
    fn wait(&self) -> Duration {
        if self.won {
            return self.interval;
        }
        let mut random = self.seed;
        random = (random ^ (random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        random ^= random >> 31;
        let part = u32::from(u16::try_from(random >> 48).unwrap_or(u16::MAX));
        self.interval.mul_f64(1.5 + f64::from(part) / 65_536.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The aggregator that made the last step is well before all others, which differ from one another and wait at most two and a half
    /// intervals.
    #[test]
    fn the_last_winner_is_before_the_others() {
        let interval = Duration::from_secs(1);
        let mut winner = Turns::new(interval, 7);
        winner.made(true);
        let others: Vec<_> = (0..20).map(|seed| Turns::new(interval, seed)).collect();
        let mut waits: Vec<_> = others.iter().map(Turns::wait).collect();
        assert!(waits.iter().all(|&wait| wait * 2 >= winner.wait() * 3 && wait * 2 < interval * 5));
        waits.sort_unstable();
        waits.dedup();
        assert!(waits.len() > 10, "{waits:?}");
        winner.made(false);
        let first = winner.wait();
        winner.made(false);
        assert!(winner.wait() > interval && winner.wait() != first);
    }

    /// A winner keeps the interval between steps, unless there is enough for a whole one.
    #[test]
    fn a_winner_waits_for_the_interval_alone() {
        let (interval, stepped) = (Duration::from_secs(1), Instant::now());
        let mut turns = Turns::new(interval, 7);
        assert!(turns.due(stepped, true, stepped) > stepped + interval, "others wait, however much there is");
        turns.made(true);
        let (soon, late) = (stepped + interval / 2, stepped + 2 * interval);
        assert_eq!(turns.due(soon, false, stepped), stepped + interval);
        assert_eq!(turns.due(late, false, stepped), late);
        assert_eq!(turns.due(soon, true, stepped), soon);
    }
}
