// SPDX-License-Identifier: GPL-3.0-or-later
//! Shared parts of the milter daemon's benches: the daemon, and the clients that send it mail.
#![allow(dead_code, reason = "each bench uses a part of this")]

pub(crate) mod daemon;
pub(crate) mod milter;

use std::time::Duration;

/// The latency in milliseconds at this share of the list, which it sorts.
pub(crate) fn within(latencies: &mut [Duration], share: f64) -> f64 {
    latencies.sort_unstable();
    latencies.get((latencies.len() as f64 * share) as usize).map_or(f64::NAN, |of| of.as_secs_f64() * 1e3)
}
