// SPDX-License-Identifier: GPL-3.0-or-later
//! What tables elsewhere, and DNS, are to be asked about a message before it is decided on.

use super::content::Content;
use super::envelope::Envelope;
use super::rules::Rules;
use bulkmark_policy::{By, Counts, Facts, Match, Party, Proven, Question, Terms};

/// The questions about a message that is bulk for some of these parties, and that no entry of theirs wants yet; and whether they are
/// all: of very many recipients not all are asked for.
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

/// What is to be verified of a message that is bulk for some of these parties: what it claims and an entry of theirs asks for, or would show
/// that it is from somebody to whom they wrote. Tables elsewhere have answered.
#[must_use]
pub fn to_verify(
    rules: &Rules,
    parties: &[Party<'_>],
    envelope: &Envelope,
    content: &Content,
    counts: Counts,
) -> Proven {
    let mut asked = Proven::default();
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

/// The entry of a white list by which this recipient, for whom that policy decides, wants the message, whatever its count.
#[must_use]
pub fn wanted_by(
    rules: &Rules,
    by: By,
    envelope: &Envelope,
    content: &Content,
    recipient: &str,
) -> Option<Match> {
    let facts = content.facts(envelope, rules);
    let lists = rules.terms(by).lists;
    lists.iter().find_map(|list| list.message(&facts).or_else(|| list.recipients(&facts)(recipient)))
}
