// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger's answers about signatures: how often each was seen, and how often below new text.

use bulkmark_types::Signature;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Letters from which on the text below them may be a block.
const FEW_LETTERS: u32 = 2;

/// If one in this many messages with a text is a letter, the text is a block.
const ONE_IN: u32 = 10;

/// A network with one in this many of the unsure letters with a text is the text's sender.
const HALF: u32 = 2;

/// The highest count of messages that are only alike, by blocks or by few passages. Far below every threshold, so that no mail is refused
/// for it.
pub(super) const ALIKE: u32 = 3;

/// The rank of the slot by which messages are alike, from the highest, 0: three passages agree.
pub(super) const AGREEING: usize = 2;

/// How often a signature was seen before this message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// In messages.
    pub count: u32,
    /// In messages that were certainly letters above it.
    pub strays: u32,
    /// In messages that may have been letters above it: from anybody, and from the sender of this message.
    pub unsure: Unsure,
}

/// Messages that may have been letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unsure {
    /// From anybody.
    pub all: u32,
    /// From the domain of this message.
    pub domain: u32,
    /// From its client network.
    pub network: u32,
}

impl Known {
    /// Whether it keeps coming with new text from any sender: a disclaimer, a person's signature, a program's form.
    #[must_use]
    pub const fn is_block(self) -> bool {
        self.strays >= FEW_LETTERS && self.strays.saturating_mul(ONE_IN) >= self.count
    }

    /// Whether it may keep coming with new text from any sender. A possible disclaimer is no evidence against a letter above it.
    pub(super) const fn may_be_block(self) -> bool {
        let all = self.unsure.all;
        self.is_block() || all >= FEW_LETTERS && all.saturating_mul(ONE_IN) >= self.count
    }

    /// Whether the sender of this message keeps sending it with new text. Its network must have sent half of all unsure letters with it, or
    /// unsure letters that are a tenth of all messages with it: a provider's network, which many customers share, sends some copies of a
    /// campaign, too.
    #[must_use]
    pub const fn is_own_block(self) -> bool {
        let Unsure { all, domain, network } = self.unsure;
        let is_large = network.saturating_mul(HALF) >= all || network.saturating_mul(ONE_IN) >= self.count;
        domain >= FEW_LETTERS || network >= FEW_LETTERS && is_large
    }

    /// Its count as evidence that messages are alike, which is less than evidence for bulk.
    pub(super) fn alike(self) -> u32 {
        self.count.saturating_sub(self.strays.saturating_sub(ALIKE) / 2).min(ALIKE)
    }
}

/// Part of a signature as its hash: it is one already. A message has too few signatures for collisions to matter.
#[derive(Debug, Default)]
struct OwnBits(u64);

impl Hasher for OwnBits {
    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The answers about signatures, from before this message.
#[derive(Debug, Default)]
pub struct Seen {
    known: HashMap<Signature, Known, BuildHasherDefault<OwnBits>>,
    /// Whether the sender of this message is unknown.
    is_anonymous: bool,
}

impl Seen {
    /// Makes an empty one. An unknown (anonymous) sender cannot help to distinguish a copy from a letter.
    #[must_use]
    pub fn of_sender(is_anonymous: bool) -> Self {
        Self { known: HashMap::default(), is_anonymous }
    }

    pub(super) const fn is_anonymous(&self) -> bool {
        self.is_anonymous
    }

    /// Adds the counts of these signatures.
    pub fn add(&mut self, signatures: &[Signature], counts: &[u32]) {
        for (signature, &count) in signatures.iter().zip(counts) {
            self.known.entry(*signature).or_default().count = count;
        }
    }

    /// Adds the counts of the [strays](super::stray) of these signatures.
    pub fn add_strays(&mut self, of: &[Signature], counts: &[u32]) {
        for (signature, &count) in of.iter().zip(counts) {
            self.known.entry(*signature).or_default().strays = count;
        }
    }

    /// Adds how many unsure letters contained this signature.
    pub fn add_unsure(&mut self, of: Signature, unsure: Unsure) {
        self.known.entry(of).or_default().unsure = unsure;
    }

    /// The counts of a signature; zero if it was not asked for.
    #[must_use]
    pub fn known(&self, signature: Signature) -> Known {
        self.known.get(&signature).copied().unwrap_or_default()
    }

    /// Whether it was ever seen.
    #[must_use]
    pub fn has(&self, signature: Signature) -> bool {
        self.known(signature).count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network owns a text if it sends most of its unsure letters, or a good part of all messages with it.
    #[test]
    fn a_network_owns_what_it_keeps_sending() {
        let owns = |network, all, count| {
            Known { count, strays: 0, unsure: Unsure { all, domain: 0, network } }.is_own_block()
        };
        assert!(owns(2, 4, 1000) && !owns(2, 5, 1000), "half of the unsure letters");
        assert!(owns(2, 20, 20) && !owns(2, 21, 21), "a tenth of all messages");
        assert!(!owns(1, 1, 1), "once");
        assert!(
            Known { count: 1000, strays: 0, unsure: Unsure { all: 90, domain: 2, network: 0 } }
                .is_own_block()
        );
    }
}
