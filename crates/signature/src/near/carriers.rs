// SPDX-License-Identifier: GPL-3.0-or-later
//! The signatures of a message that carry its count: the networks it came from are counted for these.

use super::count::{Judgement, QUARTER};
use super::known::Seen;
use super::slots::{Near, Thing};
use bulkmark_types::Signature;

/// Carriers that are looked up. Differing copies may lack each other's first one, but seldom all three.
const MOST: usize = 3;

impl Near {
    /// The signatures that carry the count of `judgement`, in an order common to all messages, so that most copies of one text have the
    /// same first one. At most three; none if nothing was seen.
    #[must_use]
    pub fn carriers(&self, judgement: &Judgement, seen: &Seen) -> Vec<Signature> {
        let enough = (judgement.count / QUARTER).max(1);
        let slots = || self.slots.iter().zip(&judgement.slots);
        let text = slots().filter(|(_, judged)| judged.counts && judged.known.count >= enough);
        let mut all: Vec<Signature> = text.map(|(slot, judged)| slot.passages[judged.passage].1).collect();
        let things = self.things.iter().map(|&(thing, signature)| match thing {
            Thing::Band(band) => self.commonest(band, signature, seen),
            Thing::File(_) | Thing::Links | Thing::Path(_) | Thing::Hidden | Thing::Answer => signature,
        });
        all.extend(things.filter(|&thing| {
            let known = seen.known(thing);
            known.count >= enough && !known.is_block()
        }));
        all.extend(self.payload.filter(|_| judgement.by_payload));
        if all.is_empty() {
            // Only blocks make it alike.
            let known = slots().filter(|(_, judged)| judged.known.count > 0);
            all.extend(known.map(|(slot, judged)| slot.passages[judged.passage].1));
        }
        all.sort_unstable();
        all.dedup();
        all.truncate(MOST);
        all
    }

    /// The most frequent form of a band; `signature` is the form of this picture.
    fn commonest(&self, band: u8, signature: Signature, seen: &Seen) -> Signature {
        let forms = self.unsure.iter().filter(|&&(of, _)| of == band).map(|&(_, form)| form);
        let count = |form: &Signature| (seen.known(*form).count, std::cmp::Reverse(*form));
        forms.chain([signature]).max_by_key(count).unwrap_or(signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near::{Passage, Slot};

    fn signature(n: u8) -> Signature {
        Signature::from_bytes([n; 16])
    }

    fn near(slots: &[u8]) -> Near {
        let slot = |&n: &u8| Slot {
            passages: vec![(Passage { hash: n.into(), at: n.into() }, signature(n))],
            wraps: false,
        };
        let slots = slots.iter().map(slot).collect();
        Near { slots, payload: Some(signature(200)), words: 100, ..Near::default() }
    }

    fn carriers(near: &Near, seen: &[(u8, u32, u32)]) -> Vec<Signature> {
        let mut known = Seen::default();
        known.add(&[signature(200)], &[30]);
        for &(n, count, strays) in seen {
            known.add(&[signature(n)], &[count]);
            known.add_strays(&[signature(n)], &[strays]);
        }
        near.carriers(&near.judge(&known), &known)
    }

    #[test]
    fn the_first_frequent_passage_of_any_slot() {
        let seen = [(1, 30, 0), (2, 30, 0), (3, 25, 0), (4, 1, 0), (5, 20, 0)];
        let [a, b, c] = [1, 2, 3].map(signature);
        assert_eq!(carriers(&near(&[5, 4, 3, 2, 1]), &seen), [a, b, c]);
        // Another copy lacks one of them and has a new one.
        assert_eq!(carriers(&near(&[9, 5, 4, 3, 2]), &seen), [b, c, signature(5)]);
    }

    #[test]
    fn a_block_carries_nothing() {
        let seen = [(1, 30, 10), (2, 30, 0), (3, 25, 0), (4, 25, 0)];
        assert_eq!(carriers(&near(&[1, 2, 3, 4]), &seen), [2, 3, 4].map(signature));
        assert_eq!(carriers(&near(&[1, 2, 3, 4]), &[]), []);
    }

    #[test]
    fn a_picture_has_the_commonest_form_of_each_band() {
        let picture = Near {
            things: vec![(Thing::Band(0), signature(1)), (Thing::Band(1), signature(2))],
            unsure: vec![(0, signature(3)), (0, signature(4)), (1, signature(5))],
            ..Near::default()
        };
        let seen = [(1, 1, 0), (3, 4, 0), (4, 30, 0), (2, 20, 0)];
        assert_eq!(carriers(&picture, &seen), [signature(2), signature(4)]);
    }
}
