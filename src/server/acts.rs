// SPDX-License-Identifier: GPL-3.0-or-later
//! How clients came: acts of operators, and registrations.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

const DAY: u64 = 86_400;

/// How long a token is valid that was never used.
const UNUSED: u64 = DAY;

/// How long an unapproved site may be silent.
const SILENT: u64 = 30 * DAY;

/// An act of an operator on the list of clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Deed {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The user of the server's machine.
    pub by: String,
    /// "added", "approved", "changed", "rotated", "removed" or "removed with counts".
    pub act: String,
    /// The client.
    pub client: String,
}

/// How a client came that registered by itself. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Registered {
    /// When.
    pub at: u64,
    /// From this address; none on a Unix socket.
    pub from: Option<IpAddr>,
    /// The address for questions that it gave.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub contact: String,
    /// The day on which its token was used last, as the time at which that was noted.
    pub used: Option<u64>,
    /// When it was approved.
    pub approved: Option<u64>,
    /// By this user of the server's machine.
    pub approved_by: Option<String>,
}

impl Registered {
    /// Whether the site is forgotten at `now`.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.approved.is_none()
            && match self.used {
                None => now >= self.at.saturating_add(UNUSED),
                Some(used) => now >= used.saturating_add(SILENT),
            }
    }
}
