// SPDX-License-Identifier: GPL-3.0-or-later
//! The results of verifying a message.

use bulkmark_policy::{Method, VerifiedNames};
use std::fmt;

/// The results so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// The verified names.
    pub verified: VerifiedNames,
    /// The checks, in order.
    pub found: Vec<Found>,
    /// The reason why names may be missing, if DNS did not answer.
    pub unverified: Option<Unverified>,
}

/// A check and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The method.
    pub method: Method,
    /// The name.
    pub name: String,
    /// The reason why it is not verified, if so.
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

/// The reason why a message could not be verified completely. It is no property of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unverified {
    /// The name in header and log.
    pub reason: &'static str,
    /// The details, as a sentence.
    pub detail: String,
}

impl Unverified {
    pub(super) fn timeout(limit: f64) -> Self {
        let detail = format!("DNS did not answer within {limit} s (a fifth of verdict-deadline)");
        Self { reason: "timeout", detail }
    }

    pub(super) fn dns(detail: impl fmt::Display) -> Self {
        Self { reason: "dns", detail: format!("DNS has no answer at the moment: {detail}") }
    }
}
