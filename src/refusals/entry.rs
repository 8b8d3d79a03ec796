// SPDX-License-Identifier: GPL-3.0-or-later
//! One message that was refused, or would be without a rehearsal.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// Recipients of a message that are kept.
pub const MOST_RECIPIENTS: usize = 100;

/// A message that was not delivered unchanged, or would not be without a rehearsal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Entry {
    /// The time, in seconds since 1970.
    pub at: u64,
    /// The mail server's queue id.
    pub id: String,
    /// The action taken or rehearsed: `reject`, `tempfail`, `discard` or `quarantine`.
    pub action: String,
    /// Whether the action was only rehearsed, and the message delivered.
    pub rehearsed: bool,
    /// The verdict.
    pub verdict: String,
    /// The reason if it has no count.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The policy that decided, if there are several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// The envelope sender, in lower case; empty for the null sender.
    pub from: String,
    /// The recipients, in lower case; the first `MOST_RECIPIENTS` of them.
    pub to: Vec<String>,
    /// The number of all recipients.
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
    /// The weight of the users' reports as spam.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub spam: String,
    /// Its signatures, the body's first: `bulkmark allow` takes any of them.
    pub signatures: Vec<String>,
}

impl Entry {
    /// Returns the command that allows its mailing at the milter with this configuration, if it is not the usual one; none if it has no
    /// signature, or was not refused for its count.
    #[must_use]
    pub fn allow(&self, config: Option<&Path>) -> Option<String> {
        let signature = self.signatures.first().filter(|_| self.reason.is_empty())?;
        // The command is for a shell.
        let quoted =
            |path: &Path| format!(" --config '{}'", path.display().to_string().replace('\'', "'\\''"));
        Some(format!("bulkmark allow {signature}{}", config.map(quoted).unwrap_or_default()))
    }
}
