// SPDX-License-Identifier: GPL-3.0-or-later
//! Any message: read without a panic, no byte of it shown twice, and with the same signatures, however its bytes are cut.

#![no_main]

use bulkmark_mail::{File, MAX_DEPTH, RawMessage, Text, Visitor};
use bulkmark_signature::near::positions;
use bulkmark_signature::{Settings, body, signatures};
use bulkmark_types::FederationKey;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static KEY: LazyLock<FederationKey> = LazyLock::new(FederationKey::public);

/// Reads everything and keeps nothing.
#[derive(Default)]
struct Look {
    bytes: usize,
    /// The same in the form of mail programs.
    shown: usize,
    depth: usize,
}

impl Visitor for Look {
    fn text(&mut self, text: Text<'_>) {
        self.bytes += text.exact.len();
        self.shown += text.shown.len();
    }
    fn html(&mut self, html: Text<'_>) {
        self.bytes += html.exact.len();
        self.shown += html.shown.len();
    }
    fn file(&mut self, file: File<'_>) {
        self.bytes += file.exact.len();
        self.shown += file.shown.len();
    }
    fn message(&mut self, _: &[&[u8]]) {
        self.depth += 1;
        assert!(self.depth <= MAX_DEPTH);
    }
    fn message_end(&mut self) {
        self.depth -= 1;
    }
}

/// Where the body begins: behind the first empty line.
fn body_of(raw: &[u8]) -> usize {
    let mut lines = raw.split_inclusive(|&b| b == b'\n').scan(0, |end, line| {
        *end += line.len();
        Some((line, *end))
    });
    lines.find(|&(line, _)| line == b"\n" || line == b"\r\n").map_or(raw.len(), |(_, end)| end)
}

fuzz_target!(|raw: &[u8]| {
    let message = RawMessage::from_bytes(raw);
    let mut look = Look::default();
    message.visit(&mut look);
    assert_eq!(look.depth, 0, "each enclosed message that began must end");
    // A byte of an old charset may become three or four in UTF-8.
    assert!(look.bytes <= 4 * raw.len(), "{} bytes of {}", look.bytes, raw.len());
    assert!(look.shown <= 4 * raw.len(), "{} shown bytes of {}", look.shown, raw.len());

    let (head, rest) = raw.split_at(body_of(raw));
    let mut pieces = RawMessage::from_bytes(head);
    rest.chunks(1 + raw.len() % 61).for_each(|piece| pieces.body(piece));
    assert_eq!(pieces.fields(), message.fields());
    let settings = Settings::default();
    let found = signatures(&message, &KEY, &settings);
    assert_eq!(signatures(&pieces, &KEY, &settings), found);
    // A part has the same result alone and among the others.
    assert_eq!(body(&message, &KEY, &settings), found.body);
    assert!(found.near.reported().count() <= 8);
    let places = positions(&message, &KEY);
    assert!(
        found.near.slots.iter().flat_map(|slot| &slot.passages).all(|(passage, _)| passage.at < places.len())
    );
});
