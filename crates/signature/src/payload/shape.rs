// SPDX-License-Identifier: GPL-3.0-or-later
//! The shape of a link: the part of its path and query common to all copies of a mailing. Words stay; all else becomes its kind and size.

use super::host::decoded;
use std::collections::BTreeSet;

/// Segments of a path, and names of a query, that are read.
const MAX_SEGMENTS: usize = 16;
const MAX_NAMES: usize = 16;

/// Bytes of a segment or name that stays as written; longer ones are cut.
const MAX_WORD: usize = 48;

/// Letters and digits from which on a row of them may be random.
const RANDOM: usize = 6;

/// Changes between kinds of characters, and consonants in a row, that no word has.
const TURNS: usize = 3;
const CONSONANTS: usize = 6;

/// Hexadecimal and decimal digits of a generated number.
const HEXADECIMAL: usize = 8;
const DECIMAL: usize = 3;

/// The shape of a path and a query, both without their first mark, and whether the shape replaced a part of the path.
///
/// Cost: linear in both.
pub(super) fn shape(path: &str, query: Option<&str>) -> (String, bool) {
    let mut shape = String::new();
    let mut is_word = true;
    for segment in path.split('/').filter(|segment| !segment.is_empty()).take(MAX_SEGMENTS) {
        shape.push('/');
        is_word &= add(&mut shape, segment);
    }
    let Some(query) = query else { return (shape, !is_word) };
    let names: BTreeSet<String> = query
        .split(['&', ';'])
        .filter(|pair| !pair.is_empty())
        .take(MAX_NAMES)
        .map(|pair| {
            let mut name = String::new();
            add(&mut name, pair.split_once('=').map_or(pair, |(name, _)| name));
            name
        })
        .collect();
    let mut mark = '?';
    for name in names {
        shape.push(mark);
        shape.push_str(&name);
        mark = '&';
    }
    (shape, !is_word)
}

/// Adds a segment or name. Returns whether it was added unchanged.
fn add(shape: &mut String, text: &str) -> bool {
    let text = decoded(text);
    let mut is_whole = true;
    for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
        match kind(word) {
            Some(kind) => {
                is_whole = false;
                shape.push_str(&kind);
            }
            None => shape.push_str(&word[..word.floor_char_boundary(MAX_WORD)].to_lowercase()),
        }
        // The characters between words, except the marks of the shape itself.
        shape.extend(
            piece[word.len()..]
                .chars()
                .filter(|c| !c.is_control() && !matches!(c, '/' | '?' | '&' | '<' | '>')),
        );
    }
    is_whole
}

/// The replacement for letters and digits that are no word: `<9>` for decimal digits, `<h5>` for hexadecimal ones and `<b4>` for others,
/// with the bits of their length.
fn kind(text: &str) -> Option<String> {
    let bits = usize::BITS - text.len().leading_zeros();
    if !text.is_ascii() {
        return (text.len() > MAX_WORD).then(|| format!("<b{bits}>"));
    }
    let (digits, mut hexadecimal, mut turns, mut row, mut consonants, mut last) =
        (text.bytes().filter(u8::is_ascii_digit).count(), 0, 0, 0, 0, b' ');
    for b in text.bytes() {
        hexadecimal += usize::from(b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
        let turned = match (last, b) {
            (b' ', _) => false,
            (last, b) if last.is_ascii_digit() != b.is_ascii_digit() => true,
            (last, b) => last.is_ascii_lowercase() && b.is_ascii_uppercase(),
        };
        turns += usize::from(turned);
        row = if b.is_ascii_alphabetic() && !b"aeiouyAEIOUY".contains(&b) { row + 1 } else { 0 };
        consonants = consonants.max(row);
        last = b;
    }
    if digits == text.len() {
        return (digits >= DECIMAL).then(|| "<9>".to_owned());
    }
    let same_case =
        hexadecimal == text.len() || text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'A'..=b'F'));
    if same_case && text.len() >= HEXADECIMAL && digits > 0 {
        return Some(format!("<h{bits}>"));
    }
    let is_random = text.len() >= RANDOM && (turns >= TURNS || consonants >= CONSONANTS);
    (is_random || text.len() > MAX_WORD).then(|| format!("<b{bits}>"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shapes() {
        for (path, query, wanted) in [
            ("", None, ""),
            ("/", None, ""),
            ("/a//b/", None, "/a/b"),
            ("/Autumn-Prices-2031", None, "/autumn-prices-<9>"),
            ("/v2/index.html", None, "/v2/index.html"),
            ("/unsub/8374982", None, "/unsub/<9>"),
            ("/i/5f0c9a4417be.png", None, "/i/<h4>.png"),
            ("/3xYzAbC", None, "/<b3>"),
            ("/track/aGVsbG8gd29ybGQh", None, "/track/<b5>"),
            ("/qwrtzpsdf", None, "/<b4>"),
            ("/ContactUsForm", None, "/contactusform"),
            ("/x", Some("b=1&a=2&b=3"), "/x?a&b"),
            ("/x", Some("4711"), "/x?<9>"),
            ("/x", Some(""), "/x"),
            ("/a%62c", None, "/abc"),
            ("/<9>", None, "/9"),
        ] {
            assert_eq!(shape(path, query).0, wanted, "{path} {query:?}");
        }
        // Ids of one length, of any person.
        assert_eq!(shape("/c/7Kd93hQz", None), shape("/c/x93Hd9Qz", None));
        assert!(shape("/c/7Kd93hQz", None).1 && !shape("/terms/of-use.html", None).1);
        assert!(shape(&"/word".repeat(1000), Some(&"a=b&".repeat(1000))).0.len() < 100);
    }

    proptest! {
        #[test]
        fn nothing_panics_and_it_is_bounded(path in "(/|[a-zA-Z0-9]{0,9}|%[0-9a-f]{2}|\\PC){0,60}", query in "\\PC{0,60}") {
            let (shape, _) = shape(&path, Some(&query));
            prop_assert!(shape.len() <= 4 * (path.len() + query.len()) + 2);
        }
    }
}
