// SPDX-License-Identifier: GPL-3.0-or-later
//! Pauses after failures: longer each time, and with a random part, so that not all clients return at once.

use bulkmark_ledger::random_bytes;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(250);
const LAST: Duration = Duration::from_secs(30);

/// The next pause.
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
    /// Creates one with pauses up to this.
    pub(super) const fn up_to(longest: Duration) -> Self {
        Self { next: FIRST, longest }
    }

    /// Waits half of the pause and a random part of the other half; the next pause is twice as long.
    pub(super) async fn wait(&mut self) {
        // Without a random number, all clients wait equally long, which is no worse than an error here.
        let [byte] = random_bytes().unwrap_or([0]);
        let half = self.next / 2;
        tokio::time::sleep(half + half * u32::from(byte) / 255).await;
        self.next = (self.next * 2).min(self.longest);
    }
}

/// Adds a random part of up to a third, so that the clients of one server do not all move to the next one at once.
pub(super) fn jittered(time: Duration) -> Duration {
    let [byte] = random_bytes().unwrap_or([0]);
    time + time / 3 * u32::from(byte) / 255
}

/// How long a server is skipped that is alive and sends nothing of use, while another one serves. Doubled after each time.
const FIRST_COOLDOWN: Duration = Duration::from_secs(60);
const LAST_COOLDOWN: Duration = Duration::from_secs(1800);

/// The cooldown of one server.
#[derive(Default)]
pub(super) struct Cooldown {
    pause: Duration,
    until: Option<Instant>,
}

impl Cooldown {
    /// Records an attempt with this server: whether it got `stuck`, and how long it lasted.
    pub(super) fn note(&mut self, stuck: bool, lasted: Duration) {
        if lasted > LAST_COOLDOWN {
            self.pause = Duration::ZERO;
        }
        if stuck {
            self.pause = (2 * self.pause).clamp(FIRST_COOLDOWN, LAST_COOLDOWN);
            self.until = Some(Instant::now() + self.pause);
        }
    }

    /// Whether the server is skipped for now.
    pub(super) fn is_active(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_do_not_all_leave_at_once() {
        let time = Duration::from_secs(30);
        let mut all: Vec<_> = (0..100).map(|_| jittered(time)).collect();
        assert!(all.iter().all(|one| (time..=time / 3 * 4).contains(one)), "{all:?}");
        all.sort_unstable();
        all.dedup();
        assert!(all.len() > 20, "{all:?}");
    }

    #[test]
    fn cooldowns_get_longer_until_a_server_served_for_long() {
        let (mut cooldown, short) = (Cooldown::default(), Duration::from_secs(40));
        cooldown.note(false, short);
        assert!(!cooldown.is_active());
        for minutes in [1, 2, 4, 8, 16, 30, 30] {
            cooldown.note(true, short);
            assert!(cooldown.is_active() && cooldown.pause == Duration::from_secs(60 * minutes));
        }
        cooldown.note(false, 2 * LAST_COOLDOWN);
        cooldown.note(true, short);
        assert_eq!(cooldown.pause, FIRST_COOLDOWN);
    }
}
