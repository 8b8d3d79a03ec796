// SPDX-License-Identifier: GPL-3.0-or-later
//! The contexts of a message besides its first words: the letter that it answers, the message that it forwards. If a context was never
//! seen, the words above it were written for it, however often those words come. The same holds for the last words of a message below a
//! warning that a gateway puts above all mail.

use super::content::Content;
use super::sample::{Scheme, sample};
use super::slots::ContextKind;

/// Own words up to which a context matters: an answer with a company's disclaimer below it.
pub(super) const FEW_OWN: usize = 400;

/// Words from which on a text can be recognised.
const ENOUGH: usize = 9;

/// The last words are one in this many.
const LAST: usize = 3;

/// Evenly weighted: nothing stands above the quoted text itself.
const SCHEME: Scheme = Scheme { slots: 1, head: false, last: Scheme::FULL, ..Scheme::SHIPPED };

/// The length in words of the quoted text and the enclosed message, or else of the message's last words, and the hashes of the passages
/// that identify each; the first hash is reported. A message of many own words has only the last words, and not even those if it has a
/// payload.
pub(super) fn contexts(content: &Content, has_payload: bool) -> Vec<(ContextKind, usize, Vec<u64>)> {
    let of = |kind: ContextKind, words: &[u64]| {
        let slots = if words.len() < ENOUGH { Vec::new() } else { sample(words, &SCHEME) };
        let hashes: Vec<u64> = slots.into_iter().flatten().map(|passage| passage.hash).collect();
        (!hashes.is_empty()).then_some((kind, words.len(), hashes))
    };
    let enclosed: Vec<u64> =
        content.enclosed.iter().flat_map(|words| &content.words[words.clone()]).copied().collect();
    let own = content.words.len() - enclosed.len();
    let quoted = content.quoted.as_ref().map_or(&[][..], |quoted| &quoted.words);
    let quoted = of(ContextKind::Quoted, quoted).filter(|_| own <= FEW_OWN);
    let enclosed = of(ContextKind::Enclosed, &enclosed).filter(|_| (ENOUGH..=FEW_OWN).contains(&own));
    let mut contexts: Vec<_> = quoted.into_iter().chain(enclosed).collect();
    if contexts.is_empty() && !has_payload {
        let last = content.words.len() / LAST;
        contexts.extend(of(ContextKind::Last, &content.words[content.words.len() - last..]));
    }
    contexts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near::product::constant;
    use std::ops::Range;

    fn words(range: Range<u64>) -> Vec<u64> {
        range.map(|n| constant(n ^ 0xC0_17E7)).collect()
    }

    /// A message with so many own words, words of an enclosed message, and quoted words.
    fn content(own: u64, enclosed: u64, quoted: u64) -> Content {
        let own = words(0..own);
        let begin = own.len();
        let words = |from: u64, number: u64| words(from..from + number);
        let all = [own, words(10_000, enclosed)].concat();
        let enclosed = (enclosed > 0).then_some(begin..all.len()).into_iter().collect();
        let quoted = Content { words: words(20_000, quoted), ..Content::default() };
        Content { words: all, enclosed, quoted: Some(Box::new(quoted)), ..Content::default() }
    }

    /// The number of passages of the quote and of the enclosed message.
    fn passages(own: u64, enclosed: u64, quoted: u64) -> [usize; 2] {
        let contexts = contexts(&content(own, enclosed, quoted), false);
        let has =
            |kind| contexts.iter().find(|context| context.0 == kind).map_or(0, |(.., hashes)| hashes.len());
        assert_eq!(
            has(ContextKind::Last) > 0,
            contexts.len() == 1 && has(ContextKind::Quoted) + has(ContextKind::Enclosed) == 0
        );
        [has(ContextKind::Quoted), has(ContextKind::Enclosed)]
    }

    #[test]
    fn few_own_words_have_contexts() {
        let probes = SCHEME.probes;
        assert_eq!(passages(10, 0, 40), [probes, 0]);
        assert_eq!(passages(10, 40, 0), [0, probes]);
        assert_eq!(passages(10, 40, 40), [probes, probes]);
        let few = FEW_OWN as u64;
        assert_eq!(passages(few, 1_000, 40), [probes, probes], "enclosed words are not own");
        assert_eq!(passages(few + 1, 1_000, 40), [0, 0]);
        assert_eq!(contexts(&Content::default(), false), []);
    }

    #[test]
    fn too_few_words_are_no_context() {
        assert_eq!(passages(10, 8, 8), [0, 0]);
        assert_eq!(passages(10, 9, 9), [SCHEME.probes; 2]);
        // The enclosed message is the message in this case.
        assert_eq!(passages(8, 40, 40), [SCHEME.probes, 0]);
        assert_eq!(passages(9, 40, 40), [SCHEME.probes; 2]);
    }

    /// Its passages do not depend on the words above it, and another quote has others.
    #[test]
    fn a_quote_is_recognised() {
        let of = |own, from| {
            let mut content = content(own, 0, 0);
            content.quoted = Some(Box::new(Content { words: words(from..from + 60), ..Content::default() }));
            contexts(&content, false)[0].2.clone()
        };
        assert_eq!(of(10, 500), of(300, 500));
        assert!(of(10, 500).iter().all(|hash| !of(10, 600).contains(hash)));
    }

    /// They do not depend on the words above them.
    #[test]
    fn last_words_are_a_third_of_a_message_without_another_context() {
        let of = |own: Vec<u64>| contexts(&Content { words: own, ..Content::default() }, false);
        let ends = of([words(0..60), words(500..530)].concat());
        assert_eq!(ends, of([words(600..660), words(500..530)].concat()));
        assert_eq!(
            (ends.len(), ends[0].0, ends[0].1, ends[0].2.len()),
            (1, ContextKind::Last, 30, SCHEME.probes)
        );
        assert_ne!(ends, of([words(0..60), words(700..730)].concat()));
        assert_eq!(of(words(0..26)), [], "8 words");
        assert_eq!(of(words(0..2_000))[0].1, 666);
        assert_eq!(contexts(&Content { words: words(0..90), ..Content::default() }, true), [], "a payload");
    }
}
