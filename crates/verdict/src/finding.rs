// SPDX-License-Identifier: GPL-3.0-or-later
//! The finding about a message: from its counts to a decision.

use super::content::Content;
use super::envelope::Envelope;
use super::reason::{Exempt, Unknown};
use super::rules::Rules;
use bulkmark_policy::{Backings, Counts, Decision, Facts, Party, Terms, TrapResult, decide, settle};
use bulkmark_types::Signature;

/// The result of an inquiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It was neither counted nor judged.
    Exempt(Exempt),
    /// It could not be judged; the text is only for the log.
    Unknown(Unknown, String),
    /// It is the test message, which is bulk and never counted; with its `body` signature.
    Canary(Option<Signature>),
    /// It was counted.
    Counted(Counted),
}

impl Finding {
    /// The finding of a message that needs no count: the canary, or too little text.
    #[must_use]
    pub fn uncounted(content: &Content) -> Option<Self> {
        let signatures = &content.signatures;
        if signatures.canary {
            return Some(Self::Canary(signatures.body.ok()));
        }
        signatures.is_empty().then_some(Self::Exempt(Exempt::LowInformation))
    }
}

/// The finding of a message with counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The counts.
    pub counts: Counts,
    /// Its `body` signature.
    pub signature: Option<Signature>,
    /// Verdict and action.
    pub decision: Decision,
    /// The reason why a needed name could not be verified, if so.
    pub unverified: Option<&'static str>,
    /// The age of other servers' counts in seconds, if it is too great.
    pub stale: Option<u64>,
    /// The bound below which its counts may be too low, since a partial copy holds only bulk; `None` if all are known.
    pub unknown_below: Option<u32>,
    /// The result of the traps among its recipients, if there are any.
    pub trap: Option<TrapResult>,
    /// Whether a count has reached its threshold, wanted or not.
    pub is_bulk: bool,
}

impl Counted {
    /// Decides on a message to these recipients with these counts and their sources. `staleness` is the age of other servers' counts in
    /// seconds, if there are other servers. Returns `None` if no copy is judged.
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
        // One's own newsletter is bulk too; actions on accounts do not depend on one message.
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

    /// A count as header, log and JSON show it: with a plus if it may be too low.
    #[must_use]
    pub fn shown(&self, count: u32) -> String {
        let plus = if self.unknown_below.is_some_and(|bound| count < bound) { "+" } else { "" };
        format!("{count}{plus}")
    }

    /// The same for the recipients of the envelope. A message that no policy judges is exempt.
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
