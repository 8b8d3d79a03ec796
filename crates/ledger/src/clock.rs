// SPDX-License-Identifier: GPL-3.0-or-later
//! The system's clock. The crates below receive the time as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time, in seconds since 1970 (UTC).
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
