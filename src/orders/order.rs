// SPDX-License-Identifier: GPL-3.0-or-later
//! The orders as they are stored, sent and listed.

use bulkmark_types::{Signature, plain, remote_text};
use serde::{Deserialize, Serialize};

/// Length limit of a reason or a name, in bytes.
pub const MAX_TEXT: usize = 500;

/// Returns the fields of a log line with the author of an order and its reason.
#[must_use]
pub fn author(by: &str, reason: &str) -> String {
    let reason = remote_text(reason).replace('"', "\\u{22}");
    format!("by={} reason=\"{reason}\"", remote_text(&plain(by, "")))
}

/// A pause, during which nothing is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Pause {
    /// Its beginning, in seconds since 1970.
    pub since: u64,
    /// Its end; none: until `bulkmark resume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// The user who ordered it.
    pub by: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The server whose operator ordered it for all sites; none if it is this machine's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

/// A mailing that is never refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Allowance {
    /// Its signatures as text; the first names it.
    pub signatures: Vec<String>,
    /// Its beginning, in seconds since 1970.
    pub since: u64,
    /// Its end; none: until it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// The user who ordered it.
    pub by: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether it holds at this machine alone, and no server receives it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub here: bool,
}

impl Allowance {
    /// The signature that names it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.signatures.first().map_or("", |first| first)
    }

    /// Returns its valid signatures.
    pub fn parsed(&self) -> impl Iterator<Item = Signature> + '_ {
        self.signatures.iter().filter_map(|text| text.parse().ok())
    }
}

/// A mailing whose counts start over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Forgotten {
    /// The mailing.
    #[serde(flatten)]
    pub mailing: Allowance,
    /// Its counts at that time, which are subtracted from now on: `body` of its first signature, `near` the highest of all.
    pub body: u32,
    /// See [`Self::body`].
    pub near: u32,
}

impl AsRef<Self> for Allowance {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsRef<Allowance> for Forgotten {
    fn as_ref(&self) -> &Allowance {
        &self.mailing
    }
}

/// All orders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct All {
    /// The pause, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Mailings that are never refused, the oldest first.
    pub allowed: Vec<Allowance>,
    /// Mailings whose counts started over, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<Forgotten>,
    /// At a server: mailings whose orders by sites are revoked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<Allowance>,
}

impl All {
    /// Removes the orders that have ended by then.
    #[must_use]
    pub fn at(mut self, now: u64) -> Self {
        let holds = |until: Option<u64>| until.is_none_or(|until| until > now);
        self.pause = self.pause.filter(|pause| holds(pause.until));
        self.allowed.retain(|allowance| holds(allowance.until));
        self.forgotten.retain(|forgotten| holds(forgotten.mailing.until));
        self.revoked.retain(|revoked| holds(revoked.until));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_and_a_reason_are_one_field_each() {
        assert_eq!(author("anna", "the parish"), "by=anna reason=\"the parish\"");
        let text = "by=anna\\u{20}\\u{22}x\\u{22} reason=\"a \\u{22}b\\u{22}\"";
        assert_eq!(author("anna \"x\"", "a \"b\""), text);
    }
}
