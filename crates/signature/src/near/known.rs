// SPDX-License-Identifier: GPL-3.0-or-later
//! What is known of one signature: how often it was seen, and how often below new text.

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
