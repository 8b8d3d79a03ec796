// SPDX-License-Identifier: GPL-3.0-or-later
//! One message that was refused, or would be.

use serde::{Deserialize, Serialize};

/// Recipients of a message that are kept.
pub const MOST_RECIPIENTS: usize = 100;

/// A message that was not delivered as it came, or would not be without a rehearsal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Entry {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The mail server's queue id.
    pub id: String,
    /// What was done: `reject`, `tempfail`, `discard` or `quarantine`; or would be.
    pub action: String,
    /// Whether it was only rehearsed, and the message delivered.
    pub rehearsed: bool,
    /// The verdict.
    pub verdict: String,
    /// Why it has no count, if so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The policy that decided, where there are several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// The envelope sender, in lower case; empty for the null sender.
    pub from: String,
    /// The recipients, in lower case; the first of many.
    pub to: Vec<String>,
    /// How many there were.
    pub nrcpt: usize,
    /// The client's address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client: String,
    /// Its name, if it was verified; in lower case.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The count of its body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<u32>,
    /// The count of its near signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<u32>,
    /// How much users report it as spam.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub spam: String,
    /// Its signatures, the body's first: `bulkmark allow` takes any of them.
    pub signatures: Vec<String>,
}

impl Entry {
    /// The command by which its mailing is allowed; none if it has no signature.
    #[must_use]
    pub fn allow(&self) -> Option<String> {
        self.signatures.first().map(|signature| format!("bulkmark allow {signature}"))
    }
}
