// SPDX-License-Identifier: GPL-3.0-or-later
//! What came of verifying a message.

use bulkmark_policy::{Method, VerifiedNames};
use std::fmt;

/// What is known of a message by now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// The names that stand behind it.
    pub verified: VerifiedNames,
    /// What was looked at, in order.
    pub found: Vec<Found>,
    /// Why there might be more, if DNS had answered.
    pub unverified: Option<Unverified>,
}

/// What was looked at, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// By which method.
    pub method: Method,
    /// Whose name.
    pub name: String,
    /// Why it is not proven, if so.
    pub result: Result<(), String>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.method.name(), self.name)?;
        match &self.result {
            Ok(()) => f.write_str("verified"),
            Err(why) => write!(f, "not verified: {why}"),
        }
    }
}

/// Why a message could not be verified to the end. It says nothing of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unverified {
    /// As header and log write it.
    pub reason: &'static str,
    /// For people.
    pub detail: String,
}

impl Unverified {
    pub(super) fn timeout(limit: f64) -> Self {
        let detail = format!("DNS did not answer within {limit} s (lookup-timeout)");
        Self { reason: "timeout", detail }
    }

    pub(super) fn dns(detail: impl fmt::Display) -> Self {
        Self { reason: "dns", detail: format!("DNS has no answer at the moment: {detail}") }
    }
}
