// SPDX-License-Identifier: GPL-3.0-or-later
//! The `body` signature: an exact digest of the content that a reader sees.

use super::guard::Guard;
use super::settings::Settings;
use super::text::is_blank;
use bulkmark_mail::{File, Piece, RawMessage, Text, Visitor, is_data};
use bulkmark_types::FederationKey;
use bulkmark_types::{Kind, LowInformation, Signature};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// Marks in the canonical stream. Text holds no byte below 0x21, so text cannot forge them.
mod mark {
    pub(super) const TEXT: u8 = 0x01;
    pub(super) const HTML: u8 = 0x02;
    pub(super) const TARGET: u8 = 0x03;
    pub(super) const TARGET_END: u8 = 0x04;
    pub(super) const ATTACHMENT: u8 = 0x05;
    pub(super) const MESSAGE: u8 = 0x06;
    pub(super) const FIELD: u8 = 0x07;
    pub(super) const MESSAGE_END: u8 = 0x08;
}

/// The `body` signature of a message: the first half of HMAC-SHA-256 under `key` over the kind's name and the
/// canonical form of the content (docs/signatures.md).
///
/// # Errors
/// [`LowInformation`] if the message has too few distinct words to differ from unrelated messages.
pub fn body(
    message: &RawMessage,
    key: &FederationKey,
    settings: &Settings,
) -> Result<Signature, LowInformation> {
    let mut canonical = Canonical::new(key, settings.min_words.get());
    message.visit(&mut canonical);
    canonical.finish()
}

pub(super) struct Canonical {
    mac: Hmac<Sha256>,
    /// Canonical bytes not yet hashed: `mac` is faster in large pieces.
    pending: Vec<u8>,
    guard: Guard,
}

/// Characters of an address from which on the picture in it is as much as an attachment: programs put the same dots and lines into all mail.
const MIN_DATA: usize = 1024;

/// Bytes that are collected before they are hashed; small enough for the first-level cache.
const PIECE: usize = 8 << 10;

impl Canonical {
    pub(super) fn new(key: &FederationKey, min_words: usize) -> Self {
        Self {
            mac: key.mac(Kind::Body),
            pending: Vec::with_capacity(2 * PIECE),
            guard: Guard::new(min_words),
        }
    }

    /// An HTML part begins, whose pieces follow.
    pub(super) fn html_begin(&mut self) {
        self.mark(mark::HTML);
    }

    /// A piece of an HTML part.
    pub(super) fn piece(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text(text) | Piece::Quoted(text) | Piece::Hidden(text) => {
                self.characters(text);
                self.guard.visible(text);
            }
            Piece::Target(target) => {
                self.mark(mark::TARGET);
                self.characters(target);
                self.mark(mark::TARGET_END);
                self.guard.target(target);
            }
            // Its bytes are in its address, which is content.
            Piece::Picture { source, .. } if source.len() > MIN_DATA && is_data(source) => {
                self.guard.attachment(source.as_bytes());
            }
            // The link's target is content; enclosed pictures enter as attachments.
            Piece::Picture { .. }
            | Piece::Break
            | Piece::Start { .. }
            | Piece::End(_)
            | Piece::Boxes { .. }
            | Piece::Box { .. }
            | Piece::BoxesEnd
            | Piece::Swallowed(_)
            | Piece::SwallowedTarget(_) => (),
        }
    }

    fn mark(&mut self, mark: u8) {
        self.pending.push(mark);
    }

    /// Text without white space and control characters: wrapping, trailing blanks and format=flowed do not change the digest.
    fn characters(&mut self, text: &str) {
        for piece in pieces(text) {
            push_graphic(&mut self.pending, piece);
            if self.pending.len() >= PIECE {
                self.mac.update(&self.pending);
                self.pending.clear();
            }
        }
    }

    pub(super) fn finish(mut self) -> Result<Signature, LowInformation> {
        self.guard.verdict()?;
        self.mac.update(&self.pending);
        Ok(Signature::from_digest(&self.mac.finalize().into_bytes().into()))
    }
}

impl Visitor for Canonical {
    fn text(&mut self, text: Text<'_>) {
        self.mark(mark::TEXT);
        self.characters(text.exact);
        self.guard.text(text.exact);
    }

    fn html(&mut self, html: Text<'_>) {
        self.html_begin();
        bulkmark_mail::pieces(html.exact, html.work, &mut |piece| self.piece(piece));
    }

    /// Attachments enter by the SHA-256 of their bytes, with CRLF as LF and without line ends at the end: an unencoded
    /// text-like attachment has the line ends of its transport.
    fn file(&mut self, file: File<'_>) {
        let bytes = trim_line_ends(file.exact);
        let mut hash = Sha256::new();
        let mut rest = bytes;
        while let Some(at) = memchr::memmem::find(rest, b"\r\n") {
            hash.update(&rest[..at]);
            rest = &rest[at + 1..];
        }
        hash.update(rest);
        self.mark(mark::ATTACHMENT);
        self.pending.extend_from_slice(&hash.finalize());
        self.guard.attachment(bytes);
    }

    fn message(&mut self, fields: &[&[u8]]) {
        self.mark(mark::MESSAGE);
        for field in fields {
            self.mark(mark::FIELD);
            let text = String::from_utf8_lossy(field);
            self.characters(&text);
            self.guard.visible(&text);
        }
    }

    fn message_end(&mut self) {
        self.mark(mark::MESSAGE_END);
    }
}

/// Pieces of about [`PIECE`] bytes, cut between characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Bytes of a piece that is found to be ASCII at once.
const ASCII: usize = 64;

/// Appends the characters that are not blank, as UTF-8.
fn push_graphic(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    while !rest.is_empty() {
        // Most text is ASCII, and looked through in pieces far faster than by the byte.
        let pieces = rest.as_bytes().chunks(ASCII).take_while(|piece| piece.is_ascii());
        let pure = pieces.map(<[u8]>::len).sum::<usize>();
        let ascii = pure + rest.bytes().skip(pure).take_while(u8::is_ascii).count();
        push_graphic_ascii(out, &rest.as_bytes()[..ascii]);
        rest = &rest[ascii..];
        while let Some(c) = rest.chars().next().filter(|c| !c.is_ascii()) {
            let (bytes, after) = rest.split_at(c.len_utf8());
            if !is_blank(c) {
                out.extend_from_slice(bytes.as_bytes());
            }
            rest = after;
        }
    }
}

fn push_graphic_ascii(out: &mut Vec<u8>, ascii: &[u8]) {
    let mut end = out.len();
    out.resize(end + ascii.len(), 0);
    // Each byte is written and the next one overwrites it unless it stays: no branch to mispredict at every word.
    for &b in ascii {
        out[end] = b;
        end += usize::from(b.wrapping_sub(b'!') <= b'~' - b'!');
    }
    out.truncate(end);
}

fn trim_line_ends(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r' | b'\n'] = bytes {
        bytes = rest;
    }
    bytes
}
