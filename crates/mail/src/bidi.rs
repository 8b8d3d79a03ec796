// SPDX-License-Identifier: GPL-3.0-or-later
//! Text that is written backwards, and turned around by a character that says so (Unicode Standard Annex 9).

use std::borrow::Cow;

/// Letters behind it stand from right to left, whatever they are.
const OVERRIDE: char = '\u{202E}';

/// The end of that, which also a line's end is.
const POP: char = '\u{202C}';

/// A text in the order in which it is read: letters behind a right-to-left override are reversed, up to its end or that of the line.
/// Overrides in one another are taken as one. Linear.
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
