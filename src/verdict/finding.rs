// SPDX-License-Identifier: GPL-3.0-or-later
//! What was found of a message: from its counts to a decision.

use super::content::Content;
use super::envelope::Envelope;
use super::reason::{Exempt, Unknown};
use super::rules::Rules;
use crate::policy::{Backings, Counts, Decision, decide};
use crate::signature::Signature;

/// How far the judging came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It was neither counted nor judged.
    Exempt(Exempt),
    /// It was not judged; the text is for the log alone.
    Unknown(Unknown, String),
    /// It is the test message, which is bulk and never counted. With its `body` signature.
    Canary(Option<Signature>),
    /// It was counted.
    Counted(Counted),
}

impl Finding {
    /// What is found without a count, if that is so: of the canary, and of what says too little.
    #[must_use]
    pub fn uncounted(content: &Content) -> Option<Self> {
        let signatures = &content.signatures;
        if signatures.canary {
            return Some(Self::Canary(signatures.body.ok()));
        }
        signatures.is_empty().then_some(Self::Exempt(Exempt::LowInformation))
    }
}

/// What the counts say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// How often it was seen.
    pub counts: Counts,
    /// Its `body` signature.
    pub signature: Option<Signature>,
    /// Verdict and action.
    pub decision: Decision,
    /// Seconds since other servers were heard, where that is too long ago.
    pub stale: Option<u64>,
    /// Whether a count has reached its threshold, whether that is wanted or not.
    pub is_bulk: bool,
}

impl Counted {
    /// Decides on a message with these counts, which come from there. `staleness` is the age of other servers' counts in seconds, where there are
    /// other servers.
    #[must_use]
    pub fn new(
        rules: &Rules,
        envelope: &Envelope,
        content: &Content,
        (counts, backings): (Counts, Backings),
        staleness: Option<u64>,
    ) -> Self {
        let signature = content.signatures.body.ok();
        let facts = content.facts(envelope, rules);
        let stale = staleness.filter(|&age| age > rules.max_staleness);
        let marking;
        let unanswered = envelope.answers.failed.is_some() && !rules.act_when_unanswered;
        let actions = if unanswered || stale.is_some() && !rules.act_when_stale {
            marking = rules.actions.marking();
            &marking
        } else {
            &rules.actions
        };
        let decision = decide(counts, backings, &rules.thresholds, actions, &rules.whitelist, &facts);
        Self { counts, signature, decision, stale, is_bulk: rules.is_bulk(counts) }
    }
}
