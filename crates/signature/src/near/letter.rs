// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether a message looks like a letter above text that others have, too; and what is told to the ledger of it.

use super::known::Seen;
use super::slots::{Near, Slot, stray};
use bulkmark_types::FederationKey;
use bulkmark_types::Signature;

impl Near {
    /// The signatures that are asked for and not reported.
    #[must_use]
    pub fn asked(&self) -> Vec<Signature> {
        let further = self.slots.iter().flat_map(|slot| &slot.passages[1..]).map(|(_, signature)| *signature);
        further.chain(self.unsure.iter().map(|(_, signature)| *signature)).collect()
    }

    /// Every signature that may count: passages and things.
    fn all(&self) -> impl Iterator<Item = Signature> + '_ {
        let passages = self.slots.iter().flat_map(|slot| &slot.passages).map(|(_, signature)| *signature);
        passages.chain(self.all_things())
    }

    fn all_things(&self) -> impl Iterator<Item = Signature> + '_ {
        let things = self.things.iter().map(|(_, signature)| *signature);
        things.chain(self.unsure.iter().map(|(_, signature)| *signature))
    }

    /// The signatures whose [`stray`] ones matter for [`judge`](Self::judge): all that were seen before.
    pub fn doubts<'a>(&'a self, seen: &'a Seen) -> impl Iterator<Item = Signature> + 'a {
        self.all().filter(|&signature| seen.has(signature))
    }

    /// Whether new text stands above known text: the head of the text was never seen, and of the passages that are reported,
    /// each that was never seen stands before all that were. So looks a letter above a signature or a disclaimer, whatever
    /// mail program wrote it. A copy with another greeting does not, nor one with other words here and there.
    #[must_use]
    pub fn is_letter(&self, seen: &Seen) -> bool {
        let is_new = |slot: &Slot| !seen.has(slot.reported());
        let head_is_new = self.slots.first().is_some_and(is_new);
        // What begins at the end goes on with the first words.
        let new = self.slots.iter().filter(|slot| is_new(slot) && !slot.goes_round);
        let last_new = new.map(Slot::place).max();
        let first_known = self.slots.iter().filter(|slot| !is_new(slot)).map(Slot::place).min();
        head_is_new && first_known.is_none_or(|known| last_new < Some(known))
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
            strays.extend(self.all_things());
        }
        let strays = strays.into_iter().filter(|&signature| seen.has(signature));
        let mut all: Vec<Signature> = strays.map(|signature| stray(key, signature)).collect();
        all.extend(self.above_blocks(seen));
        all
    }

    /// What is nominated when somebody calls the message spam: what it reports, but for what keeps coming with new text, in whose
    /// place stands what it reports instead. `all` has that, too: what is taken back may have been nominated before it was known.
    #[must_use]
    pub fn nominated(&self, seen: &Seen, all: bool) -> Vec<Signature> {
        let own = self.reported().filter(|&signature| all || !seen.known(signature).is_block());
        own.chain(self.above_blocks(seen)).collect()
    }

    fn above_blocks(&self, seen: &Seen) -> Vec<Signature> {
        let is_block = |signature: Signature| seen.known(signature).is_block();
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
