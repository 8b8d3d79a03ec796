// SPDX-License-Identifier: GPL-3.0-or-later
//! What was found of a message: from its counts to a decision.

use super::content::Content;
use super::envelope::Envelope;
use super::reason::{Exempt, Unknown};
use super::rules::Rules;
use bulkmark_policy::{Backings, Counts, Decision, Facts, Party, Sprung, Terms, decide, settle};
use bulkmark_types::Signature;

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
    /// Why a white list that asks for verified mail does not know whether it wants the message, if so.
    pub unverified: Option<&'static str>,
    /// Seconds since other servers were heard, where that is too long ago.
    pub stale: Option<u64>,
    /// Below which count those of this message may be too low, since only bulk is held here; none where all are known.
    pub unknown_below: Option<u32>,
    /// What the traps among its recipients made of it, if there are any.
    pub trap: Option<Sprung>,
    /// Whether a count has reached its threshold, whether that is wanted or not.
    pub is_bulk: bool,
}

impl Counted {
    /// Decides on a message to these recipients with these counts, which come from there. `staleness` is the age of other servers'
    /// counts in seconds, where there are other servers. None where nobody's copy is to be judged.
    #[must_use]
    pub fn new(
        rules: &Rules,
        (envelope, parties): (&Envelope, &[Party<'_>]),
        content: &Content,
        (counts, backings): (Counts, Backings),
        staleness: Option<u64>,
    ) -> Option<Self> {
        let signature = content.signatures.body.ok();
        let facts = content.facts(envelope, rules);
        let known_to = content.known_to(&facts, rules);
        let facts = Facts { known_to: &known_to, ..facts };
        let stale = staleness.filter(|&age| age > rules.max_staleness);
        let is_stale = stale.is_some() && !rules.despite.stale;
        let is_unanswered = envelope.answers.failed.is_some() && !rules.despite.unanswered;
        let is_unverified = content.unverified.is_some() && !rules.despite.unverified;
        // A newsletter of one's own is bulk, too; what is done about accounts is not decided by one message.
        let marks_only = is_stale || is_unanswered || is_unverified || rules.is_outbound(envelope);
        let of_party = |party: &Party<'_>| {
            let terms = rules.terms(party.by);
            let marking;
            let actions = if marks_only {
                marking = terms.actions.marking();
                &marking
            } else {
                terms.actions
            };
            let rehearsal = rules.rehearsal(envelope, actions, &party.recipients);
            let facts = Facts { recipients: &party.recipients, ..facts };
            decide(counts, backings, Terms { actions, rehearsal, ..terms }, &facts)
        };
        let decisions: Vec<_> =
            parties.iter().map(|party| (party.by, rules.judges(party.by).then(|| of_party(party)))).collect();
        let decision = settle(&decisions)?;
        let is_bulk = counts.are_bulk(rules.terms(decision.by).thresholds);
        let unverified = content.unverified.filter(|_| decision.verdict.is_unwanted());
        Some(Self {
            counts,
            signature,
            decision,
            unverified,
            stale,
            unknown_below: None,
            trap: None,
            is_bulk,
        })
    }

    /// A count for people and programs: what may be too low has a plus.
    #[must_use]
    pub fn shown(&self, count: u32) -> String {
        let plus = if self.unknown_below.is_some_and(|bound| count < bound) { "+" } else { "" };
        format!("{count}{plus}")
    }

    /// The same where its recipients are those of the envelope. What is not to be judged is exempt.
    #[must_use]
    pub fn find(
        rules: &Rules,
        envelope: &Envelope,
        content: &Content,
        known: (Counts, Backings),
        staleness: Option<u64>,
    ) -> Finding {
        let parties = rules.parties(envelope);
        Self::new(rules, (envelope, &parties), content, known, staleness)
            .map_or(Finding::Exempt(Exempt::Policy), Finding::Counted)
    }
}
