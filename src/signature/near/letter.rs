// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether a message looks like a letter above text that others have, too; and what is told to the ledger of it.

use super::known::Known;
use super::seen::Seen;
use super::slots::{Near, Slot, stray};
use crate::signature::key::FederationKey;
use crate::signature::types::Signature;

/// Slots in which a letter reports something new, at least.
const NEW: usize = 3;

impl Near {
    /// The signatures that are asked for and not reported.
    #[must_use]
    pub fn asked(&self) -> Vec<Signature> {
        let further = self.slots.iter().flat_map(|slot| &slot.passages[1..]).map(|(_, signature)| *signature);
        further.chain(self.of_unsure()).collect()
    }

    /// Every signature that may count: passages and things.
    fn all(&self) -> impl Iterator<Item = Signature> + '_ {
        let passages = self.slots.iter().flat_map(|slot| &slot.passages).map(|(_, signature)| *signature);
        passages.chain(self.of_things())
    }

    fn of_things(&self) -> impl Iterator<Item = Signature> + '_ {
        self.things.iter().map(|(_, signature)| *signature).chain(self.of_unsure())
    }

    fn of_unsure(&self) -> impl Iterator<Item = Signature> + '_ {
        self.unsure.iter().map(|(_, signature)| *signature)
    }

    /// The [`stray`] signatures whose counts matter for [`judge`](Self::judge): those of all that was seen before.
    #[must_use]
    pub fn doubts(&self, key: &FederationKey, seen: &Seen) -> Vec<Signature> {
        self.all().filter(|&signature| seen.has(signature)).map(|signature| stray(key, signature)).collect()
    }

    /// What is known of a signature.
    pub(super) fn known(key: &FederationKey, seen: &Seen, signature: Signature) -> Known {
        let count = seen.count(signature);
        // What was never seen has no strays that were asked for.
        Known { count, strays: if count == 0 { 0 } else { seen.count(stray(key, signature)) } }
    }

    /// Whether new text stands above known text: three passages or more that are reported were never seen, and each of these
    /// stands before all that were. So looks a letter above a signature or a disclaimer, whatever mail program wrote it; a
    /// copy with other words here and there does not.
    #[must_use]
    pub fn is_letter(&self, seen: &Seen) -> bool {
        let (new, known): (Vec<&Slot>, Vec<&Slot>) =
            self.slots.iter().partition(|slot| !seen.has(slot.reported()));
        let last_new = new.iter().map(|slot| slot.place()).max();
        let first_known = known.iter().map(|slot| slot.place()).min();
        new.len() >= NEW && first_known.is_none_or(|known| last_new < Some(known))
    }

    /// What is reported once the counts are known, from the next message on: [`stray`] signatures of what stands below new
    /// text, and where a slot reports a block, the next of its passages that stands above all blocks and is none.
    #[must_use]
    pub fn afterwards(&self, key: &FederationKey, seen: &Seen) -> Vec<Signature> {
        let mut strays = Vec::new();
        if self.is_letter(seen) {
            let passages = self.slots.iter().flat_map(|slot| &slot.passages);
            strays.extend(passages.map(|(_, signature)| *signature));
        }
        if self.rest.is_some_and(|rest| !seen.has(rest)) {
            strays.extend(self.of_things());
        }
        let strays = strays.into_iter().filter(|&signature| seen.has(signature));
        let mut all: Vec<Signature> = strays.map(|signature| stray(key, signature)).collect();
        all.extend(self.above_blocks(key, seen));
        all
    }

    fn above_blocks(&self, key: &FederationKey, seen: &Seen) -> Vec<Signature> {
        let is_block = |signature: Signature| Self::known(key, seen, signature).is_block();
        let passages = self.slots.iter().flat_map(|slot| &slot.passages);
        let blocks = passages.filter(|(_, signature)| is_block(*signature));
        let Some(top) = blocks.map(|(passage, _)| passage.at).min() else { return Vec::new() };
        let instead = |slot: &Slot| {
            let mut own = slot.passages.iter().skip_while(|(_, signature)| is_block(*signature));
            is_block(slot.reported())
                .then(|| own.next())
                .flatten()
                .filter(|(passage, _)| passage.at < top)
                .map(|&(_, s)| s)
        };
        self.slots.iter().filter_map(instead).collect()
    }
}
