// SPDX-License-Identifier: GPL-3.0-or-later
//! From what was read of a message to its signatures.

use super::content::{Content, Position};
use super::product::WordKey;
use super::reader::Reader;
use super::sample::{Scheme, sample};
use super::slots::{Near, Slot, Thing};
use crate::mail::RawMessage;
use crate::signature::key::FederationKey;
use crate::signature::types::{Kind, Signature};

/// Words below which a message is its links, or its pictures, rather than its text.
const FEW: usize = 8;

/// Words from which on the text says so much that what is attached matters no more.
const MANY: usize = 64;

/// The signatures of what was read.
fn near(content: &Content, key: &FederationKey, scheme: &Scheme) -> Near {
    let things = things(content, key);
    // Eight in all.
    let slots = sample(&content.words, scheme)
        .into_iter()
        .take(scheme.slots - things.len())
        .zip(0u8..)
        .map(|(passages, slot)| Slot {
            goes_round: passages.first().is_some_and(|first| first.at + scheme.reach() > content.words.len()),
            passages: passages
                .into_iter()
                .map(|passage| (passage, key.passage(slot, passage.hash)))
                .collect(),
        })
        .collect();
    Near { slots, things, rest: None }
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
    if words < FEW && !content.was_cut && content.links.len() > words.max(1) && !content.domains.is_empty() {
        let domains = content.domains.iter().map(String::as_str).collect::<Vec<_>>().join("\0");
        things.push((Thing::Links, signature(key, number::LINKS, domains.as_bytes())));
    }
    things
}

fn signature(key: &FederationKey, number: u8, content: &[u8]) -> Signature {
    key.signature(Kind::Near, &[&[number], content])
}

/// Makes a reader of messages under `key`.
pub(in crate::signature) fn reader(key: &FederationKey, traced: bool) -> Reader {
    Reader::new(WordKey::new(key.words()), traced)
}

/// The signatures of what `reader` read.
pub(in crate::signature) fn finish(reader: Reader, key: &FederationKey) -> Near {
    near(&reader.finish(), key, &Scheme::SHIPPED)
}

/// The `near` signatures of a message, and where each of its words stands: [`Passage::at`](super::Passage::at) is a number of these.
#[must_use]
pub fn traced(message: &RawMessage, key: &FederationKey) -> (Near, Vec<Position>) {
    let mut reader = reader(key, true);
    message.visit(&mut reader);
    let content = reader.finish();
    (near(&content, key, &Scheme::SHIPPED), content.positions)
}

/// What the `near` signatures of a message would be under another scheme.
#[must_use]
pub fn under(message: &RawMessage, key: &FederationKey, scheme: &Scheme) -> Near {
    let mut reader = reader(key, false);
    message.visit(&mut reader);
    near(&reader.finish(), key, scheme)
}
