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
    /// Whether the one that is reported begins at the end of the text and goes on at its beginning.
    pub goes_round: bool,
}

impl Slot {
    /// The signature that is reported.
    #[must_use]
    pub fn reported(&self) -> Signature {
        self.passages[0].1
    }

    /// Where its passage stands, by the number of its first word.
    #[must_use]
    pub fn place(&self) -> usize {
        self.passages[0].0.at
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

impl Thing {
    /// Whether it tells that messages are alike, but not that they are bulk.
    #[must_use]
    pub const fn is_weak(self) -> bool {
        match self {
            Self::File(_) | Self::Links => false,
        }
    }
}

/// The `near` signatures of a message; all empty when it says too little.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Near {
    /// Those of its text.
    pub slots: Vec<Slot>,
    /// Those of what is attached or linked, where there is little text.
    pub things: Vec<(Thing, Signature)>,
    /// That of the few words beside the things, by which it is noticed when they come with ever other words.
    pub rest: Option<Signature>,
}

impl Near {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.things.is_empty()
    }

    /// The signatures that a message reports, eight at most and that of the [`rest`](Self::rest).
    pub fn reported(&self) -> impl Iterator<Item = Signature> + '_ {
        let things = self.things.iter().map(|(_, signature)| *signature);
        self.slots.iter().map(Slot::reported).chain(things).chain(self.rest)
    }
}

/// The signature that says of another: it was found below new text.
#[must_use]
pub fn stray(key: &FederationKey, of: Signature) -> Signature {
    key.signature(Kind::Stray, &[&of.to_bytes()])
}
