// SPDX-License-Identifier: GPL-3.0-or-later
//! Times from other machines, which may be any number.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last second of the year 9999, in seconds since 1970: later times cannot be written as RFC 3339 or in HTTP, and the libraries that
/// write them panic.
pub const LAST_TIME: u64 = 253_402_300_799;

/// The time `seconds` after 1970, or [`LAST_TIME`] if it is later than that.
#[must_use]
pub fn writable_time(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds.min(LAST_TIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_times_become_the_last_time() {
        assert_eq!(writable_time(86_400), UNIX_EPOCH + Duration::from_secs(86_400));
        for late in [LAST_TIME, LAST_TIME + 1, u64::MAX] {
            assert_eq!(writable_time(late), UNIX_EPOCH + Duration::from_secs(LAST_TIME));
        }
    }
}
