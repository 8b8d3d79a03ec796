// SPDX-License-Identifier: GPL-3.0-or-later
//! The history of clients: acts of operators, and registrations.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

const DAY: u64 = 86_400;

/// How long an unused token is valid.
const UNUSED: u64 = DAY;

/// How long an unapproved site is kept after its last use.
const SILENT: u64 = 30 * DAY;

/// An act of an operator on the list of clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Deed {
    /// The time in seconds since 1970.
    pub at: u64,
    /// The user of the server's machine.
    pub by: String,
    /// "added", "approved", "changed", "rotated", "removed" or "removed with counts".
    pub act: String,
    /// The client.
    pub client: String,
}

/// The registration of a site that registered by itself. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Registered {
    /// The time of the registration.
    pub at: u64,
    /// The address that it came from; none on a Unix socket.
    pub from: Option<IpAddr>,
    /// The site's address for questions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub contact: String,
    /// The day on which its token was used last, as the time at which that was stored.
    pub used: Option<u64>,
    /// When it was approved.
    pub approved: Option<u64>,
    /// The user of the server's machine that approved it.
    pub approved_by: Option<String>,
}

impl Registered {
    /// Whether the registration has lapsed at `now`.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.approved.is_none()
            && match self.used {
                None => now >= self.at.saturating_add(UNUSED),
                Some(used) => now >= used.saturating_add(SILENT),
            }
    }
}
