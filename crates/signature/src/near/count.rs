// SPDX-License-Identifier: GPL-3.0-or-later
//! The count of a message from the counts of its many signatures. docs/signatures.md has the reasons.

use super::known::{AGREEING, ALIKE, Known, Seen};
use super::letter::Letter;
use super::slots::{ContextKind, Near, Slot, Thing};
use bulkmark_types::Signature;

/// Tenths of the informative slots that must be known for bulk.
const KNOWN_TENTHS: usize = 6;

/// Tenths of new words from which on a message is not bulk.
const NEW_TENTHS: usize = 4;

/// The same without a payload of the copies: copies without one are rare, letters are not.
const NEW_TENTHS_WITHOUT_PAYLOAD: usize = 2;

/// The same for a message that is bulk by its payload: rewritten copies have new words everywhere, and a letter above a link has them in one
/// place.
const NEW_TENTHS_BY_PAYLOAD: usize = 3;

/// A slot is known if its count is at least this fraction of the message's.
pub(super) const QUARTER: u32 = 4;

/// Known slots that confirm a payload.
const CONFIRMING_SLOTS: usize = 2;

/// Count from which on a slot confirms a payload.
const CONFIRMING_COUNT: u32 = 2;

/// A payload is common, and no evidence, if one in this many messages with it had nothing else in common with others: a large site, a
/// popular service.
const COMMON: u32 = 4;

/// A message that may be a letter is a copy if at least one in this many similar messages may be a letter as well, since a program then
/// made all of them. Otherwise somebody wrote above text that others send unchanged. Likewise copies ask for the same answer.
const EIGHTH: u32 = 8;

/// The judgement of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// How often similar messages were seen before. A verdict may rest on more than a few.
    pub count: u32,
    /// The judgement of each slot.
    pub slots: Vec<SlotJudgement>,
    /// The counts of each thing.
    pub things: Vec<Known>,
    /// The counts of its payload.
    pub payload: Option<Known>,
    /// Whether the count is that of its payload, confirmed by passages.
    pub by_payload: bool,
    /// The reason for a limited count of the text.
    pub bound: Option<Bound>,
}

/// The judgement of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotJudgement {
    /// The index of its most frequent passage, among those that are no blocks if there are any.
    pub passage: usize,
    /// The counts of this passage.
    pub known: Known,
    /// Whether it is evidence about this message. It is not if the passage is a block, or if a block before it would have been reported in
    /// its place.
    pub counts: bool,
}

/// The reason why text that was seen often does not make a message bulk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// New text stands above or below it.
    Letter,
    /// New text may stand above or below it, but not in other messages with it.
    Unlike,
    /// It stands below varying other text.
    Block,
    /// It is too small a part of the message.
    Part,
}

impl Near {
    /// Returns how often messages like this one were seen before. `seen` has the counts of all its signatures and of the strays of its
    /// [`stray_lookups`](Self::stray_lookups).
    #[must_use]
    pub fn judge(&self, seen: &Seen) -> Judgement {
        let slots: Vec<SlotJudgement> = self.slots.iter().map(|slot| judge_slot(slot, seen)).collect();
        let things: Vec<Known> = self.things.iter().map(|(_, signature)| seen.known(*signature)).collect();
        let letter = self.letter(seen);
        let (text, bound) = self.text(&slots, letter, seen);
        let payload = self.payload.map(|payload| seen.known(payload));
        let of_payload = payload.map_or(0, |payload| self.of_payload(payload, &slots, letter, seen));
        let by_payload = of_payload > text.max(ALIKE);
        let (text, bound) = if by_payload { (of_payload, None) } else { (text, bound) };
        let alike = self.alike(seen);
        let count = self.of_things(seen).max(text).max(alike);
        Judgement { count, slots, things, payload, by_payload, bound }
    }

    /// The count of the text, limited if the text may not be bulk, with the reason for the limit.
    fn text(&self, slots: &[SlotJudgement], letter: Option<Letter>, seen: &Seen) -> (u32, Option<Bound>) {
        let all = || slots.iter().map(|slot| slot.known.count);
        let informative: Vec<u32> =
            slots.iter().filter(|slot| slot.counts).map(|slot| slot.known.count).collect();
        let count = agreed(informative.clone());
        let enough = (count / QUARTER).max(1);
        let covered = informative.iter().filter(|&&seen| seen >= enough).count();
        let asks = self.asks(count, seen);
        let new = if asks { NEW_TENTHS } else { NEW_TENTHS_WITHOUT_PAYLOAD };
        let is_part = || 10 * covered < KNOWN_TENTHS * informative.len() || self.is_new(new, asks, seen);
        let bound = if all().max() <= Some(ALIKE) {
            None
        } else if letter == Some(Letter::Certain) || letter.is_some() && seen.is_anonymous() {
            Some(Bound::Letter)
        } else if count <= ALIKE {
            Some(if third(all()) > ALIKE { Bound::Block } else { Bound::Part })
        } else if is_part() {
            Some(Bound::Part)
        } else {
            let unsure = third(slots.iter().filter(|slot| slot.counts).map(|slot| slot.known.unsure.all));
            (letter.is_some() && unsure.saturating_mul(EIGHTH) < count).then_some(Bound::Unlike)
        };
        (if bound.is_some() { count.min(ALIKE) } else { count }, bound)
    }

    /// The weight of user reports about this message: `reports` has the weights of its signatures, and `counted` their counts. A message
    /// reports one passage in each slot, and users report several: in each slot the highest weight counts. A text that may keep coming with
    /// other text is no evidence; the weight stays low if new text stands above everything ever seen or reported.
    #[must_use]
    pub fn weigh(&self, reports: &Seen, counted: &Seen) -> u32 {
        let no_evidence = self.no_evidence(counted);
        let of_slot = |slot: &Slot| {
            let own =
                slot.passages.iter().map(|(_, signature)| *signature).filter(|s| !no_evidence.contains(s));
            let most = own.map(|signature| reports.known(signature).count).max();
            most.filter(|&most| most > 0 || !no_evidence.contains(&slot.reported()))
        };
        let informative: Vec<u32> = self.slots.iter().filter_map(of_slot).collect();
        let weight = third(informative.iter().copied());
        let enough = (weight / QUARTER).max(1);
        let covered = informative.iter().filter(|&&slot_weight| slot_weight >= enough).count();
        let is_new = |signature: Signature| !reports.has(signature) && !counted.has(signature);
        let is_low = 10 * covered < KNOWN_TENTHS * informative.len() || self.is_new_on_top(&is_new);
        let text = if is_low { weight.min(ALIKE) } else { weight };
        text.max(self.of_things(reports)).max(self.alike(reports))
    }

    /// How often a message with one of its things or its picture was seen.
    fn of_things(&self, seen: &Seen) -> u32 {
        let count_of = |known: Known| if known.is_block() { known.alike() } else { known.count };
        let of_things = self.things.iter().map(|&(thing, signature)| (thing, seen.known(signature))).map(
            |(thing, known)| match thing {
                // One of seven bands is no evidence alone, and hidden text only shows that messages are alike.
                Thing::Band(_) => 0,
                Thing::Hidden => known.alike(),
                Thing::File(_) | Thing::Links | Thing::Path(_) | Thing::Answer => count_of(known),
            },
        );
        let picture = self.picture(|signature| seen.known(signature), count_of);
        of_things.max().unwrap_or(0).max(picture)
    }

    /// How many messages had the same payload, if passages agree with it. A campaign rewritten by a program shares few passages, and the
    /// page behind its links; other messages that link to a page share no text.
    fn of_payload(
        &self,
        payload: Known,
        slots: &[SlotJudgement],
        letter: Option<Letter>,
        seen: &Seen,
    ) -> u32 {
        let agree = slots.iter().filter(|slot| slot.counts && slot.known.count >= CONFIRMING_COUNT).count();
        let is_common = payload.strays.saturating_mul(COMMON) >= payload.count;
        let is_evidence = agree >= CONFIRMING_SLOTS
            && !is_common
            && !payload.is_own_block()
            && !seen.is_anonymous()
            && letter != Some(Letter::Certain)
            && !self.is_new(NEW_TENTHS_BY_PAYLOAD, true, seen);
        if is_evidence { payload.count } else { 0 }
    }

    /// Whether the message asks for an answer as copies do: it has a payload, and if that may be the writer's own, it came with at least one
    /// in eight of the `count` messages with its text.
    fn asks(&self, count: u32, seen: &Seen) -> bool {
        self.payload.is_some_and(|payload| {
            !self.is_payload_personal || seen.known(payload).count.saturating_mul(EIGHTH) >= count
        })
    }

    /// Whether so many tenths of the message are new text; `asks` as in [`runs`](Self::runs).
    fn is_new(&self, tenths: usize, asks: bool, seen: &Seen) -> bool {
        let new =
            self.contexts.iter().filter(|context| context.kind != ContextKind::Last && context.is_new(seen));
        let new = self.runs(asks, seen).all + new.map(|context| context.words).sum::<usize>();
        let beside = self
            .contexts
            .iter()
            .filter(|context| context.kind == ContextKind::Quoted)
            .map(|context| context.words);
        10 * new >= tenths * (self.words + beside.sum::<usize>())
    }

    /// The count of messages that are alike, which is less than evidence for bulk.
    fn alike(&self, seen: &Seen) -> u32 {
        let of = |slot: &Slot| {
            let passages = slot.passages.iter().map(|(_, signature)| seen.known(*signature).alike());
            passages.max().unwrap_or(0)
        };
        third(self.slots.iter().map(of))
    }
}

/// How many messages agree with this one, by the counts of slots. Differing copies share some of eight slots each, so a slot counts fewer
/// of them than there are. The highest count may come from a common phrase; the second highest is reliable if the third is not much lower.
fn agreed(mut counts: Vec<u32>) -> u32 {
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let [_, second, third, ref others @ ..] = counts[..] else { return 0 };
    second.min(third.saturating_add(others.first().copied().unwrap_or(0)))
}

/// The third highest, or 0 if there are fewer.
fn third(counts: impl Iterator<Item = u32>) -> u32 {
    let mut counts: Vec<u32> = counts.collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.get(AGREEING).copied().unwrap_or(0)
}

/// Judges the most frequent passage of those that are no blocks, or of all if all are blocks.
fn judge_slot(slot: &Slot, seen: &Seen) -> SlotJudgement {
    let of_slot = slot.known(seen);
    let known = &of_slot.passages;
    let most = |wanted: &dyn Fn(usize) -> bool| {
        let wanted = known.iter().copied().enumerate().filter(|&(i, _)| wanted(i));
        // The first of equals wins.
        wanted.rev().max_by_key(|(_, known)| known.count)
    };
    let own = most(&|i| !of_slot.is_block(i));
    // If a block comes first, copies report the block, so an unseen next passage is no evidence.
    let counts = own.filter(|(_, own)| own.count > 0 || !of_slot.is_block(0));
    let (passage, of) = counts.or_else(|| most(&|_| true)).unwrap_or_default();
    SlotJudgement { passage, known: of, counts: counts.is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near::sample::Passage;
    use bulkmark_types::Signature;

    fn signature(n: u8) -> Signature {
        Signature::from_bytes([n; 16])
    }

    /// A slot with one passage at this place.
    fn slot(at: u8) -> Slot {
        Slot { passages: vec![(Passage { hash: at.into(), at: at.into() }, signature(at))], wraps: false }
    }

    #[test]
    fn the_second_highest_slot_counts_as_far_as_two_others_confirm_it() {
        assert_eq!(agreed(vec![12, 21, 10, 22, 0]), 21);
        assert_eq!(agreed(vec![30, 29, 3, 4]), 7, "two common phrases");
        assert_eq!(agreed(vec![30, 29, 20]), 20, "three slots");
        assert_eq!(agreed(vec![30, 29]), 0);
    }

    /// Rewritten copies have new words everywhere, and a letter above a link has them in one place.
    #[test]
    fn a_payload_below_three_tenths_of_new_text_is_no_evidence() {
        let count = |first_known: u8| {
            let slots = [2, 8, 14, first_known, 60].map(slot).into();
            let near = Near { slots, payload: Some(signature(200)), words: 100, ..Near::default() };
            let mut seen = Seen::default();
            seen.add(&[first_known, 60, 200].map(signature), &[2, 2, 30]);
            let judged = near.judge(&seen);
            (judged.count, judged.by_payload)
        };
        assert_eq!(count(29), (30, true));
        assert!(!count(30).1);
    }

    /// A letter with its writer's number, above and below known text, has no payload of the copies.
    #[test]
    fn a_payload_of_few_copies_asks_for_another_answer() {
        let bound = |is_payload_personal, of_payload: u32| {
            // Between known passages stands a new one.
            let slots = [2, 20, 60, 80, 90].map(slot).into();
            let payload = Some(signature(200));
            let near = Near { slots, payload, is_payload_personal, words: 100, ..Near::default() };
            let mut seen = Seen::default();
            seen.add(&[2, 20, 80, 90, 200].map(signature), &[40, 40, 40, 40, of_payload]);
            near.judge(&seen).bound
        };
        let part = Some(Bound::Part);
        assert_eq!([0, 3, 5, 40].map(|n| bound(true, n)), [part, part, None, None]);
        assert_eq!([0, 3].map(|n| bound(false, n)), [None, None], "copies with different pages");
    }

    #[test]
    fn a_slot_counts_its_most_frequent_passage() {
        let signatures = [1, 2, 3].map(|number| Signature::from_bytes([number; 16]));
        let passages = signatures.iter().zip(0..);
        let passages =
            passages.map(|(&signature, at)| (Passage { hash: at as u64, at }, signature)).collect();
        let slot = Slot { passages, wraps: false };
        let mut seen = Seen::default();
        seen.add(&signatures, &[5, 12, 10]);
        let all = judge_slot(&slot, &seen);
        assert_eq!((all.passage, all.known.count, all.counts), (1, 12, true));
        // A block is left out.
        seen.add_strays(&signatures[1..2], &[2]);
        let all = judge_slot(&slot, &seen);
        assert_eq!((all.passage, all.known.count, all.counts), (2, 10, true));
    }
}
