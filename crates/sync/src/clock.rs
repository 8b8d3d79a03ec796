// SPDX-License-Identifier: GPL-3.0-or-later
//! Clocks that do not agree. All machines cut time into the same windows: whoever is two days ahead counts into windows that
//! nobody else has yet, and takes windows for over that still count. So nothing is shared until the clocks agree.
//!
//! Each side tells its time in the header `Date` of its requests and answers.

use bulkmark_ledger::now;
use bulkmark_types::writable_time;
use reqwest::header::HeaderValue;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// By how much two clocks may differ. It is far below the length of a window, and far above what the network takes.
pub const TOLERATED: Duration = Duration::from_mins(5);

/// The time, for the header `Date`.
#[must_use]
pub fn date() -> Option<HeaderValue> {
    HeaderValue::from_str(&httpdate::fmt_http_date(writable_time(now()))).ok()
}

/// Compares the clock of `theirs`, who sent this header `Date`, with that of `ours`. Who sent none is not asked.
///
/// # Errors
/// A sentence that says by how much they differ.
pub fn check(date: Option<&HeaderValue>, theirs: &str, ours: &str) -> Result<(), String> {
    let date = date.and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
    let Some(time) = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok()) else { return Ok(()) };
    compare(time.as_secs(), now(), theirs, ours)
}

/// Compares this machine's clock with that of a fleet's log, which tells this time.
///
/// # Errors
/// A sentence that says by how much they differ, and what to do.
pub fn check_log(time: u64) -> Result<(), String> {
    compare(now(), time, "this machine", "the log").map_err(|what| {
        format!("{what}: have NTP keep the one right that is wrong (timedatectl, chronyc tracking)")
    })
}

fn compare(time: u64, now: u64, theirs: &str, ours: &str) -> Result<(), String> {
    let off = time.abs_diff(now);
    if off <= TOLERATED.as_secs() {
        return Ok(());
    }
    let side = if time > now { "ahead of" } else { "behind" };
    let most = TOLERATED.as_secs() / 60;
    Err(format!(
        "other clock: {theirs}'s is {} {side} {ours}'s; at most {most} minutes are tolerated",
        rounded(off)
    ))
}

/// A time in the unit that suits it, rounded so that a clock that is off has one name and not another each second.
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

/// Sees whether this machine's clock was set meanwhile: what was agreed before it was is agreed no more.
pub struct ClockGuard {
    time: u64,
    since: Instant,
}

impl ClockGuard {
    /// From now on.
    #[must_use]
    pub fn begin() -> Self {
        Self { time: now(), since: Instant::now() }
    }

    /// Whether the clock went on as time did.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        let expected = self.time.saturating_add(self.since.elapsed().as_secs());
        now().abs_diff(expected) <= TOLERATED.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_off_is_named_with_its_offset() {
        let now = 1_800_000_000;
        let told = |time| compare(time, now, "the client", "the server");
        assert_eq!(told(now + 300), Ok(()));
        assert_eq!(told(now - 300), Ok(()));
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
            assert_eq!(told(time), Err(expected));
        }
    }

    #[test]
    fn what_is_no_date_is_not_asked() {
        for value in ["", "nonsense", "Mon, 99 Nov 2026 00:00:00 GMT"] {
            assert_eq!(check(HeaderValue::from_str(value).ok().as_ref(), "a", "b"), Ok(()));
        }
        assert_eq!(check(date().as_ref(), "a", "b"), Ok(()));
        let old = HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT");
        assert!(check(Some(&old), "a", "b").is_err());
    }
}
