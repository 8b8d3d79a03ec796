// SPDX-License-Identifier: GPL-3.0-or-later
//! Times, sizes and slices of a ledger as text.

use crate::activity::WebhookStatus;
use bulkmark_ledger::{Counted, NextCapacity, SliceStatus};
use bulkmark_types::{remote_text, writable_time};
use humantime_serde::re::humantime;
use std::fmt;
use std::time::Duration;

/// The default threshold.
pub(super) const THRESHOLD: u32 = 20;

/// A slice, and the threshold for its estimate.
pub(super) struct Slice<'a>(pub(super) &'a SliceStatus, pub(super) u32);

impl fmt::Display for Slice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(slice, threshold) = self;
        let user_reports = if slice.user_reports { ", user reports" } else { "" };
        write!(f, "window of {}{user_reports}", time(slice.window))?;
        if slice.slice > 0 {
            write!(f, ", slice {}", slice.slice)?;
        }
        match (slice.counted, slice.signatures) {
            (Counted::Limited, _) => f.write_str(": of clients with limits")?,
            (_, Some(signatures)) => write!(f, ": {signatures} of {} signatures", slice.capacity)?,
            (_, None) => write!(f, ": merged, made for {}", slice.capacity)?,
        }
        write!(f, ", {}", bytes(slice.memory as u64))?;
        if let (Some(fill), Some(saturated), Some(chance)) = (slice.fill, slice.saturated, slice.false_bulk) {
            let (fill, saturated) = (fill * 100.0, saturated * 100.0);
            write!(f, ", {fill:.1} % of cells used, {saturated:.1} % full, false bulk at {threshold}: ")?;
            if chance > 0.0 { write!(f, "{chance:.1e}")? } else { f.write_str("0")? }
        }
        Ok(())
    }
}

/// Describes a capacity that is not in force yet; none if it will be in force at the next count.
pub(super) fn next_capacity(next: Option<NextCapacity>, now: u64) -> Option<String> {
    let NextCapacity { capacity, present, from } = next.filter(|next| next.from > now)?;
    let from = time(from);
    Some(format!(
        "capacity = {capacity} holds from the window of {from} on; the present one is made for {present}"
    ))
}

/// Describes the failure of a webhook, and returns the remedy; none if its last post succeeded.
pub(super) fn webhook_failure(webhook: &WebhookStatus) -> Option<(String, String)> {
    let WebhookStatus { host, waiting, error, failing_since, .. } = webhook;
    let (error, since) = (remote_text(error.as_ref()?), time((*failing_since)?));
    let failure = format!("has accepted no event since {since}: {error}; {} waiting", some(waiting, "event"));
    let remedy =
        format!("correct {host}, or alerts.webhook in the configuration, and then restart the daemon");
    Some((failure, remedy))
}

/// Returns the name of a daemon in a sentence.
pub(super) fn called(daemon: &str) -> &str {
    if daemon == "interfaces" { "interfaces daemon" } else { daemon }
}

/// Formats a time in seconds since 1970, which may be any number from outside.
pub(super) fn time(seconds: u64) -> impl fmt::Display {
    humantime::format_rfc3339_seconds(writable_time(seconds))
}

/// Formats a time span.
pub(super) fn ago(seconds: u64) -> impl fmt::Display {
    humantime::format_duration(Duration::from_secs(seconds))
}

/// Formats a number of things, of which one is called this.
pub(super) fn some(number: impl fmt::Display, one: &str) -> String {
    some_of(number, one, &format!("{one}s"))
}

/// The same, for a word whose plural is irregular.
pub(super) fn some_of(number: impl fmt::Display, one: &str, several: &str) -> String {
    let number = number.to_string();
    format!("{number} {}", if number == "1" { one } else { several })
}

/// Formats a number of messages.
pub(super) fn messages(number: impl fmt::Display) -> String {
    some(number, "message")
}

/// Formats a size.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_a_time() {
        assert_eq!(time(0).to_string(), "1970-01-01T00:00:00Z");
        for late in [253_402_300_799, 253_402_300_800, u64::MAX] {
            assert_eq!(time(late).to_string(), "9999-12-31T23:59:59Z");
        }
        assert!(!ago(u64::MAX).to_string().is_empty());
    }
}
