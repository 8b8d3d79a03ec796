// SPDX-License-Identifier: GPL-3.0-or-later
//! Makes the signatures of a message from its content.

use super::content::{Content, NO_ANSWER, Position};
use super::context::contexts;
use super::product::WordKey;
use super::reader::Reader;
use super::sample::{Scheme, first_hash, sample};
use super::slots::{Context, ContextKind, Near, Slot, Thing};
use super::things::{FEW, choose};
use crate::payload::Payload;
use bulkmark_mail::{Correspondents, RawMessage};
use bulkmark_types::FederationKey;
use bulkmark_types::{Kind, Signature};

/// The signatures of this content.
fn near(
    content: &Content,
    key: &FederationKey,
    scheme: &Scheme,
    payload: Option<(Payload, Signature)>,
) -> Near {
    let hidden = hidden(content, key);
    let slots: Vec<Slot> = sample(&content.words, scheme)
        .into_iter()
        // Eight in all.
        .take(scheme.slots - usize::from(hidden.is_some()))
        .zip(0u8..)
        .map(|(passages, slot)| Slot {
            wraps: passages.first().is_some_and(|first| first.at + scheme.reach() > content.words.len()),
            passages: passages
                .into_iter()
                .map(|passage| (passage, key.passage(slot, passage.hash)))
                .collect(),
        })
        .collect();
    if slots.is_empty() {
        return of_things(content, key);
    }
    let context = |(kind, words, hashes): (ContextKind, usize, Vec<u64>)| {
        let number = match kind {
            ContextKind::Quoted => number::QUOTED,
            ContextKind::Enclosed => number::ENCLOSED,
            ContextKind::Last => number::LAST,
        };
        let signatures = hashes.iter().map(|hash| signature(key, number, &hash.to_le_bytes())).collect();
        Context { kind, words, signatures }
    };
    Near {
        slots,
        words: content.words.len(),
        contexts: contexts(content, payload.is_some()).into_iter().map(context).collect(),
        payload: payload.map(|(_, signature)| signature),
        is_payload_personal: payload.is_some_and(|(kind, _)| kind.is_personal()),
        things: hidden.map(|hidden| (Thing::Hidden, hidden)).into_iter().collect(),
        ..Near::default()
    }
}

/// Numbers in place of a slot number, for signatures of other things than passages.
mod number {
    pub(super) const FILE: u8 = 0x80;
    pub(super) const LINKS: u8 = 0x81;
    pub(super) const PATH: u8 = 0x82;
    pub(super) const REST: u8 = 0x83;
    pub(super) const HIDDEN: u8 = 0x84;
    pub(super) const QUOTED: u8 = 0x85;
    pub(super) const ENCLOSED: u8 = 0x86;
    pub(super) const ANSWER: u8 = 0x87;
    pub(super) const LAST: u8 = 0x88;
    /// Plus the number of the band.
    pub(super) const BAND: u8 = 0x90;
}

/// The signature of the hidden text, if it is long enough: of the passage that comes first in one fixed order.
fn hidden(content: &Content, key: &FederationKey) -> Option<Signature> {
    Some(signature(key, number::HIDDEN, &first_hash(&content.hidden)?.to_le_bytes()))
}

/// The signatures of a message without text.
fn of_things(content: &Content, key: &FederationKey) -> Near {
    let chosen = choose(content.words.len(), &content.page, &content.files);
    let bytes = |hashes: &[u64]| hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect::<Vec<u8>>();
    let (mut things, mut unsure) = (Vec::new(), Vec::new());
    for band in chosen.bands {
        let of = |bits: u32| signature(key, number::BAND + band.number, &bits.to_le_bytes());
        things.push((Thing::Band(band.number), of(band.bits)));
        unsure.extend(band.others.iter().map(|&bits| (band.number, of(bits))));
    }
    // A picture has seven bands, and the rest makes eight signatures in all.
    if things.is_empty() {
        let paths = chosen.paths.iter().map(|path| signature(key, number::PATH, &path.to_le_bytes()));
        things.extend(paths.enumerate().map(|(i, path)| (Thing::Path(i), path)));
        let files = chosen.files.iter().map(|digest| signature(key, number::FILE, *digest));
        things.extend(files.enumerate().map(|(i, file)| (Thing::File(i), file)));
        things
            .extend(chosen.links.map(|links| (Thing::Links, signature(key, number::LINKS, &bytes(&links)))));
    }
    if things.is_empty() {
        things.extend(
            answer(content).map(|hashes| (Thing::Answer, signature(key, number::ANSWER, &bytes(&hashes)))),
        );
        return Near { things, unsure, ..Near::default() };
    }
    // A name in a longer text does not make it another one.
    let mut rest =
        first_hash(&content.words).map_or_else(|| bytes(&content.words), |passage| bytes(&[passage]));
    if chosen.files.len() > 1 || !chosen.bands.is_empty() {
        // One of several may be an attachment of all mail.
        rest.extend(chosen.files.iter().flat_map(|digest| *digest));
    }
    let has_rest = !chosen.alone && !rest.is_empty();
    let rest = has_rest.then(|| signature(key, number::REST, &rest));
    Near { things, unsure, rest, ..Near::default() }
}

/// The hashes of an answer with too few words for passages: all its words, the names below, and the passage of the quote that comes first
/// in one fixed order. Different people answer one letter in the same words, but sign with other names.
fn answer(content: &Content) -> Option<Vec<u64>> {
    let quoted = content.quoted.as_ref().filter(|_| content.words.len() > NO_ANSWER)?;
    let passage = first_hash(&quoted.words)?;
    Some([&content.words[..], &content.names, &[passage]].concat())
}

fn signature(key: &FederationKey, number: u8, content: &[u8]) -> Signature {
    key.signature(Kind::Near, &[&[number], content])
}

/// Makes a reader of messages under `key`.
pub(crate) fn reader(key: &FederationKey, traced: bool) -> Reader {
    Reader::new(WordKey::new(key.words()), traced)
}

/// The signatures of the content read, for a message between these correspondents.
pub(crate) fn finish(reader: Reader, key: &FederationKey, between: &Correspondents) -> Near {
    let mut content = reader.finish();
    let payload = std::mem::take(&mut content.payload).finish(key, between);
    if content.words.len() < FEW && payload.is_none() {
        return of_things(&content, key);
    }
    near(&content, key, &Scheme::SHIPPED, payload)
}

/// The place of each word of a message: [`Passage::at`](super::Passage::at) is an index of these.
#[must_use]
pub fn positions(message: &RawMessage, key: &FederationKey) -> Vec<Position> {
    let mut reader = reader(key, true);
    message.visit(&mut reader);
    reader.finish().positions
}

/// The `near` signatures of a message under another scheme.
#[must_use]
pub fn under(message: &RawMessage, key: &FederationKey, scheme: &Scheme) -> Near {
    let mut reader = reader(key, false);
    message.visit(&mut reader);
    near(&reader.finish(), key, scheme, None)
}
