// SPDX-License-Identifier: GPL-3.0-or-later
//! What a ledger knows of signatures: how often each was seen, and how often below new text.

use bulkmark_types::Signature;
use std::collections::HashMap;

/// Messages with new text above it from which on a passage may be a block.
const FEW_STRAYS: u32 = 2;

/// One in so many messages with it has new text above it: then it is a block.
const ONE_IN: u32 = 10;

/// The highest count of messages that are only alike: of passages some of which are blocks, or that are few. Far below every
/// threshold, so that no mail is refused for it.
pub(super) const ALIKE: u32 = 3;

/// How often a signature was seen before this message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// In messages.
    pub count: u32,
    /// In messages that looked like a letter above it.
    pub strays: u32,
}

impl Known {
    /// Whether it keeps coming with new text: a disclaimer, the signature of a person, the form of a program.
    #[must_use]
    pub const fn is_block(self) -> bool {
        self.strays >= FEW_STRAYS && self.strays.saturating_mul(ONE_IN) >= self.count
    }

    /// What it says of messages being alike, which is less than that they are bulk.
    pub(super) fn alike(self) -> u32 {
        self.count.saturating_sub(self.strays.saturating_sub(ALIKE) / 2).min(ALIKE)
    }
}

/// What is known of signatures from before this message.
#[derive(Debug, Default)]
pub struct Seen(HashMap<Signature, Known>);

impl Seen {
    /// These were seen so many times each.
    pub fn add(&mut self, signatures: &[Signature], counts: &[u32]) {
        for (signature, &count) in signatures.iter().zip(counts) {
            self.0.entry(*signature).or_default().count = count;
        }
    }

    /// The [strays](super::stray) of these were seen so many times each.
    pub fn add_strays(&mut self, of: &[Signature], counts: &[u32]) {
        for (signature, &count) in of.iter().zip(counts) {
            self.0.entry(*signature).or_default().strays = count;
        }
    }

    /// What is known of it; what was not asked for was never seen.
    #[must_use]
    pub fn known(&self, signature: Signature) -> Known {
        self.0.get(&signature).copied().unwrap_or_default()
    }

    /// Whether it was seen at all.
    #[must_use]
    pub fn has(&self, signature: Signature) -> bool {
        self.known(signature).count > 0
    }
}
