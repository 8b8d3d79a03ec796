// SPDX-License-Identifier: GPL-3.0-or-later
//! Any style sheet: it decides whether text is hidden, adds some or turns it around, and changes nothing else of the text, in bounded
//! time even when a piece of it is repeated very often.

#![no_main]

use bulkmark_mail::{Piece, Work, pieces};
use libfuzzer_sys::fuzz_target;

/// Bytes of the piece that is repeated.
const REPEATED: usize = 8 << 10;

/// Elements that match many rules.
const BODY: &str = "<div id=a class='a b c'><p class=a>one<b style='color:#fff'>two</b></p></div><span id=b class=b>three</span>";

/// All text of a page, hidden or not.
fn text(html: &str) -> String {
    let mut all = String::new();
    pieces(html, &Work::default(), &mut |piece| {
        if let Piece::Text(text) | Piece::Quoted(text) | Piece::Hidden(text) = piece {
            all.push_str(text);
        }
    });
    all
}

fuzz_target!(|data: &[u8]| {
    let Ok(css) = str::from_utf8(data) else { return };
    // The part before, the repeated piece, the part after; most inputs have no NUL and are taken as they are.
    let mut parts = css.splitn(3, '\0');
    let mut part = || parts.next().unwrap_or("");
    let (before, piece, after) = (part(), part(), part());
    let css = [before, &piece.repeat(REPEATED / piece.len().max(1)), after].concat();
    // The sheet must end here, with nothing behind it.
    if css.contains('<') {
        return;
    }
    let found = text(&format!("<style>{css}</style>{BODY}"));
    let same = |found: &str, text: &str| {
        let turns = css.contains('\\')
            || ["content", "bidi"].iter().any(|word| css.to_ascii_lowercase().contains(word));
        if turns {
            assert!((text.len()..=text.len() + (32 << 10)).contains(&found.len()), "{found}");
        } else {
            assert_eq!(found, text);
        }
    };
    same(&found, &text(BODY));
    // The same in an attribute; a tag with too many separators is no tag.
    let quoted = css.chars().take(3000).collect::<String>().replace('&', "&amp;").replace('"', "&quot;");
    same(&text(&format!("<p style=\"{quoted}\">one</p>")), "one");
});
