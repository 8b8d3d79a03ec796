// SPDX-License-Identifier: GPL-3.0-or-later
//! When somebody is asked again after a failure: later each time, and not by all at once.

use bulkmark_ledger::random_bytes;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(250);
const LAST: Duration = Duration::from_secs(30);

/// The next time to wait.
pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::up_to(LAST)
    }
}

impl Backoff {
    /// One whose times get no longer than this.
    pub(super) const fn up_to(longest: Duration) -> Self {
        Self { next: FIRST, longest }
    }

    /// Waits for half of the time and a random part of the other half; the next time is twice as long.
    pub(super) async fn wait(&mut self) {
        // Without a random number all wait for the same time, which is no worse than an error here.
        let [byte] = random_bytes().unwrap_or([0]);
        let half = self.next / 2;
        tokio::time::sleep(half + half * u32::from(byte) / 255).await;
        self.next = (self.next * 2).min(self.longest);
    }
}

/// This time, and a random part of a third of it: so those whom the same server served do not all turn to the next one at once.
pub(super) fn apart(time: Duration) -> Duration {
    let [byte] = random_bytes().unwrap_or([0]);
    time + time / 3 * u32::from(byte) / 255
}

/// For how long a server is left alone that is alive and brings nothing of use, while another serves; twice as long after each time.
const FIRST_ALONE: Duration = Duration::from_secs(60);
const LAST_ALONE: Duration = Duration::from_secs(1800);

/// For how long one server is left alone.
#[derive(Default)]
pub(super) struct Left {
    pause: Duration,
    until: Option<Instant>,
}

impl Left {
    /// Notes how it went with this server: whether it was `stuck`, after so long.
    pub(super) fn tried(&mut self, stuck: bool, lasted: Duration) {
        if lasted > LAST_ALONE {
            self.pause = Duration::ZERO;
        }
        if stuck {
            self.pause = (2 * self.pause).clamp(FIRST_ALONE, LAST_ALONE);
            self.until = Some(Instant::now() + self.pause);
        }
    }

    /// Whether it is to be left alone.
    pub(super) fn is_alone(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_all_turn_away_at_once() {
        let time = Duration::from_secs(30);
        let mut all: Vec<_> = (0..100).map(|_| apart(time)).collect();
        assert!(all.iter().all(|one| (time..=time / 3 * 4).contains(one)), "{all:?}");
        all.sort_unstable();
        all.dedup();
        assert!(all.len() > 20, "{all:?}");
    }

    #[test]
    fn it_is_left_for_longer_each_time_until_it_served_for_long() {
        let (mut left, short) = (Left::default(), Duration::from_secs(40));
        left.tried(false, short);
        assert!(!left.is_alone());
        for minutes in [1, 2, 4, 8, 16, 30, 30] {
            left.tried(true, short);
            assert!(left.is_alone() && left.pause == Duration::from_secs(60 * minutes));
        }
        left.tried(false, 2 * LAST_ALONE);
        left.tried(true, short);
        assert_eq!(left.pause, FIRST_ALONE);
    }
}
