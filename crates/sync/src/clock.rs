// SPDX-License-Identifier: GPL-3.0-or-later
//! Clocks that differ. All machines divide time into the same windows. A machine two days ahead would report into windows that no other one
//! has yet, and drop windows that still count. So nothing is shared until the clocks agree.
//!
//! Each side sends its time in the header `Date` of requests and answers.

use bulkmark_ledger::now;
use bulkmark_types::writable_time;
use reqwest::header::HeaderValue;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How much two clocks may differ: far below the length of a window, and far above network delays.
pub const MAX_SKEW: Duration = Duration::from_mins(5);

/// Returns the time for the header `Date`.
#[must_use]
pub fn date() -> Option<HeaderValue> {
    HeaderValue::from_str(&httpdate::fmt_http_date(writable_time(now()))).ok()
}

/// Compares the clock of `theirs`, which sent this header `Date`, with that of `ours`. Without a header, nothing is compared.
///
/// # Errors
/// A sentence with the difference.
pub fn check(date: Option<&HeaderValue>, theirs: &str, ours: &str) -> Result<(), String> {
    let date = date.and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
    let Some(time) = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok()) else { return Ok(()) };
    compare(time.as_secs(), now(), theirs, ours)
}

/// Compares this machine's clock with the time that a fleet's log sent.
///
/// # Errors
/// A sentence with the difference and the remedy.
pub fn check_log(time: u64) -> Result<(), String> {
    compare(now(), time, "this machine", "the log").map_err(|what| {
        format!("{what}: have NTP keep the one right that is wrong (timedatectl, chronyc tracking)")
    })
}

fn compare(time: u64, now: u64, theirs: &str, ours: &str) -> Result<(), String> {
    let off = time.abs_diff(now);
    if off <= MAX_SKEW.as_secs() {
        return Ok(());
    }
    let side = if time > now { "ahead of" } else { "behind" };
    let most = MAX_SKEW.as_secs() / 60;
    Err(format!(
        "other clock: {theirs}'s is {} {side} {ours}'s; at most {most} minutes are tolerated",
        rounded(off)
    ))
}

/// Formats a duration in a suitable unit, rounded, so that the text about a wrong clock does not change each second.
fn rounded(seconds: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (unit, name) = match seconds {
        0..5400 => (MINUTE, "minutes"),
        5400..129_600 => (HOUR, "hours"),
        _ => (DAY, "days"),
    };
    format!("{} {name}", seconds.saturating_add(unit / 2) / unit)
}

/// Notices when this machine's clock was set, since an earlier comparison of clocks is void then.
pub struct ClockGuard {
    time: u64,
    since: Instant,
}

impl ClockGuard {
    /// Starts now.
    #[must_use]
    pub fn begin() -> Self {
        Self { time: now(), since: Instant::now() }
    }

    /// Whether the clock has not been set since the start.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        let expected = self.time.saturating_add(self.since.elapsed().as_secs());
        now().abs_diff(expected) <= MAX_SKEW.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_named_with_its_offset() {
        let now = 1_800_000_000;
        let compared = |time| compare(time, now, "the client", "the server");
        assert_eq!(compared(now + 300), Ok(()));
        assert_eq!(compared(now - 300), Ok(()));
        for (time, expected) in [
            (now + 301, "5 minutes ahead of"),
            (now - 3600, "60 minutes behind"),
            (now - 7200, "2 hours behind"),
            (now + 2 * 86_400 - 1, "2 days ahead of"),
            (now + 2 * 86_400 + 1, "2 days ahead of"),
            (0, "20833 days behind"),
        ] {
            let expected = format!(
                "other clock: the client's is {expected} the server's; at most 5 minutes are tolerated"
            );
            assert_eq!(compared(time), Err(expected));
        }
    }

    #[test]
    fn headers_without_a_date_are_ignored() {
        for value in ["", "nonsense", "Mon, 99 Nov 2026 00:00:00 GMT"] {
            assert_eq!(check(HeaderValue::from_str(value).ok().as_ref(), "a", "b"), Ok(()));
        }
        assert_eq!(check(date().as_ref(), "a", "b"), Ok(()));
        let old = HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT");
        assert!(check(Some(&old), "a", "b").is_err());
    }
}
