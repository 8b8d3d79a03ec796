// SPDX-License-Identifier: GPL-3.0-or-later
//! Refused requests, counted by reason. Addresses that try invalid tokens are named in the log, for fail2ban.

use super::limits::Failures;
use crate::control::RefusedStatus;
use crate::net::network_of;
use bulkmark_sync::Code;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The requests refused since the server was started.
pub(super) struct RefusedRequests {
    failures: Failures,
    /// Invalid tokens a minute from one address before it is blocked.
    most: NonZeroU32,
    requests: [AtomicU64; Code::ALL.len()],
    last: Mutex<Option<(String, Instant)>>,
}

impl RefusedRequests {
    /// Creates the counters, with so many attempts a minute per address.
    pub(super) fn new(most: NonZeroU32) -> Self {
        let requests = std::array::from_fn(|_| AtomicU64::new(0));
        Self { failures: Failures::default(), most, requests, last: Mutex::default() }
    }

    /// Records an invalid token. True if its address exceeded the limit within a minute. One line is logged for each attempt up to the
    /// limit; the log itself bounds the lines of all addresses together.
    pub(super) fn try_token(&self, from: Option<IpAddr>) -> bool {
        let from = from.map(|ip| ip.to_canonical());
        let shown = from.map_or_else(|| "unix".to_owned(), |ip| ip.to_string());
        // A Unix socket has no address, and its clients are local.
        let attempts = from.map_or(1, |ip| self.failures.add(network_of(ip), Instant::now()));
        let blocked = attempts > self.most.get();
        if attempts <= self.most.get().saturating_add(1) {
            // packaging/fail2ban reads this line.
            log::warn!(
                "refused: address={shown} reason={}",
                if blocked { Code::TokenBlocked } else { Code::TokenInvalid }
            );
        }
        *self.last.lock() = Some((shown, Instant::now()));
        blocked
    }

    /// Counts a request that was refused.
    pub(super) fn count(&self, why: Code) {
        self.requests[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns all counters.
    pub(super) fn status(&self) -> RefusedStatus {
        let count = |code: Code| self.requests[code as usize].load(Ordering::Relaxed);
        let last = self.last.lock();
        RefusedStatus {
            requests: Code::ALL.map(|code| (code.to_string(), count(code))).into(),
            last_invalid_token_from: last.as_ref().map(|(from, _)| from.clone()),
            last_invalid_token_seconds_ago: last.as_ref().map(|(_, at)| at.elapsed().as_secs()),
        }
    }
}
