// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether a message is of a mailing that is known by its signatures: by the body, or by as much agreement of the other signatures as
//! bulk needs.

use bulkmark_signature::Signatures;
use bulkmark_signature::near::{Near, Seen};
use bulkmark_types::Signature;
use std::collections::HashSet;

/// More than a few passages in common ever give.
const WHOLE: u32 = 1 << 20;

/// Whether a message with these signatures is of the mailing `known`. `counted` is how often its signatures were seen: passages that keep
/// coming with new text are no evidence. Where that is not known, only the body is. A mailing that is known by one signature alone has
/// every message with that signature. Costs a look for each signature of the message.
#[must_use]
pub fn is_of(known: &HashSet<Signature>, signatures: &Signatures, counted: Option<&Seen>) -> bool {
    let has = |signature: Signature| known.contains(&signature);
    if signatures.body.is_ok_and(has) {
        return true;
    }
    let near = &signatures.near;
    if known.len() <= 1 {
        return near.reported().any(has);
    }
    let Some(counted) = counted else { return false };
    let mut said: Vec<(Signature, u32)> = Vec::new();
    for signature in near.reported().chain(near.looked_up()).filter(|&signature| has(signature)) {
        if !said.iter().any(|(known, _)| *known == signature) {
            said.push((signature, WHOLE));
        }
    }
    !said.is_empty() && agreement(near, &said, counted) >= WHOLE
}

/// The weight by which so many of the signatures agree as bulk needs, of what is said by each.
pub(super) fn agreement(near: &Near, said: &[(Signature, u32)], counted: &Seen) -> u32 {
    let mut seen = Seen::default();
    for &(of, weight) in said {
        seen.add(&[of], &[weight]);
        if counted.known(of).is_block() {
            // As many messages with new text above it as make it a block.
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

    /// A notice to somebody, of enough text for near signatures.
    fn notice(name: &str, words: &str) -> Signatures {
        let text: String = (0..40)
            .map(|n| format!("{words}{n} of the programme is at {n} o'clock in hall {n}.\n"))
            .collect();
        let raw = format!("From: a@news.example\nSubject: n\n\nDear {name},\n\n{text}\nYours\n");
        Content::of(&RawMessage::from_bytes(raw.as_bytes()).unwrap(), &Rules::default()).signatures
    }

    #[test]
    fn a_mailing_is_known_again_though_its_copies_differ() {
        let (one, other, unlike) =
            (notice("Anna", "part"), notice("Benedikt", "part"), notice("Anna", "bit"));
        let near = one.near.nominated(&Seen::default(), true);
        let all: HashSet<_> = one.body.ok().into_iter().chain(near).collect();
        let of = |signatures: &Signatures| is_of(&all, signatures, Some(&Seen::default()));
        assert!(one.body != other.body && all.len() > 4);
        assert_eq!((of(&one), of(&other), of(&unlike)), (true, true, false));
        assert!(!is_of(&all, &other, None), "what keeps coming with new text is not known then");
    }

    #[test]
    fn one_signature_stands_for_the_messages_that_have_it() {
        let (one, other) = (notice("Anna", "part"), notice("Benedikt", "part"));
        let body: HashSet<_> = one.body.ok().into_iter().collect();
        assert_eq!((is_of(&body, &one, None), is_of(&body, &other, None)), (true, false));
        let near: HashSet<_> = one.near.reported().take(1).collect();
        assert!(is_of(&near, &one, None));
        assert!(!is_of(&HashSet::new(), &one, Some(&Seen::default())));
    }
}
