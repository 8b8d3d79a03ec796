// SPDX-License-Identifier: GPL-3.0-or-later
//! What the counts of many signatures say of one message. The reasons are in docs/signatures.md.

use super::slots::{Near, Slot, Thing, stray};
use crate::signature::key::FederationKey;
use crate::signature::types::Signature;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The place of the slot whose count is that of the text, from the highest, 0: three passages agree.
const AGREEING: usize = 2;

/// Messages with other text in which a signature may be found before it loses weight.
const GRACE: u32 = 3;

/// How often signatures were seen before this message.
#[derive(Debug, Default)]
pub struct Seen(HashMap<Signature, u32>);

impl Seen {
    /// Of these signatures, so many times each.
    #[must_use]
    pub fn new(signatures: &[Signature], counts: &[u32]) -> Self {
        let mut seen = Self::default();
        seen.add(signatures, counts);
        seen
    }

    /// The same of others.
    pub fn add(&mut self, signatures: &[Signature], counts: &[u32]) {
        self.0.extend(signatures.iter().copied().zip(counts.iter().copied()));
    }

    /// How often; what was not asked for was never seen.
    #[must_use]
    pub fn count(&self, signature: Signature) -> u32 {
        self.0.get(&signature).copied().unwrap_or(0)
    }
}

impl Near {
    /// The signatures that are asked for and not reported.
    #[must_use]
    pub fn asked(&self) -> Vec<Signature> {
        let further = self.slots.iter().flat_map(|slot| &slot.passages[1..]).map(|(_, signature)| *signature);
        further.chain(self.unsure.iter().map(|(_, signature)| *signature)).collect()
    }

    fn all(&self) -> impl Iterator<Item = Signature> + '_ {
        let passages = self.slots.iter().flat_map(|slot| &slot.passages).map(|(_, signature)| *signature);
        let things = self.things.iter().map(|(_, signature)| *signature);
        passages.chain(things).chain(self.unsure.iter().map(|(_, signature)| *signature))
    }

    /// The signatures that are to be reported as well, since what they stand for was found in a message whose text is new in
    /// most slots: [`stray`] ones of all that was seen before.
    #[must_use]
    pub fn strays(&self, key: &FederationKey, seen: &Seen) -> Vec<Signature> {
        let other_text = self.rest.is_some_and(|rest| seen.count(rest) == 0);
        let known = self.slots.iter().filter(|slot| seen.count(slot.reported()) > 0).count();
        if !other_text && (self.slots.is_empty() || 2 * known >= self.slots.len()) {
            return Vec::new();
        }
        self.all()
            .filter(|&signature| seen.count(signature) > 0)
            .map(|signature| stray(key, signature))
            .collect()
    }

    /// The [`stray`] signatures whose counts matter for [`count`](Self::count).
    #[must_use]
    pub fn doubts(&self, key: &FederationKey, seen: &Seen) -> Vec<Signature> {
        self.all()
            .filter(|&signature| seen.count(signature) > 1)
            .map(|signature| stray(key, signature))
            .collect()
    }

    /// How often messages like this one were seen before; `seen` knows the counts of all its signatures and of the
    /// [doubts](Self::doubts) about them.
    #[must_use]
    pub fn count(&self, key: &FederationKey, seen: &Seen) -> u32 {
        let Weights { mut slots, things } = self.weights(key, seen);
        slots.sort_unstable_by_key(|&(_, weight)| Reverse(weight));
        let text = slots.get(AGREEING).map_or(0, |&(_, weight)| weight);
        let things =
            self.things.iter().zip(things).filter(|((thing, _), _)| !matches!(thing, Thing::Band(_)));
        let picture = self.picture(|signature| of_thing(signature, key, seen)).unwrap_or(0);
        things.map(|(_, weight)| weight).max().unwrap_or(0).max(text).max(picture)
    }

    /// What each slot and thing counts.
    #[must_use]
    pub fn weights(&self, key: &FederationKey, seen: &Seen) -> Weights {
        let best = |slot: &Slot| {
            let weights = slot.passages.iter().map(|(_, signature)| weight(*signature, key, seen, 2));
            // Of equal ones the first.
            weights.enumerate().max_by_key(|&(i, weight)| (weight, Reverse(i))).unwrap_or_default()
        };
        Weights {
            slots: self.slots.iter().map(best).collect(),
            things: self.things.iter().map(|(_, signature)| of_thing(*signature, key, seen)).collect(),
        }
    }
}

/// What the parts of a count weigh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// For each slot, which of its passages was seen most often, and how often.
    pub slots: Vec<(usize, u32)>,
    /// For each thing, how often it was seen.
    pub things: Vec<u32>,
}

/// What a signature counts: `share` messages with other text take one from it.
fn weight(signature: Signature, key: &FederationKey, seen: &Seen, share: u32) -> u32 {
    let count = seen.count(signature);
    if count <= GRACE {
        return count;
    }
    let strays = seen.count(stray(key, signature));
    count.saturating_sub(strays.saturating_sub(GRACE) / share)
}

/// Messages with other text after which a thing is what stands below all of somebody's messages, and the share of them.
const BLOCK: u32 = 2;
const BLOCK_SHARE: u32 = 10;

/// What a thing counts: nothing if it comes with ever other text.
fn of_thing(signature: Signature, key: &FederationKey, seen: &Seen) -> u32 {
    let (count, strays) = (seen.count(signature), seen.count(stray(key, signature)));
    if strays >= BLOCK && strays >= count / BLOCK_SHARE { 0 } else { count }
}
