// SPDX-License-Identifier: GPL-3.0-or-later
//! Text written backwards and reversed by an override character (Unicode Standard Annex 9).

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
