// SPDX-License-Identifier: GPL-3.0-or-later
//! White list, sources, orders and rehearsal of a decision: for programs, and as sentences.

use super::content::Content;
use super::envelope::Envelope;
use super::rules::Rules;
use super::source_networks::SourceNetworks;
use bulkmark_policy::{Decision, Held, Would};
use serde::Serialize;
use std::fmt;

/// Everything but the counts on which a decision depends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Circumstances {
    /// The policy of another recipient that makes the action milder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milder: Option<String>,
    /// The entry that wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whitelist: Option<String>,
    /// Entries of the white list that nearly match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
    /// The sources of the count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<SourceNetworks>,
    /// The reason why it is only marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The other site by whose order it is only marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<String>,
    /// The action that is only rehearsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would: Option<String>,
    /// The reason why it is only rehearsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<String>,
}

impl Circumstances {
    /// The circumstances of a decision about a message.
    #[must_use]
    pub fn of(rules: &Rules, envelope: &Envelope, content: &Content, decision: &Decision) -> Self {
        let whitelist = decision.whitelist.as_ref().map(ToString::to_string);
        let missed = if whitelist.is_none() { Missed::all(rules, envelope, content) } else { Vec::new() };
        Self {
            milder: decision.milder.and_then(|by| rules.name(by)).map(str::to_owned),
            whitelist,
            missed,
            sources: SourceNetworks::of(rules, envelope, decision),
            held: decision.held.map(|held| held.to_string()),
            allowed_by: decision.allowed_by.as_ref().map(|site| site.to_string()),
            would: decision.would.map(|would| would.action.to_string()),
            rehearsal: decision.would.map(|would| would.why.why().to_owned()),
        }
    }

    /// All of them but the white list's entry, as sentences.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let milder =
            |policy| format!("for another recipient the policy {policy} is milder, so it is only marked");
        let held = Held::from_name(self.held.as_deref());
        let would = self.would.as_ref().zip(self.rehearsal.as_ref());
        let one = [
            self.milder.as_ref().map(milder),
            self.sources.as_ref().map(SourceNetworks::sentence),
            held.map(|held| held.sentence(self.allowed_by.as_deref())),
            would.map(|(action, why)| Would::sentence(action, why)),
        ];
        one.into_iter().flatten().chain(self.missed.iter().map(ToString::to_string)).collect()
    }
}

/// An entry of the white list of which some conditions hold, and some do not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// Its file and line.
    entry: String,
    /// The conditions that do not hold.
    missing: String,
}

impl Missed {
    /// All such entries.
    #[must_use]
    pub fn all(rules: &Rules, envelope: &Envelope, content: &Content) -> Vec<Self> {
        let near_misses = rules.whitelist.near_misses(&content.facts(envelope, rules));
        near_misses.into_iter().map(|(entry, missing)| Self { entry: entry.to_string(), missing }).collect()
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not wanted by the white list entry {}: this does not hold: {}", self.entry, self.missing)
    }
}
