// SPDX-License-Identifier: GPL-3.0-or-later
//! The `near` signatures: some passages of a text stand for it, so that copies that differ here and there share some.
//! docs/signatures.md says what they are made of, and why.

mod count;
mod fold;
mod lines;
mod reader;
mod sample;
mod words;

pub use count::{Seen, Weights};
pub use reader::Place;
pub use sample::{Passage, Scheme, sample};

use super::key::FederationKey;
use super::types::{Kind, Signature};
use crate::mail::RawMessage;
use reader::Content;
pub(in crate::signature) use reader::Reader;

/// Words below which a message is its links, or its pictures, rather than its text.
const FEW: usize = 8;

/// Words from which on the text says so much that what is attached matters no more.
const MANY: usize = 64;

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

    /// From what was read.
    fn of(content: &Content, key: &FederationKey, scheme: &Scheme) -> Self {
        let things = things(content, key);
        // Eight in all.
        let slots = sample(&content.words, scheme)
            .into_iter()
            .take(scheme.slots - things.len())
            .zip(0u8..)
            .map(|(passages, slot)| Slot {
                passages: passages
                    .into_iter()
                    .map(|passage| (passage, signature(key, slot, &passage.hash.to_le_bytes())))
                    .collect(),
            })
            .collect();
        Self { slots, things }
    }
}

/// Numbers in the place of a slot's, for what is no passage.
mod number {
    pub(super) const FILE: u8 = 0x80;
    pub(super) const LINKS: u8 = 0x81;
}

fn things(content: &Content, key: &FederationKey) -> Vec<(Thing, Signature)> {
    let mut things = Vec::new();
    if content.words.len() < MANY {
        let files = content.files.iter().enumerate();
        things.extend(files.map(|(i, digest)| (Thing::File(i), signature(key, number::FILE, digest))));
    }
    // More links than words, two at least: who writes "look at this" sends one.
    let words = content.words.len();
    if words < FEW && content.links.len() > words.max(1) && !content.domains.is_empty() {
        let domains = content.domains.iter().map(String::as_str).collect::<Vec<_>>().join("\0");
        things.push((Thing::Links, signature(key, number::LINKS, domains.as_bytes())));
    }
    things
}

fn signature(key: &FederationKey, number: u8, content: &[u8]) -> Signature {
    key.signature(Kind::Near, &[&[number], content])
}

/// The signature that says of another: the rest of the message in which it was found was new.
#[must_use]
pub fn stray(key: &FederationKey, of: Signature) -> Signature {
    key.signature(Kind::Stray, &[&of.to_bytes()])
}

/// Makes a reader of messages under `key`.
pub(super) fn reader(key: &FederationKey, traced: bool) -> Reader {
    let words = key.signature(Kind::Near, &[b"words"]).to_bytes();
    Reader::new(words, traced)
}

/// The signatures of what `reader` read.
pub(super) fn finish(reader: Reader, key: &FederationKey) -> Near {
    Near::of(&reader.finish(), key, &Scheme::SHIPPED)
}

/// The `near` signatures of a message, and where each of its words stands: [`Passage::at`] is a number of these.
#[must_use]
pub fn traced(message: &RawMessage, key: &FederationKey) -> (Near, Vec<Place>) {
    let mut reader = reader(key, true);
    message.visit(&mut reader);
    let content = reader.finish();
    (Near::of(&content, key, &Scheme::SHIPPED), content.places)
}

/// What the `near` signatures of a message would be under another scheme.
#[must_use]
pub fn under(message: &RawMessage, key: &FederationKey, scheme: &Scheme) -> Near {
    let mut reader = reader(key, false);
    message.visit(&mut reader);
    Near::of(&reader.finish(), key, scheme)
}
