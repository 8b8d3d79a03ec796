// SPDX-License-Identifier: GPL-3.0-or-later
//! The amount and place of new text in a message: passages are new or known at a few places, and new passages in a row are new text.

use super::known::Seen;
use super::sample::Scheme;
use super::slots::{ContextKind, Near};

/// New passages in a row that are new text. One or two may be new because of one inserted word.
const ROW: usize = 3;

/// The same around known text, in a message without a payload of the copies: their sender wants an answer, by a link, a number or an
/// account. A message without it is more likely a letter.
const ROW_WITHOUT_PAYLOAD: usize = 1;

/// Known passages for each new one between them, up to which text is scattered.
const SCATTERED: usize = 4;

/// New text of a message, in words: a lower bound, since a new passage may begin eleven words before its first new word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Runs {
    /// The longest row at an end of the message.
    pub(super) end: usize,
    /// The longest row anywhere.
    pub(super) any: usize,
    /// All text before the first known passage and behind the last, if there is a row. Without a payload one new passage is enough, text
    /// between known passages counts as well, and a new last context counts by itself.
    pub(super) all: usize,
    /// Whether new passages stand between known ones, too, more than one for each four known: a program replaced words everywhere. A letter
    /// above known text leaves that text as it is.
    pub(super) is_scattered: bool,
}

impl Near {
    /// The places of passages that are new or known, in the order of the text. In each slot, passages before the first one that was ever seen
    /// are new: an earlier message with them would have reported one of them. An unseen passage behind the known one is no evidence.
    fn places(&self, seen: &Seen) -> Vec<(usize, bool)> {
        let mut places = Vec::new();
        for slot in &self.slots {
            let mut is_before = true;
            for (passage, signature) in &slot.passages {
                let is_known = seen.has(*signature);
                is_before &= !is_known;
                // A passage that begins at the end continues with the first words.
                let wraps = passage.at + Scheme::SHIPPED.reach() > self.words;
                if is_known || is_before && !wraps {
                    places.push((passage.at, is_known));
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The new text; `asks` if the message has the payload of copies, for [`Runs::all`].
    pub(super) fn runs(&self, asks: bool, seen: &Seen) -> Runs {
        let reach = Scheme::SHIPPED.reach();
        let places = self.places(seen);
        let (Some(&(first, _)), Some(&(last, _))) = (places.first(), places.last()) else {
            return Runs::default();
        };
        let least = if asks { ROW } else { ROW_WITHOUT_PAYLOAD };
        let new_last =
            self.contexts.iter().find(|context| context.kind == ContextKind::Last && context.is_new(seen));
        let mut below = new_last.map_or(0, |last| last.words);
        let (mut runs, mut end_of_known) = (Runs::default(), 0);
        let (mut known, mut between) = (0, 0);
        for row in places.chunk_by(|(_, a), (_, b)| a == b) {
            let (Some(&(begin, is_known)), Some(&(end, _))) = (row.first(), row.last()) else { continue };
            if is_known {
                end_of_known = end + reach;
                known += row.len();
                continue;
            }
            let (is_top, is_bottom) = (begin == first, end == last);
            between += if is_top || is_bottom { 0 } else { row.len() };
            if row.len() >= least {
                match places.iter().find(|&&(at, is_known)| is_known && at >= end) {
                    next if is_top => runs.all += next.map_or(self.words, |&(at, _)| at),
                    None => below = below.max(self.words.saturating_sub(end_of_known)),
                    Some(&(at, _)) if !asks => runs.all += at.saturating_sub(end_of_known),
                    Some(_) => (),
                }
            }
            if row.len() < ROW {
                continue;
            }
            let words = match (is_top, is_bottom) {
                (true, _) => end + 1,
                (false, true) => self.words.saturating_sub(begin + reach - 1),
                (false, false) => (end + 1).saturating_sub(begin + reach - 1),
            };
            runs.any = runs.any.max(words);
            if is_top || is_bottom {
                runs.end = runs.end.max(words);
            }
        }
        runs.all = (runs.all + below).min(self.words);
        runs.is_scattered = SCATTERED * between > known;
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near::sample::Passage;
    use crate::near::slots::{Context, Slot};
    use bulkmark_types::Signature;

    /// A passage that begins at this word.
    fn at(at: u8) -> (Passage, Signature) {
        (Passage { hash: u64::from(at), at: usize::from(at) }, Signature::from_bytes([at; 16]))
    }

    /// The new text of a message of 100 words with these slots, if these places were seen before.
    fn runs(slots: &[&[u8]], known: &[u8]) -> Runs {
        let slot =
            |places: &&[u8]| Slot { passages: places.iter().map(|&place| at(place)).collect(), wraps: false };
        let near = Near { slots: slots.iter().map(slot).collect(), words: 100, ..Near::default() };
        let mut seen = Seen::default();
        for &place in known {
            seen.add(&[at(place).1], &[1]);
        }
        near.runs(true, &seen)
    }

    /// The same where each slot has one passage.
    fn of_places(new: &[u8], known: &[u8]) -> Runs {
        let slots: Vec<[u8; 1]> = new.iter().chain(known).map(|&place| [place]).collect();
        let slots: Vec<&[u8]> = slots.iter().map(|slot| &slot[..]).collect();
        runs(&slots, known)
    }

    #[test]
    fn new_text_stands_at_the_top_the_bottom_or_between() {
        // The last new passage begins with a new word.
        assert_eq!(of_places(&[0, 10, 20], &[40, 60]), Runs { end: 21, any: 21, all: 40, ..Runs::default() });
        // The last word of the first new passage is new; all words before it may be known.
        assert_eq!(
            of_places(&[60, 70, 80], &[0, 20, 40]),
            Runs { end: 29, any: 29, all: 48, ..Runs::default() }
        );
        assert_eq!(
            of_places(&[30, 40, 60], &[0, 20, 70, 80]),
            Runs { any: 20, is_scattered: true, ..Runs::default() }
        );
        let both = of_places(&[0, 5, 9, 60, 70, 80], &[30, 40]);
        assert_eq!(both, Runs { end: 29, any: 29, all: 30 + 48, ..Runs::default() });
        assert_eq!(of_places(&[0, 30, 70], &[]), Runs { end: 71, any: 71, all: 100, ..Runs::default() });
    }

    #[test]
    fn two_new_passages_in_a_row_are_no_new_text() {
        let scattered = Runs { is_scattered: true, ..Runs::default() };
        assert_eq!(of_places(&[0, 20, 50, 60, 80, 85], &[30, 40, 70]), scattered);
        assert_eq!(of_places(&[0, 20], &[]), Runs::default());
        assert_eq!(of_places(&[], &[0, 20, 40]), Runs::default());
        assert_eq!(of_places(&[], &[]), Runs::default());
    }

    /// A warning above a letter, and a notice below it.
    #[test]
    fn text_between_known_passages_is_new_text_without_a_payload() {
        let slots = |places: &[u8]| {
            places.iter().map(|&place| Slot { passages: vec![at(place)], wraps: false }).collect()
        };
        let all = |asks, places: &[u8], known: &[u8]| {
            let near = Near { slots: slots(places), words: 100, ..Near::default() };
            let mut seen = Seen::default();
            known.iter().for_each(|&place| seen.add(&[at(place).1], &[1]));
            near.runs(asks, &seen).all
        };
        let known = [0, 10, 60, 80];
        // A known passage reaches over twelve words.
        assert_eq!(all(false, &[0, 10, 30, 60, 80], &known), 60 - 22);
        assert_eq!(all(false, &[0, 10, 30, 60, 70, 80], &known), 60 - 22 + 80 - 72, "two rows");
        assert_eq!(all(true, &[0, 10, 30, 35, 40, 60, 80], &known), 0);
        assert_eq!(all(false, &known, &known), 0);
    }

    /// A sender of copies wants an answer, so less new text makes a letter of a message without one.
    #[test]
    fn one_new_passage_is_new_text_without_a_payload() {
        let (new, known) = ([80], [0, 20, 40, 60]);
        assert_eq!(of_places(&new, &known), Runs::default());
        let slots = [0, 20, 40, 60, 80].map(|place| Slot { passages: vec![at(place)], wraps: false });
        let near = Near { slots: slots.into(), words: 100, ..Near::default() };
        let mut seen = Seen::default();
        known.iter().for_each(|&place| seen.add(&[at(place).1], &[1]));
        assert_eq!(near.runs(false, &seen), Runs { end: 0, any: 0, all: 28, ..Runs::default() });
    }

    /// Most passages stand at the top, so last words below them may be new without another new passage.
    #[test]
    fn new_last_words_are_new_text() {
        let known = [0, 20, 40];
        let slots = known.map(|place| Slot { passages: vec![at(place)], wraps: false }).into();
        let last = Context { kind: ContextKind::Last, words: 33, signatures: vec![at(200).1, at(201).1] };
        let near = Near { slots, contexts: vec![last], words: 100, ..Near::default() };
        let all = |known: &[u8]| {
            let mut seen = Seen::default();
            known.iter().for_each(|&place| seen.add(&[at(place).1], &[1]));
            near.runs(false, &seen).all
        };
        assert_eq!(all(&known), 33);
        assert_eq!(all(&[0, 20, 40, 201]), 0);
    }

    /// It contains the first words, so new text at the top makes it new as well.
    #[test]
    fn a_new_passage_that_wraps_is_no_evidence() {
        assert_eq!(of_places(&[60, 70, 89], &[0, 20, 40]), Runs::default());
        assert_eq!(of_places(&[60, 70, 88], &[0, 20, 40]).end, 29);
        // A known one counts: it shows that known text stands there.
        let between = Runs { any: 10, is_scattered: true, ..Runs::default() };
        assert_eq!(of_places(&[60, 70, 80], &[0, 20, 40, 95]), between);
    }

    /// A message with both passages would have reported the known one.
    #[test]
    fn a_probe_behind_a_known_one_is_no_evidence() {
        let known = [5, 15, 25];
        assert_eq!(runs(&[&[5, 50], &[15, 60], &[25, 70]], &known), Runs::default());
        let before = runs(&[&[50, 5], &[60, 15], &[70, 25]], &known);
        assert_eq!(before, Runs { end: 39, any: 39, all: 63, ..Runs::default() });
        // Known ones count at any rank in their slots.
        assert_eq!(runs(&[&[50, 5], &[60, 15], &[70, 25], &[40, 80]], &[5, 15, 25, 80]).end, 0);
    }
}
