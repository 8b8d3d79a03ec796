// SPDX-License-Identifier: GPL-3.0-or-later
//! Folds a line for finding numbers and addresses: no invisible characters, and one kind of digits, dashes and dots.

use crate::text::is_blank;
use std::borrow::Cow;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfkc_quick};

/// The zeros of scripts whose digits NFKC does not change, in order; nine digits follow each.
const ZEROS: [char; 22] = [
    '\u{0660}', '\u{06F0}', '\u{07C0}', '\u{0966}', '\u{09E6}', '\u{0A66}', '\u{0AE6}', '\u{0B66}',
    '\u{0BE6}', '\u{0C66}', '\u{0CE6}', '\u{0D66}', '\u{0E50}', '\u{0ED0}', '\u{0F20}', '\u{1040}',
    '\u{1090}', '\u{17E0}', '\u{1810}', '\u{1946}', '\u{A8D0}', '\u{AA50}',
];

/// Removes disguises from a line. Changes only a line that is not ASCII, or has `[at]` and the like.
pub(super) fn fold(line: &str) -> Cow<'_, str> {
    let folded = without_disguises(line);
    match without_brackets(&folded) {
        Some(plain) => Cow::Owned(plain),
        None => folded,
    }
}

/// Replaces each character by its fold. Most lines that are not ASCII stay as they are, and are not copied.
fn without_disguises(line: &str) -> Cow<'_, str> {
    let mut folded: Option<String> = None;
    let (mut copied, mut at) = (0, 0);
    while let Some(next) = line.bytes().skip(at).position(|b| !b.is_ascii() || b == b'\t') {
        let start = at + next;
        let Some(c) = line[start..].chars().next() else { break };
        at = start + c.len_utf8();
        if !stays(c) {
            let folded = folded.get_or_insert_with(|| String::with_capacity(line.len()));
            folded.push_str(&line[copied..start]);
            push(folded, c);
            copied = at;
        }
    }
    folded.map_or(Cow::Borrowed(line), |mut folded| {
        folded.push_str(&line[copied..]);
        Cow::Owned(folded)
    })
}

/// Whether the fold of a character that is not ASCII is itself, as of nearly all letters.
fn stays(c: char) -> bool {
    let is_letter = !c.is_whitespace() && !is_invisible(c) && plain(c) == c;
    is_letter && is_nfkc_quick(std::iter::once(c)) == IsNormalized::Yes
}

/// Appends the fold of a character: at most 18 others (U+FDFA).
fn push(folded: &mut String, c: char) {
    if c.is_whitespace() {
        folded.push(' ');
    } else if !is_invisible(c) {
        folded.extend(std::iter::once(c).nfkc().map(plain));
    }
}

/// Whether a character is invisible: blanks, marks of direction, variant selectors, the frame of a key cap.
fn is_invisible(c: char) -> bool {
    is_blank(c)
        || matches!(c, '\u{061C}' | '\u{202A}'..='\u{202E}' | '\u{2061}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{20E3}')
}

fn plain(c: char) -> char {
    let zero = ZEROS[..ZEROS.partition_point(|&zero| zero <= c)].last();
    let digit = zero.and_then(|&zero| char::from_digit(u32::from(c) - u32::from(zero), 10));
    digit.unwrap_or(match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE63}' => '-',
        '\u{00B7}' | '\u{2022}' | '\u{2219}' | '\u{3002}' | '\u{30FB}' => '.',
        '\u{2044}' | '\u{2215}' => '/',
        _ => c,
    })
}

/// Undoes `name [at] host (dot) example`; `None` if there is nothing to undo.
fn without_brackets(line: &str) -> Option<String> {
    let mut plain: Option<String> = None;
    let mut done = 0;
    for at in memchr::memchr3_iter(b'[', b'(', b'{', line.as_bytes()) {
        let Some((sign, length)) = bracketed(&line[at..]) else { continue };
        let all = plain.get_or_insert_default();
        // Removes the blanks on both sides.
        all.push_str(line[done..at].trim_end_matches(' '));
        all.push(sign);
        done = line.len() - line[at + length..].trim_start_matches(' ').len();
    }
    plain.as_mut()?.push_str(&line[done..]);
    plain
}

/// The sign for a word in brackets, and the bytes of both.
fn bracketed(text: &str) -> Option<(char, usize)> {
    let end = text.as_bytes().iter().take(10).position(|b| matches!(b, b']' | b')' | b'}'))?;
    let word = text[1..end].trim_matches(' ');
    let sign = if word.eq_ignore_ascii_case("at") || word == "@" {
        '@'
    } else if word.eq_ignore_ascii_case("dot") || word == "." {
        '.'
    } else {
        return None;
    };
    Some((sign, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn disguises_are_undone() {
        for (line, plain) in [
            ("plain", "plain"),
            ("+４４ ２０", "+44 20"),
            ("٠١٢٣", "0123"),
            ("1\u{FE0F}\u{20E3}2\u{200B}3\u{AD}4", "1234"),
            ("𝟏𝟐\u{A0}\u{2011}\u{2013}3", "12 --3"),
            ("a\tb", "a b"),
            ("a [at] b (DOT) c{ . }d", "a@b.c.d"),
            ("f(x) [attention] (at", "f(x) [attention] (at"),
        ] {
            assert_eq!(fold(line), plain);
        }
    }

    proptest! {
        /// Nothing is cut inside a character, and folding again changes nothing.
        #[test]
        fn folding_is_idempotent(line in "([\\[({]( ?at ?|dot|.)[\\])}]|\\PC| |@|\u{FF11}|\u{200B}){0,40}") {
            let once = fold(&line).into_owned();
            // Folding may put two brackets together.
            let twice = fold(&once).into_owned();
            prop_assert!(twice.len() <= once.len());
            if without_brackets(&once).is_none() {
                prop_assert_eq!(&twice, &once);
            }
        }
    }
}
