// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether a message belongs to a mailing of known signatures: by the body, or by as much agreement of the other signatures as bulk needs.

use bulkmark_signature::Signatures;
use bulkmark_signature::near::{Near, Seen};
use bulkmark_types::Signature;
use std::collections::HashSet;

/// A weight above that of a few common passages.
const CERTAIN: u32 = 1 << 20;

/// Whether a message with these signatures belongs to the mailing `known`. `counted` has the counts of its signatures: passages that keep
/// coming with new text are no evidence. Without it, only the body counts. If the mailing has only one known signature, every message with
/// this signature belongs to it. Costs a look-up for each signature of the message.
#[must_use]
pub fn belongs_to(known: &HashSet<Signature>, signatures: &Signatures, counted: Option<&Seen>) -> bool {
    let has = |signature: Signature| known.contains(&signature);
    if signatures.body.is_ok_and(has) {
        return true;
    }
    let near = &signatures.near;
    if known.len() <= 1 {
        return near.reported().any(has);
    }
    let Some(counted) = counted else { return false };
    let mut weights: Vec<(Signature, u32)> = Vec::new();
    for signature in near.reported().chain(near.looked_up()).filter(|&signature| has(signature)) {
        if !weights.iter().any(|(known, _)| *known == signature) {
            weights.push((signature, CERTAIN));
        }
    }
    !weights.is_empty() && agreement(near, &weights, counted) >= CERTAIN
}

/// The weight on which as many of the signatures agree as bulk needs, given the weights of some.
pub(super) fn agreement(near: &Near, weights: &[(Signature, u32)], counted: &Seen) -> u32 {
    let mut seen = Seen::default();
    for &(of, weight) in weights {
        seen.add(&[of], &[weight]);
        if counted.known(of).is_block() {
            // With as many strays as make it a block.
            seen.add_strays(&[of], &[weight.max(2)]);
        }
    }
    near.weigh(&seen, counted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Rules};
    use bulkmark_mail::RawMessage;

    /// A notice with enough text for near signatures.
    fn notice(name: &str, words: &str) -> Signatures {
        let text: String = (0..40)
            .map(|n| format!("{words}{n} of the programme is at {n} o'clock in hall {n}.\n"))
            .collect();
        let raw = format!("From: a@news.example\nSubject: n\n\nDear {name},\n\n{text}\nYours\n");
        Content::of(&RawMessage::from_bytes(raw.as_bytes()), &Rules::default()).signatures
    }

    #[test]
    fn a_mailing_is_recognized_although_its_copies_differ() {
        let (one, other, unlike) =
            (notice("Anna", "part"), notice("Benedikt", "part"), notice("Anna", "bit"));
        let near = one.near.nominated(&Seen::default(), true);
        let all: HashSet<_> = one.body.ok().into_iter().chain(near).collect();
        let of = |signatures: &Signatures| belongs_to(&all, signatures, Some(&Seen::default()));
        assert!(one.body != other.body && all.len() > 4);
        assert_eq!((of(&one), of(&other), of(&unlike)), (true, true, false));
        assert!(!belongs_to(&all, &other, None), "without counts, blocks are unknown");
    }

    #[test]
    fn one_signature_stands_for_the_messages_that_have_it() {
        let (one, other) = (notice("Anna", "part"), notice("Benedikt", "part"));
        let body: HashSet<_> = one.body.ok().into_iter().collect();
        assert_eq!((belongs_to(&body, &one, None), belongs_to(&body, &other, None)), (true, false));
        let near: HashSet<_> = one.near.reported().take(1).collect();
        assert!(belongs_to(&near, &one, None));
        assert!(!belongs_to(&HashSet::new(), &one, Some(&Seen::default())));
    }
}
