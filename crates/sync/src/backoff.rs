// SPDX-License-Identifier: GPL-3.0-or-later
//! Waiting longer after each failure, and not all at the same time.

use bulkmark_ledger::random_bytes;
use std::time::Duration;

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
