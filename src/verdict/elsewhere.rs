// SPDX-License-Identifier: GPL-3.0-or-later
//! What tables elsewhere are to be asked about a message before it is decided on.

use super::content::Content;
use super::envelope::Envelope;
use super::rules::Rules;
use crate::policy::{Counts, Facts, Party, Question, Terms};

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
