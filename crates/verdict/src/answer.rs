// SPDX-License-Identifier: GPL-3.0-or-later
//! The answer to programs about a message: the JSON of `bulkmark check` and of the HTTP interface.

use super::circumstances::Circumstances;
use super::content::Content;
use super::envelope::Envelope;
use super::finding::{Counted, Finding};
use super::reason::Exempt;
use super::rules::Rules;
use bulkmark_policy::Verdict;
use serde::Serialize;

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
    /// The count of its body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyCount>,
    /// The count of its near signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<NearCount>,
    /// User reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spam: Option<SpamWeight>,
    /// White list, sources, orders and rehearsal.
    #[serde(flatten)]
    pub circumstances: Circumstances,
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
        Self {
            verdict: decision.verdict.to_string(),
            action: Some(decision.action.to_string()),
            policy: rules.name(decision.by).map(str::to_owned),
            body,
            near,
            spam,
            circumstances: Circumstances::of(rules, envelope, content, decision),
            reason: None,
        }
    }
}
