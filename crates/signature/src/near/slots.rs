// SPDX-License-Identifier: GPL-3.0-or-later
//! The signatures of a message by slot.

use super::known::{Known, Seen};
use super::sample::Passage;
use bulkmark_types::FederationKey;
use bulkmark_types::{Kind, Signature};

/// The passages of a slot: the first one, and others that are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The first passages in the slot's order, with their signatures. The first one is reported, and the most frequent one. Never empty.
    pub passages: Vec<(Passage, Signature)>,
    /// Whether the first passage begins at the end of the text and continues at its beginning.
    pub wraps: bool,
}

impl Slot {
    /// The signature that is always reported.
    #[must_use]
    pub fn reported(&self) -> Signature {
        self.passages[0].1
    }

    /// The place of the reported passage: the index of its first word.
    #[must_use]
    pub fn place(&self) -> usize {
        self.passages[0].0.at
    }

    /// The counts of its passages.
    pub(super) fn known(&self, seen: &Seen) -> SlotKnown {
        let passages: Vec<Known> =
            self.passages.iter().map(|(_, signature)| seen.known(*signature)).collect();
        let carrier = carrier(&passages);
        let is_own = carrier.is_some_and(|carrier| passages[carrier].is_own_block());
        SlotKnown { passages, carrier, is_own }
    }

    /// The passage that carries the count, if any was seen, with its count: the most frequent one that is no block.
    pub(super) fn carrier(&self, seen: &Seen) -> Option<(Signature, u32)> {
        let known = self.known(seen);
        known.carrier.map(|carrier| (self.passages[carrier].1, known.passages[carrier].count))
    }

    /// The carrier, if it is to be reported beside the first passage: copies that differ have other first ones, and count together by it.
    pub(super) fn joined(&self, seen: &Seen) -> Option<Signature> {
        let known = self.known(seen);
        known.carrier.filter(|&carrier| carrier > 0 && !known.is_own).map(|carrier| self.passages[carrier].1)
    }
}

/// The counts of a slot's passages.
#[derive(Debug)]
pub(super) struct SlotKnown {
    pub(super) passages: Vec<Known>,
    carrier: Option<usize>,
    /// Whether the carrier is its sender's own block. All of the slot is one then.
    is_own: bool,
}

impl SlotKnown {
    /// Whether this passage may be a block, of anybody.
    pub(super) fn may_be_block(&self, i: usize) -> bool {
        let may_be = self.carrier.is_some_and(|carrier| self.passages[carrier].may_be_block());
        self.is_block(i) || may_be && self.passages[i].count > 0
    }

    /// Whether this passage is no evidence about the message.
    pub(super) fn is_block(&self, i: usize) -> bool {
        let known = self.passages[i];
        known.is_block() || self.is_own && known.count > 0
    }
}

/// The first of equals wins.
fn carrier(passages: &[Known]) -> Option<usize> {
    let seen = passages.iter().enumerate().filter(|(_, known)| known.count > 0 && !known.is_block());
    seen.rev().max_by_key(|(_, known)| known.count).map(|(i, _)| i)
}

/// The source of a signature that is not made from passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// An attached file, by its number.
    File(usize),
    /// All links together.
    Links,
    /// The path of a picture on the web, by its number.
    Path(usize),
    /// One of the numbers of an enclosed picture. One alone is no evidence.
    Band(u8),
    /// Text hidden by style.
    Hidden,
    /// A short answer, with the names below it and its quote.
    Answer,
}

/// Bands of a picture that must agree, of seven.
const BANDS: usize = 3;

/// The kind of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextKind {
    /// The text that the message quotes. Its words are not among the message's.
    Quoted,
    /// The message that it encloses.
    Enclosed,
    /// Its own last words.
    Last,
}

/// A context of the first words of a message, which have most passages: the text that it quotes, the message that it encloses, or its last
/// words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Its kind.
    pub kind: ContextKind,
    /// Its length in words.
    pub words: usize,
    /// Signatures that identify it; the first one is reported. Never empty.
    pub signatures: Vec<Signature>,
}

impl Context {
    /// Whether it was never seen.
    pub(super) fn is_new(&self, seen: &Seen) -> bool {
        !self.signatures.iter().any(|&signature| seen.has(signature))
    }
}

/// The `near` signatures of a message; all empty if it has too little content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Near {
    /// Signatures of its text.
    pub slots: Vec<Slot>,
    /// Words of the text that were read.
    pub words: usize,
    /// The contexts: quoted text and enclosed message if there are few own words, or else the last words if there is no payload. Their
    /// signatures show whether the words were written for this context, and are never counted.
    pub contexts: Vec<Context>,
    /// The payload: the target that the sender wants the reader to use. It survives when a program rewrites the text. It is evidence only
    /// together with passages. It is reported too.
    pub payload: Option<Signature>,
    /// Whether that may be the writer's own in a letter: a telephone number, or an address of mail.
    pub is_payload_personal: bool,
    /// Signatures of attachments or links, if there is next to no text.
    pub things: Vec<(Thing, Signature)>,
    /// Further lookups for the [bands](Thing::Band) of a picture: their forms with the least certain bits flipped.
    pub unsure: Vec<(u8, Signature)>,
    /// The signature of the few words beside the things, if other words would make it another message. A thing that was seen without it
    /// keeps coming with other text. It is reported too.
    pub rest: Option<Signature>,
}

impl Near {
    /// Whether there are no signatures.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.things.is_empty()
    }

    /// The signatures that a message reports and is recognised by, eight at most.
    pub fn reported(&self) -> impl Iterator<Item = Signature> + '_ {
        let things = self.things.iter().map(|(_, signature)| *signature);
        self.slots.iter().map(Slot::reported).chain(things).chain(self.rest)
    }

    /// The signatures that its [contexts](Self::contexts) report.
    pub fn reported_contexts(&self) -> impl Iterator<Item = Signature> + '_ {
        self.contexts.iter().map(|context| context.signatures[0])
    }

    /// The further signatures that a message reports: those of its contexts, and its payload.
    pub fn reported_beside(&self) -> impl Iterator<Item = Signature> + '_ {
        self.reported_contexts().chain(self.payload)
    }

    /// The count of its picture: `known` returns the counts of a signature, and `count` the count that follows from them. A message reports
    /// each band in one form, so all forms together count the messages with this band; the picture has the count of its third highest band.
    /// 0 without a picture.
    pub(super) fn picture(&self, known: impl Fn(Signature) -> Known, count: impl Fn(Known) -> u32) -> u32 {
        let of_band = |&(thing, signature): &(Thing, Signature)| {
            let Thing::Band(band) = thing else { return None };
            let forms = self.unsure.iter().filter(|&&(of, _)| of == band).map(|&(_, signature)| signature);
            let all = forms.chain([signature]).map(&known);
            Some(count(all.fold(Known::default(), |sum, form| Known {
                count: sum.count.saturating_add(form.count),
                strays: sum.strays.saturating_add(form.strays),
                ..sum
            })))
        };
        let mut bands: Vec<u32> = self.things.iter().filter_map(of_band).collect();
        bands.sort_unstable_by(|a, b| b.cmp(a));
        bands.get(BANDS - 1).copied().unwrap_or(0)
    }
}

/// The signature that reports another one as found below new text.
#[must_use]
pub fn stray(key: &FederationKey, of: Signature) -> Signature {
    key.signature(Kind::Stray, &[&of.to_bytes()])
}
