// SPDX-License-Identifier: GPL-3.0-or-later
//! The answer to programs about a message: the JSON of `bulkmark check` and of the HTTP interface.

use super::content::Content;
use super::envelope::Envelope;
use super::finding::{Counted, Finding};
use super::reason::Exempt;
use super::rules::Rules;
use super::source_networks::SourceNetworks;
use bulkmark_policy::Verdict;
use serde::Serialize;
use std::fmt;

/// The answer to programs about a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The verdict.
    pub verdict: String,
    /// The action that the milter would take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The policy that decides, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The policy of another recipient that makes the action milder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milder: Option<String>,
    /// The count of its body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyCount>,
    /// The count of its near signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<NearCount>,
    /// User reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spam: Option<SpamWeight>,
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
    /// The reason why there are no counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The count of its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BodyCount {
    /// The signature.
    pub signature: String,
    /// The count.
    pub count: u32,
    /// The threshold of bulk.
    pub threshold: u32,
}

/// The weight of spam reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpamWeight {
    /// The weight.
    pub weight: String,
    /// The threshold of spam.
    pub threshold: u32,
}

/// The count of its near signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearCount {
    /// The signatures that the message would report.
    pub signatures: Vec<String>,
    /// The count.
    pub count: u32,
    /// The threshold of bulk.
    pub threshold: u32,
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

impl Answer {
    /// The answer for a finding. `content` is known if the message was read.
    #[must_use]
    pub fn of(rules: &Rules, envelope: &Envelope, content: Option<&Content>, finding: &Finding) -> Self {
        match (finding, content) {
            (Finding::Counted(counted), Some(content)) => Self::counted(rules, envelope, content, counted),
            (Finding::Counted(counted), None) => {
                Self::uncounted(counted.decision.verdict, "it was not read".to_owned())
            }
            (Finding::Canary(_), _) => Self::uncounted(Verdict::Bulk, "canary".to_owned()),
            (Finding::Exempt(Exempt::LowInformation), _) => {
                let why = content.and_then(|content| content.signatures.body.err());
                let reason = why.map_or_else(|| Exempt::LowInformation.to_string(), |low| low.to_string());
                Self::uncounted(Verdict::Exempt, reason)
            }
            (Finding::Exempt(reason), _) => {
                // The policy that exempts all copies.
                let by = rules
                    .parties(envelope)
                    .first()
                    .filter(|_| *reason == Exempt::Policy)
                    .map(|party| party.by);
                let policy = by.and_then(|by| rules.name(by)).map(str::to_owned);
                Self { policy, ..Self::uncounted(Verdict::Exempt, reason.to_string()) }
            }
            (Finding::Unknown(reason, _), _) => Self::uncounted(Verdict::Unknown, reason.to_string()),
        }
    }

    fn uncounted(verdict: Verdict, reason: String) -> Self {
        Self { verdict: verdict.to_string(), reason: Some(reason), ..Self::default() }
    }

    fn counted(rules: &Rules, envelope: &Envelope, content: &Content, counted: &Counted) -> Self {
        let Counted { counts, signature, decision, .. } = counted;
        let thresholds = rules.terms(decision.by).thresholds;
        let name = |by| rules.name(by).map(str::to_owned);
        let body = signature.zip(counts.body).map(|(signature, count)| BodyCount {
            signature: signature.to_string(),
            count,
            threshold: thresholds.body.get(),
        });
        let spam = counts
            .spam
            .filter(|spam| spam.units() > 0)
            .map(|spam| SpamWeight { weight: spam.to_string(), threshold: thresholds.spam.get() });
        let near = counts.near.map(|count| NearCount {
            signatures: content.signatures.near.reported().map(|signature| signature.to_string()).collect(),
            count,
            threshold: thresholds.near.configured(),
        });
        let whitelist = decision.whitelist.as_ref().map(ToString::to_string);
        let sources = SourceNetworks::of(rules, envelope, decision);
        let missed = if whitelist.is_none() { Missed::all(rules, envelope, content) } else { Vec::new() };
        Self {
            verdict: decision.verdict.to_string(),
            action: Some(decision.action.to_string()),
            policy: name(decision.by),
            milder: decision.milder.and_then(name),
            body,
            near,
            spam,
            whitelist,
            missed,
            sources,
            held: decision.held.map(|held| held.to_string()),
            allowed_by: decision.allowed_by.as_ref().map(|site| site.to_string()),
            would: decision.would.map(|would| would.action.to_string()),
            rehearsal: decision.would.map(|would| would.why.why().to_owned()),
            reason: None,
        }
    }
}
