// SPDX-License-Identifier: GPL-3.0-or-later
//! What time it is. The floors below are told the time, and never ask.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time, in seconds since 1970 (UTC).
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
