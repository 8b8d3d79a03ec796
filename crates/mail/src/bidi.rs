// SPDX-License-Identifier: GPL-3.0-or-later
//! Text written backwards and reversed by an override character (Unicode Standard Annex 9).

use super::look::Visibility;
use super::piece::Piece;
use std::borrow::Cow;

/// Right-to-left override: reverses the letters behind it.
const OVERRIDE: char = '\u{202E}';

/// Ends an override, as does the end of a line.
const POP: char = '\u{202C}';

/// A text in reading order: letters behind a right-to-left override are reversed, up to its end or that of the line. Nested overrides count
/// as one. Linear.
#[must_use]
pub fn in_reading_order(text: &str) -> Cow<'_, str> {
    // Most texts have no such byte.
    let Some(first) = memchr::memchr(0xE2, text.as_bytes()) else { return Cow::Borrowed(text) };
    if !text[first..].contains(OVERRIDE) {
        return Cow::Borrowed(text);
    }
    let mut ordered = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OVERRIDE) {
        ordered.push_str(before);
        let end = after.find([POP, '\n', '\r']).unwrap_or(after.len());
        ordered.extend(after[..end].chars().rev());
        rest = &after[end..];
    }
    ordered.push_str(rest);
    Cow::Owned(ordered)
}

/// The line of a page, whose text may stand in several elements. Reversed text is held until it ends, since its last run is read first.
#[derive(Debug, Default)]
pub(super) struct Line {
    is_overridden: bool,
    held: Vec<(Visibility, String)>,
}

impl Line {
    /// Passes on the next run of text, or holds it. `is_reversed` if its element reverses it.
    pub(super) fn read(
        &mut self,
        text: &str,
        visibility: Visibility,
        is_reversed: bool,
        emit: &mut dyn FnMut(Piece<'_>),
    ) {
        let mut rest = text;
        // Most texts have no such byte.
        while memchr::memchr(0xE2, rest.as_bytes()).is_some()
            && let Some((before, mark)) = rest.find([OVERRIDE, POP]).map(|at| rest.split_at(at))
        {
            self.take(before, visibility, is_reversed, emit);
            self.is_overridden = mark.starts_with(OVERRIDE);
            rest = &mark[OVERRIDE.len_utf8()..];
        }
        self.take(rest, visibility, is_reversed, emit);
    }

    fn take(&mut self, text: &str, shown: Visibility, is_reversed: bool, emit: &mut dyn FnMut(Piece<'_>)) {
        if text.is_empty() {
            return;
        }
        if is_reversed || self.is_overridden {
            self.held.push((shown, text.chars().rev().collect()));
        } else {
            self.turn(emit);
            emit(shown.piece(text));
        }
    }

    /// Ends reversed text unless an override continues.
    pub(super) fn end_reversed(&mut self, emit: &mut dyn FnMut(Piece<'_>)) {
        if !self.is_overridden {
            self.turn(emit);
        }
    }

    /// Ends the line.
    pub(super) fn end(&mut self, emit: &mut dyn FnMut(Piece<'_>)) {
        self.is_overridden = false;
        self.turn(emit);
    }

    fn turn(&mut self, emit: &mut dyn FnMut(Piece<'_>)) {
        self.held.drain(..).rev().for_each(|(shown, text)| emit(shown.piece(&text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_behind_an_override_are_reversed() {
        for (text, expected) in [
            ("one two", "one two"),
            ("one \u{202E}owt\u{202C} three", "one two\u{202C} three"),
            ("\u{202E}eno\ntwo", "one\ntwo"),
            ("\u{202E}eno \u{202E}owt", "two\u{202E} one"),
            ("\u{202E}", ""),
            ("é\u{202E}é", "éé"),
        ] {
            assert_eq!(in_reading_order(text), expected, "{text:?}");
        }
    }
}
