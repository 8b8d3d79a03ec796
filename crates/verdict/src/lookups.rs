// SPDX-License-Identifier: GPL-3.0-or-later
//! The questions to remote tables and to DNS that must be answered before a message is decided on.

use super::content::Content;
use super::envelope::Envelope;
use super::rules::Rules;
use bulkmark_policy::{Counts, Facts, Match, Party, PolicyRef, Question, Terms, VerifiedNames};

/// The questions to remote tables about a message that is bulk for some of these parties and not yet wanted by their entries; and whether
/// these are all: for a message with very many recipients they are not.
#[must_use]
pub fn questions(
    rules: &Rules,
    parties: &[Party<'_>],
    envelope: &Envelope,
    content: &Content,
    counts: Counts,
) -> (Vec<Question>, bool) {
    let (mut questions, mut is_all) = (Vec::new(), true);
    for party in parties.iter().filter(|party| rules.judges(party.by)) {
        let Terms { thresholds, lists, .. } = rules.terms(party.by);
        if counts.reach(thresholds) {
            let facts = Facts { recipients: &party.recipients, ..content.facts(envelope, rules) };
            for list in lists {
                let (more, is_whole) = list.questions(&facts);
                questions.extend(more);
                is_all &= is_whole;
            }
        }
    }
    (questions, is_all)
}

/// The names to verify for a message that is bulk for some of these parties: claimed names that an entry of theirs needs, or that would
/// verify a correspondent. Remote tables must have answered.
#[must_use]
pub fn to_verify(
    rules: &Rules,
    parties: &[Party<'_>],
    envelope: &Envelope,
    content: &Content,
    counts: Counts,
) -> VerifiedNames {
    let mut asked = VerifiedNames::default();
    for party in parties.iter().filter(|party| rules.judges(party.by)) {
        let Terms { thresholds, lists, .. } = rules.terms(party.by);
        if rules.authentication.is_here() && counts.reach(thresholds) {
            let facts = Facts { recipients: &party.recipients, ..content.facts(envelope, rules) };
            lists.iter().for_each(|list| asked.extend(list.to_verify(&facts)));
            let wrote = content.correspondences.iter().filter(|of| party.recipients.contains(&of.recipient));
            wrote.for_each(|of| asked.extend(of.claims(&content.claimed)));
        }
    }
    asked
}

/// The entry of a white list by which this recipient, who has that policy, wants the message, whatever its count.
#[must_use]
pub fn wanted_by(
    rules: &Rules,
    by: PolicyRef,
    envelope: &Envelope,
    content: &Content,
    recipient: &str,
) -> Option<Match> {
    let facts = content.facts(envelope, rules);
    let lists = rules.terms(by).lists;
    lists.iter().find_map(|list| list.message(&facts).or_else(|| list.recipients(&facts)(recipient)))
}
