// SPDX-License-Identifier: GPL-3.0-or-later
//! The signatures of a message, each in its slot.

use super::sample::Passage;
use crate::signature::key::FederationKey;
use crate::signature::types::{Kind, Signature};

/// What is reported of a passage, and what else is asked for in its slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The passages that come first in the slot's order, and their signatures. The first one is reported; a count is the
    /// highest of all of them. Never empty.
    pub passages: Vec<(Passage, Signature)>,
}

impl Slot {
    /// The signature that is reported.
    #[must_use]
    pub fn reported(&self) -> Signature {
        self.passages[0].1
    }
}

/// From what else than text a signature was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// An attached file, by its number.
    File(usize),
    /// All links together.
    Links,
}

/// The `near` signatures of a message; all empty when it says too little.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Near {
    /// Those of its text.
    pub slots: Vec<Slot>,
    /// Those of what is attached or linked, where there is little text.
    pub things: Vec<(Thing, Signature)>,
}

impl Near {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.things.is_empty()
    }

    /// The signatures that a message reports, eight at most.
    pub fn reported(&self) -> impl Iterator<Item = Signature> + '_ {
        self.slots.iter().map(Slot::reported).chain(self.things.iter().map(|(_, signature)| *signature))
    }
}

/// The signature that says of another: the rest of the message in which it was found was new.
#[must_use]
pub fn stray(key: &FederationKey, of: Signature) -> Signature {
    key.signature(Kind::Stray, &[&of.to_bytes()])
}
