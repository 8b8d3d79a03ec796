// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether a message looks like a letter above known text, and its reports in consequence.

use super::known::{AGREEING, ALIKE, Seen};
use super::runs::Runs;
use super::slots::{ContextKind, Near, Slot, SlotKnown};
use bulkmark_types::Signature;

/// New words at one end of a message that make it a letter from any sender.
const CERTAIN: usize = 60;

/// New words anywhere that may make it a letter.
const UNSURE: usize = 20;

/// How certain it is that a person wrote a message above or below common text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letter {
    /// It may be a copy with other words added by a program; the sender decides.
    Unsure,
    /// It has more new text than senders of copies add.
    Certain,
}

/// The reports of a message that depend on the counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FollowUp {
    /// Passages that are reported in place of blocks, and those by which copies count together.
    pub reported: Vec<Signature>,
    /// Signatures that certainly stand below new text.
    pub strays: Vec<Signature>,
    /// Signatures that may stand below new text.
    pub unsure: Vec<Signature>,
}

impl Near {
    /// The signatures that are looked up but not reported.
    #[must_use]
    pub fn looked_up(&self) -> Vec<Signature> {
        let further = self.slots.iter().flat_map(|slot| &slot.passages[1..]).map(|(_, signature)| *signature);
        let contexts = self.contexts.iter().flat_map(|context| &context.signatures[1..]).copied();
        further.chain(contexts).chain(self.unsure.iter().map(|(_, signature)| *signature)).collect()
    }

    fn passages(&self) -> impl Iterator<Item = Signature> + '_ {
        self.slots.iter().flat_map(|slot| &slot.passages).map(|(_, signature)| *signature)
    }

    fn all_things(&self) -> impl Iterator<Item = Signature> + '_ {
        let things = self.things.iter().map(|(_, signature)| *signature);
        things.chain(self.unsure.iter().map(|(_, signature)| *signature))
    }

    /// The signatures whose [`stray`](super::stray) counts [`judge`](Self::judge) needs: all that were seen before.
    pub fn stray_lookups<'a>(&'a self, seen: &'a Seen) -> impl Iterator<Item = Signature> + 'a {
        self.passages().chain(self.all_things()).chain(self.payload).filter(|&signature| seen.has(signature))
    }

    /// The signatures for which it matters how often, and from whom, they came in [unsure](Letter::Unsure) letters: those that carry the
    /// count, if the count may be more than a few.
    #[must_use]
    pub fn unsure_lookups(&self, seen: &Seen) -> Vec<Signature> {
        let carriers = self.slots.iter().filter_map(|slot| slot.carrier(seen));
        let all: Vec<Signature> =
            carriers.filter(|(_, count)| *count > ALIKE).map(|(signature, _)| signature).collect();
        let mut lookups = if all.len() > AGREEING { all } else { Vec::new() };
        lookups.extend(self.payload.filter(|&payload| seen.known(payload).count > ALIKE));
        lookups
    }

    /// Whether the message is a letter: new text above or below known text.
    #[must_use]
    pub fn letter(&self, seen: &Seen) -> Option<Letter> {
        let Runs { end, any, is_scattered, .. } = self.runs(true, seen);
        // Of scattered new passages, some stand in a row by chance.
        if end >= CERTAIN && !is_scattered {
            return Some(Letter::Certain);
        }
        let may_be = self.is_new_on_top(&|signature| !seen.has(signature))
            || any >= UNSURE
            || self.is_new_answer(seen);
        may_be.then_some(Letter::Unsure)
    }

    /// Whether new text stands above all known text: the head was never seen, and each reported passage that was never seen stands before
    /// all that were. A letter above a signature or a disclaimer looks like this in any mail program. A copy with another greeting does
    /// not, nor does one with other words here and there.
    pub(super) fn is_new_on_top(&self, is_new: &dyn Fn(Signature) -> bool) -> bool {
        let is_new = |slot: &Slot| is_new(slot.reported());
        let head_is_new = self.slots.first().is_some_and(is_new);
        // A passage that begins at the end continues with the first words.
        let new = self.slots.iter().filter(|slot| is_new(slot) && !slot.wraps);
        let last_new = new.map(Slot::place).max();
        let first_known = self.slots.iter().filter(|slot| !is_new(slot)).map(Slot::place).min();
        head_is_new && first_known.is_none_or(|known| last_new < Some(known))
    }

    /// Whether its own words, some of them known, stand with a context that was never seen: an answer in common words.
    fn is_new_answer(&self, seen: &Seen) -> bool {
        self.contexts.iter().any(|context| context.kind != ContextKind::Last && context.is_new(seen))
            && self.passages().any(|signature| seen.has(signature))
    }

    /// The reports that follow from the counts, for messages after this one: text below new text, with its sender.
    #[must_use]
    pub fn follow_up(&self, seen: &Seen) -> FollowUp {
        let mut all = FollowUp { reported: self.above_blocks(seen), ..FollowUp::default() };
        let known = self.passages().filter(|&signature| seen.has(signature));
        let letter = self.letter(seen);
        if letter.is_none() {
            all.reported.extend(self.slots.iter().filter_map(|slot| slot.joined(seen)));
        }
        match letter {
            Some(Letter::Certain) => all.strays.extend(known),
            Some(Letter::Unsure) => all.unsure.extend(known),
            None => (),
        }
        let is_alone = !self.passages().any(|signature| seen.has(signature));
        let payload = self.payload.filter(|&payload| seen.has(payload));
        // A payload in text that is unlike all others is no evidence. A payload that one sender sends with varying text is that sender's
        // own, for everybody: it also stands in others' answers.
        let is_letter = is_alone || letter.is_some();
        let is_own = |payload: &Signature| seen.known(*payload).is_own_block();
        all.strays.extend(payload.filter(|payload| is_alone || is_letter && is_own(payload)));
        all.unsure.extend(payload.filter(|_| is_letter));
        if self.rest.is_some_and(|rest| !seen.has(rest)) {
            all.strays.extend(self.all_things().filter(|&signature| seen.has(signature)));
        }
        all
    }

    /// The signatures that are nominated when a user reports the message as spam: its reported ones, with blocks replaced by the signatures
    /// reported in their place. With `all` it includes blocks: a withdrawn nomination may be older than the block.
    #[must_use]
    pub fn nominated(&self, seen: &Seen, all: bool) -> Vec<Signature> {
        let blocks = self.no_evidence(seen);
        let own = self.reported().filter(|signature| all || !blocks.contains(signature));
        own.chain(self.above_blocks(seen)).collect()
    }

    /// The signatures that are no evidence for user reports against the message, since they keep coming with other text, or may do so.
    pub(super) fn no_evidence(&self, seen: &Seen) -> Vec<Signature> {
        let passages = self.slots.iter().flat_map(|slot| {
            let known = slot.known(seen);
            let blocks = slot.passages.iter().enumerate().filter(move |(i, _)| known.may_be_block(*i));
            blocks.map(|(_, (_, signature))| *signature)
        });
        passages.chain(self.all_things().filter(|&signature| seen.known(signature).is_block())).collect()
    }

    /// For each slot that reports a block: its next passage that stands above all blocks and is none.
    fn above_blocks(&self, seen: &Seen) -> Vec<Signature> {
        let known: Vec<SlotKnown> = self.slots.iter().map(|slot| slot.known(seen)).collect();
        let slots = || self.slots.iter().zip(&known);
        let blocks = slots().flat_map(|(slot, known)| {
            slot.passages
                .iter()
                .enumerate()
                .filter(|(i, _)| known.is_block(*i))
                .map(|(_, (passage, _))| passage.at)
        });
        let Some(top) = blocks.min() else { return Vec::new() };
        let instead = |(slot, known): (&Slot, &SlotKnown)| {
            let own = (0..slot.passages.len()).find(|&i| !known.is_block(i)).filter(|_| known.is_block(0))?;
            let (passage, signature) = slot.passages[own];
            (passage.at < top).then_some(signature)
        };
        slots().filter_map(instead).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near::sample::Passage;
    use crate::near::slots::Context;

    fn signature(number: u8) -> Signature {
        Signature::from_bytes([number; 16])
    }

    /// A message of 200 words with one passage in each slot, the head's first.
    fn message(places: &[u8]) -> Near {
        let slot = |&at: &u8| Slot {
            passages: vec![(Passage { hash: u64::from(at), at: usize::from(at) }, signature(at))],
            wraps: at > 188,
        };
        Near { slots: places.iter().map(slot).collect(), words: 200, ..Near::default() }
    }

    fn seen(numbers: &[u8]) -> Seen {
        let mut seen = Seen::default();
        seen.add(&numbers.iter().map(|&number| signature(number)).collect::<Vec<_>>(), &[1; 9]);
        seen
    }

    #[test]
    fn sixty_new_words_at_an_end_are_a_letter_from_anybody() {
        let known = seen(&[100, 110]);
        assert_eq!(message(&[8, 30, 59, 100, 110]).letter(&known), Some(Letter::Certain));
        assert_eq!(message(&[8, 30, 58, 100, 110]).letter(&known), Some(Letter::Unsure));
        // Below, counting starts at the last word of the first new passage.
        let known = seen(&[8, 100]);
        assert_eq!(message(&[8, 100, 129, 150, 180]).letter(&known), Some(Letter::Certain));
        assert_eq!(message(&[8, 100, 130, 150, 180]).letter(&known), Some(Letter::Unsure));
    }

    /// A program that replaced a word here and there left some rows without a known passage. A letter leaves the text below it as it is.
    #[test]
    fn new_words_everywhere_are_no_certain_letter() {
        let letter = |between: &[u8]| {
            let known = [100, 112, 124, 136];
            let places = [&[8, 30, 59], &known[..], between].concat();
            message(&places).letter(&seen(&known))
        };
        assert_eq!(letter(&[]), Some(Letter::Certain));
        assert_eq!(letter(&[118]), Some(Letter::Certain), "one of five: a number in a disclaimer");
        assert_eq!(letter(&[106, 118]), Some(Letter::Unsure));
    }

    #[test]
    fn twenty_new_words_anywhere_may_be_a_letter() {
        let known = seen(&[8, 40, 120]);
        assert_eq!(message(&[8, 40, 60, 70, 90, 120]).letter(&known), Some(Letter::Unsure));
        assert_eq!(message(&[8, 40, 60, 70, 89, 120]).letter(&known), None);
        // In the middle it is never certain.
        assert_eq!(message(&[8, 22, 60, 70, 140, 150]).letter(&seen(&[8, 22, 150])), Some(Letter::Unsure));
    }

    #[test]
    fn a_new_head_above_all_that_is_known_may_be_a_letter() {
        assert_eq!(message(&[8, 30, 100]).letter(&seen(&[30, 100])), Some(Letter::Unsure));
        assert_eq!(message(&[8, 30, 100, 150]).letter(&seen(&[30, 150])), None, "another one is new below");
        assert_eq!(message(&[8, 30, 100, 195]).letter(&seen(&[30, 100])), Some(Letter::Unsure), "round");
        assert_eq!(message(&[8, 30, 100]).letter(&seen(&[8, 30])), None, "the head is known");
        assert_eq!(message(&[8, 30, 100]).letter(&seen(&[8, 30, 100])), None, "nothing is new");
    }

    #[test]
    fn known_words_with_a_text_that_was_never_seen_may_be_an_answer() {
        let answer = |contexts: &[&[u8]]| Near {
            contexts: contexts
                .iter()
                .map(|all| Context {
                    words: 0,
                    kind: ContextKind::Quoted,
                    signatures: all.iter().map(|&number| signature(number)).collect(),
                })
                .collect(),
            ..message(&[8, 30, 100])
        };
        let known = [8, 30, 100, 202];
        assert_eq!(answer(&[&[201, 203]]).letter(&seen(&known)), Some(Letter::Unsure));
        assert_eq!(
            answer(&[&[201, 202]]).letter(&seen(&known)),
            None,
            "a copy may have reported another passage"
        );
        assert_eq!(
            answer(&[&[202], &[203]]).letter(&seen(&known)),
            Some(Letter::Unsure),
            "one of two is new"
        );
        assert_eq!(answer(&[]).letter(&seen(&known)), None, "without a context");
    }

    /// It reports all known passages.
    #[test]
    fn a_letter_reports_the_text_below_it() {
        let signatures = |numbers: &[u8]| numbers.iter().map(|&number| signature(number)).collect::<Vec<_>>();
        let known = seen(&[100, 110]);
        let certain = message(&[8, 30, 59, 100, 110]).follow_up(&known);
        assert_eq!((certain.strays, certain.unsure), (signatures(&[100, 110]), Vec::new()));
        let unsure = message(&[8, 30, 58, 100, 110]).follow_up(&known);
        assert_eq!((unsure.strays, unsure.unsure), (Vec::new(), signatures(&[100, 110])));
        let copy = message(&[8, 100, 110]).follow_up(&seen(&[8, 100, 110]));
        assert_eq!(copy, FollowUp::default());
    }

    /// A copy whose first passage is another one reports the passage by which the others are counted, unless it may be a letter.
    #[test]
    fn copies_that_differ_report_the_most_frequent_passage() {
        let reported = |known: &[u8], counts: &[u32]| {
            let mut copy = message(&[8, 100, 110]);
            let further = [120u8, 130]
                .map(|at| (Passage { hash: u64::from(at) + 1, at: usize::from(at) }, signature(at)));
            copy.slots[1].passages.extend(further);
            let mut seen = seen(known);
            seen.add(&[signature(120), signature(130)], counts);
            copy.follow_up(&seen).reported
        };
        assert_eq!(reported(&[8, 110], &[0, 0]), []);
        assert_eq!(reported(&[8, 110], &[4, 9]), [signature(130)]);
        assert_eq!(reported(&[8, 100, 110], &[4, 9]), [signature(130)]);
        assert_eq!(reported(&[110], &[4, 9]), [], "its head is new");
    }
}
