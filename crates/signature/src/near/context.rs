// SPDX-License-Identifier: GPL-3.0-or-later
//! What a message is about, besides its own words: the letter that it answers, the message that it hands on. Where that was never
//! seen, the words above it were written for it, however often they come.

use super::content::Content;
use super::sample::{Scheme, sample};

/// Own words up to which what stands with them matters: an answer, with the disclaimer of a company below it.
pub(super) const FEW_OWN: usize = 400;

/// Words of a text that can be known again.
const ENOUGH: usize = 9;

/// Evenly weighted, since nothing is put before what is quoted.
const SCHEME: Scheme = Scheme { slots: 1, head: false, last: Scheme::FULL, ..Scheme::SHIPPED };

/// The passages by which the quoted text and the enclosed message are known again, their hashes; the first of each is the one that is
/// reported. Empty where there is none, or too little of it, and for a message of many own words.
pub(super) fn contexts(content: &Content) -> [Vec<u64>; 2] {
    let enclosed: Vec<u64> =
        content.enclosed.iter().flat_map(|words| &content.words[words.clone()]).copied().collect();
    let own = content.words.len() - enclosed.len();
    if own > FEW_OWN {
        return [Vec::new(), Vec::new()];
    }
    let quoted = content.quoted.as_ref().map_or(&[][..], |quoted| &quoted.words);
    let enclosed = if own >= ENOUGH { &enclosed[..] } else { &[] };
    [quoted, enclosed].map(|words| {
        let slots = if words.len() < ENOUGH { Vec::new() } else { sample(words, &SCHEME) };
        slots.into_iter().flatten().map(|passage| passage.hash).collect()
    })
}
