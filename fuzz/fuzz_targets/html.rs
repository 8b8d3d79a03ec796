// SPDX-License-Identifier: GPL-3.0-or-later
//! Any HTML: its text and targets are no longer than itself, except for the encoding of characters, and found in bounded time
//! even when a piece of it is repeated very often.

#![no_main]

use bulkmark_mail::{Piece, Work, pieces};
use libfuzzer_sys::fuzz_target;

/// Bytes of the piece that is repeated; past the sizes at which tags and comments are cut off.
const REPEATED: usize = 12 << 10;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    // The part before, the repeated piece, the part after; most inputs have no NUL and are taken as they are.
    let mut parts = text.splitn(3, '\0');
    let mut part = || parts.next().unwrap_or("");
    let (before, piece, after) = (part(), part(), part());
    let html = [before, &piece.repeat(REPEATED / piece.len().max(1)), after].concat();
    let (mut seen, mut swallowed) = (0, 0);
    pieces(&html, &Work::default(), &mut |piece| match piece {
        Piece::Text(text) | Piece::Quoted(text) | Piece::Hidden(text) | Piece::Target(text) => {
            seen += text.len();
        }
        Piece::Swallowed(text) | Piece::SwallowedTarget(text) => swallowed += text.len(),
        Piece::Break | Piece::Picture { .. } | Piece::Start { .. } | Piece::End(_) => (),
        Piece::Boxes { .. } | Piece::Box { .. } | Piece::BoxesEnd => (),
    });
    // A byte that cannot stand in HTML becomes a character of three.
    // Style sheets add text up to a bound.
    assert!(seen <= 3 * html.len() + (32 << 10), "{seen} bytes of {}", html.len());
    // Each of three elements may swallow once.
    assert!(swallowed <= 9 * html.len(), "{swallowed} swallowed bytes of {}", html.len());
});
