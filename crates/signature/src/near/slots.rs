// SPDX-License-Identifier: GPL-3.0-or-later
//! The signatures of a message, each in its slot.

use super::known::{Known, Seen};
use super::sample::Passage;
use bulkmark_types::FederationKey;
use bulkmark_types::{Kind, Signature};

/// What is reported of a passage, and what else is asked for in its slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The passages that come first in the slot's order, and their signatures. The first one is reported; a count is that
    /// of all of them. Never empty.
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

    /// What is known of its passages.
    pub(super) fn known(&self, seen: &Seen) -> SlotKnown {
        let passages: Vec<Known> =
            self.passages.iter().map(|(_, signature)| seen.known(*signature)).collect();
        let carrier = carrier(&passages);
        let is_own = carrier.is_some_and(|carrier| passages[carrier].is_own_block());
        SlotKnown { passages, carrier, is_own }
    }

    /// The one of its passages that carries what may be counted, if any was seen: the one seen most often that is no block; and how
    /// often all that are none were.
    pub(super) fn carrier(&self, seen: &Seen) -> Option<(Signature, u32)> {
        let known = self.known(seen);
        let own = known.passages.iter().filter(|known| !known.is_block()).map(|known| known.count);
        let count = own.fold(0, u32::saturating_add);
        known.carrier.map(|carrier| (self.passages[carrier].1, count))
    }
}

/// What is known of the passages of a slot.
#[derive(Debug)]
pub(super) struct SlotKnown {
    pub(super) passages: Vec<Known>,
    carrier: Option<usize>,
    /// Whether it is its sender's own block. All of the slot is one then.
    is_own: bool,
}

impl SlotKnown {
    /// Whether this one of its passages may be a block, of anybody.
    pub(super) fn may_be_block(&self, i: usize) -> bool {
        let may_be = self.carrier.is_some_and(|carrier| self.passages[carrier].may_be_block());
        self.is_block(i) || may_be && self.passages[i].count > 0
    }

    /// Whether this one of its passages says nothing of the message.
    pub(super) fn is_block(&self, i: usize) -> bool {
        let known = self.passages[i];
        known.is_block() || self.is_own && known.count > 0
    }
}

/// Of equal ones the first.
fn carrier(passages: &[Known]) -> Option<usize> {
    let seen = passages.iter().enumerate().filter(|(_, known)| known.count > 0 && !known.is_block());
    seen.rev().max_by_key(|(_, known)| known.count).map(|(i, _)| i)
}

/// From what else than text a signature was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// An attached file, by its number.
    File(usize),
    /// All links together.
    Links,
    /// The path of a picture on the net, by its number.
    Path(usize),
    /// One of the numbers of an enclosed picture. One alone says nothing.
    Band(u8),
    /// What its style hides.
    Hidden,
    /// A few words, the names below them, and the text that they are put above.
    Answer,
}

/// Bands of a picture that must agree, of seven.
const BANDS: usize = 3;

/// Of which text a context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextKind {
    /// The text that the message quotes. Its words are none of the message's.
    Quoted,
    /// The message that it encloses.
    Enclosed,
    /// Its own last words.
    Last,
}

/// What stands with the first words of a message, from which most slots have their passages: the text that it quotes, the message that it
/// encloses, or its last words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Which text this is.
    pub kind: ContextKind,
    /// How many words it has.
    pub words: usize,
    /// By which it is known again; the first one is reported. Never empty.
    pub signatures: Vec<Signature>,
}

impl Context {
    /// Whether it was never seen.
    pub(super) fn is_new(&self, seen: &Seen) -> bool {
        !self.signatures.iter().any(|&signature| seen.has(signature))
    }
}

/// The `near` signatures of a message; all empty when it says too little.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Near {
    /// Those of its text.
    pub slots: Vec<Slot>,
    /// How many words of it were read.
    pub words: usize,
    /// What it quotes and what it encloses, where it has few words of its own, or else its last words, where it has no payload. Their
    /// signatures say whether the words were written for that, and count nothing.
    pub contexts: Vec<Context>,
    /// That of its payload: what the sender wants of the reader, which stays when a program writes the text anew. It says something
    /// beside passages, and nothing alone. It is reported too.
    pub payload: Option<Signature>,
    /// Those of what is attached or linked, where there is next to no text.
    pub things: Vec<(Thing, Signature)>,
    /// What else is asked for the [bands](Thing::Band) of a picture: as they would be if their least certain bits were others.
    pub unsure: Vec<(u8, Signature)>,
    /// That of the few words beside the things, where other words would mean another message. A thing that was seen while this
    /// was not stands beside ever other text. It is reported too.
    pub rest: Option<Signature>,
}

impl Near {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.things.is_empty()
    }

    /// The signatures that a message reports and is known again by, eight at most.
    pub fn reported(&self) -> impl Iterator<Item = Signature> + '_ {
        let things = self.things.iter().map(|(_, signature)| *signature);
        self.slots.iter().map(Slot::reported).chain(things).chain(self.rest)
    }

    /// The signatures that its [contexts](Self::contexts) report.
    pub fn reported_contexts(&self) -> impl Iterator<Item = Signature> + '_ {
        self.contexts.iter().map(|context| context.signatures[0])
    }

    /// What else a message reports: the signatures of its contexts, and its payload.
    pub fn reported_beside(&self) -> impl Iterator<Item = Signature> + '_ {
        self.reported_contexts().chain(self.payload)
    }

    /// What its picture counts: `known` says of a signature how often it was seen, and `says` what that counts. A message reports
    /// each band in one form, so all forms together are the messages with this band; the picture counts as its third highest
    /// band. Nothing where there is no picture.
    pub(super) fn picture(&self, known: impl Fn(Signature) -> Known, says: impl Fn(Known) -> u32) -> u32 {
        let of_band = |&(thing, signature): &(Thing, Signature)| {
            let Thing::Band(band) = thing else { return None };
            let forms = self.unsure.iter().filter(|&&(of, _)| of == band).map(|&(_, signature)| signature);
            let all = forms.chain([signature]).map(&known);
            Some(says(all.fold(Known::default(), |sum, form| Known {
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

/// The signature that says of another: it was found below new text.
#[must_use]
pub fn stray(key: &FederationKey, of: Signature) -> Signature {
    key.signature(Kind::Stray, &[&of.to_bytes()])
}
