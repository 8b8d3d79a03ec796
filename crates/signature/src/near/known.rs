// SPDX-License-Identifier: GPL-3.0-or-later
//! What a ledger knows of signatures: how often each was seen, and how often below new text.

use bulkmark_types::Signature;
use std::collections::HashMap;

/// Letters from which on what stands below them may be a block.
const FEW_LETTERS: u32 = 2;

/// One in so many messages with it is a letter: then it is a block.
const ONE_IN: u32 = 10;

/// The highest count of messages that are only alike: of passages some of which are blocks, or that are few. Far below every
/// threshold, so that no mail is refused for it.
pub(super) const ALIKE: u32 = 3;

/// The place of the slot by which messages are alike, from the highest, 0: three passages agree.
pub(super) const AGREEING: usize = 2;

/// How often a signature was seen before this message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// In messages.
    pub count: u32,
    /// In messages that were letters above it for certain.
    pub strays: u32,
    /// In messages that may have been letters above it: by anybody, and by those who sent this message.
    pub unsure: Unsure,
}

/// Messages that may have been letters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unsure {
    /// By anybody.
    pub all: u32,
    /// By the domain of this message.
    pub domain: u32,
    /// By its client network.
    pub network: u32,
}

impl Known {
    /// Whether it keeps coming with new text, whoever sends it: a disclaimer, the signature of a person, the form of a program.
    #[must_use]
    pub const fn is_block(self) -> bool {
        self.strays >= FEW_LETTERS && self.strays.saturating_mul(ONE_IN) >= self.count
    }

    /// Whether it may keep coming with new text, whoever sends it. What may be a disclaimer is no evidence against a letter above it.
    pub(super) const fn may_be_block(self) -> bool {
        let all = self.unsure.all;
        self.is_block() || all >= FEW_LETTERS && all.saturating_mul(ONE_IN) >= self.count
    }

    /// Whether those who sent this message keep sending it with new text. Many send from the network of a provider: so of what comes
    /// with new text from anywhere, it must be more than a little that comes from there.
    #[must_use]
    pub const fn is_own_block(self) -> bool {
        let Unsure { all, domain, network } = self.unsure;
        domain >= FEW_LETTERS || network >= FEW_LETTERS && network.saturating_mul(ONE_IN) >= all
    }

    /// What it says of messages being alike, which is less than that they are bulk.
    pub(super) fn alike(self) -> u32 {
        self.count.saturating_sub(self.strays.saturating_sub(ALIKE) / 2).min(ALIKE)
    }
}

/// What is known of signatures from before this message.
#[derive(Debug, Default)]
pub struct Seen {
    known: HashMap<Signature, Known>,
    /// Whether it is not known who sent this message.
    is_anonymous: bool,
}

impl Seen {
    /// Nothing is known yet; nor who sent this message, if it is anonymous. Its sender cannot tell a copy from a letter then.
    #[must_use]
    pub fn of_sender(is_anonymous: bool) -> Self {
        Self { known: HashMap::new(), is_anonymous }
    }

    pub(super) const fn is_anonymous(&self) -> bool {
        self.is_anonymous
    }

    /// These were seen so many times each.
    pub fn add(&mut self, signatures: &[Signature], counts: &[u32]) {
        for (signature, &count) in signatures.iter().zip(counts) {
            self.known.entry(*signature).or_default().count = count;
        }
    }

    /// The [strays](super::stray) of these were seen so many times each.
    pub fn add_strays(&mut self, of: &[Signature], counts: &[u32]) {
        for (signature, &count) in of.iter().zip(counts) {
            self.known.entry(*signature).or_default().strays = count;
        }
    }

    /// This one was seen in so many messages that may have been letters.
    pub fn add_unsure(&mut self, of: Signature, unsure: Unsure) {
        self.known.entry(of).or_default().unsure = unsure;
    }

    /// What is known of it; what was not asked for was never seen.
    #[must_use]
    pub fn known(&self, signature: Signature) -> Known {
        self.known.get(&signature).copied().unwrap_or_default()
    }

    /// Whether it was seen at all.
    #[must_use]
    pub fn has(&self, signature: Signature) -> bool {
        self.known(signature).count > 0
    }
}
