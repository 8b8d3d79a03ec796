// SPDX-License-Identifier: GPL-3.0-or-later
//! Servers that hold up whoever follows them: alive, and without anything of use.

use std::time::{Duration, Instant};

/// For how long one is left alone, while another serves; twice as long after each time.
const FIRST: Duration = Duration::from_secs(60);
const LAST: Duration = Duration::from_secs(1800);

/// For how long one server is left alone.
#[derive(Default)]
pub(super) struct Left {
    pause: Duration,
    until: Option<Instant>,
}

impl Left {
    /// Notes how it went with this server: whether it was `stuck`, after so long.
    pub(super) fn tried(&mut self, stuck: bool, lasted: Duration) {
        if lasted > LAST {
            self.pause = Duration::ZERO;
        }
        if stuck {
            self.pause = (2 * self.pause).clamp(FIRST, LAST);
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
    fn it_is_left_for_longer_each_time_until_it_served_for_long() {
        let (mut left, short) = (Left::default(), Duration::from_secs(40));
        left.tried(false, short);
        assert!(!left.is_alone());
        for minutes in [1, 2, 4, 8, 16, 30, 30] {
            left.tried(true, short);
            assert!(left.is_alone() && left.pause == Duration::from_secs(60 * minutes));
        }
        left.tried(false, 2 * LAST);
        left.tried(true, short);
        assert_eq!(left.pause, FIRST);
    }
}
