// SPDX-License-Identifier: GPL-3.0-or-later
//! Characters that would move a cursor, forge a line or a field, or show other text than there is, in the form `\u{..}`.

use std::fmt::Write as _;

/// Characters of a foreign text that are shown at most.
const MOST: usize = 500;

/// The text with these letters in the form `\u{..}`.
#[must_use]
pub fn escaped(text: &str, mut is_special: impl FnMut(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_special(c) {
            // Writing to a String does not fail.
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A line of it: nothing moves a cursor, ends the line, or is not seen.
#[must_use]
pub fn visible(text: &str) -> String {
    escaped(text, is_invisible)
}

/// A value of a log line's field, in which nothing ends it: no blank, no quotation mark, no backslash, none of `others`.
#[must_use]
pub fn plain(text: &str, others: &str) -> String {
    escaped(text, |c| is_invisible(c) || c.is_whitespace() || "\"\\".contains(c) || others.contains(c))
}

/// The same of any bytes: what is no UTF-8 is in the form `\xff`. Nothing else is shown like it, so the bytes can be told.
#[must_use]
pub fn plain_bytes(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&plain(chunk.valid(), ""));
        // Writing to a String does not fail.
        chunk.invalid().iter().for_each(|byte| _ = write!(shown, "\\x{byte:02x}"));
    }
    shown
}

/// What another machine says: without blanks around it, cut after 500 characters, and with nothing in it that looks like a field
/// of a log line: a name and `=`.
#[must_use]
pub fn told(text: &str) -> String {
    let text = text.trim();
    let end = text.char_indices().nth(MOST).map(|(end, _)| end);
    // Whether all since the last blank could be the name of a field. What leads to a page has `=` behind other letters.
    let mut is_name = true;
    let mut shown = escaped(&text[..end.unwrap_or(text.len())], |c| {
        let is_field = c == '=' && is_name;
        is_name = c.is_whitespace() || is_name && (c.is_alphanumeric() || "-_".contains(c));
        is_invisible(c) || is_field
    });
    if end.is_some() {
        shown.push_str("...");
    }
    shown
}

/// Control characters of both sets, ends of lines, what turns the direction of writing, and what has no width.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_move_a_cursor_is_escaped_and_what_is_long_is_cut() {
        let hostile = "\u{1b}]0;title\u{7}\u{9b}2J a\r\nb\u{202e}c\u{200b}é\u{7f}";
        let shown = "\\u{1b}]0;title\\u{7}\\u{9b}2J a\\u{d}\\u{a}b\\u{202e}c\\u{200b}é\\u{7f}";
        assert_eq!((visible(hostile), told(hostile)), (shown.to_owned(), shown.to_owned()));
        assert_eq!(told(&"ä".repeat(501)), "ä".repeat(500) + "...");
        assert_eq!(told(&"\u{1b}".repeat(1 << 20)).len(), 500 * "\\u{1b}".len() + 3);
    }

    #[test]
    fn no_line_can_be_forged() {
        assert_eq!(
            visible("a\r\nNov 21 sshd: ok\u{2028}b\0é\u{202e}"),
            "a\\u{d}\\u{a}Nov 21 sshd: ok\\u{2028}b\\u{0}é\\u{202e}"
        );
    }

    /// A rule for messages' lines, ` client=\S*\[<ADDR>\] .* verdict=(?:bulk|spam) `, finds none in what others say.
    #[test]
    fn no_field_can_be_forged() {
        let evil = " client=a[192.0.2.1] x verdict=bulk y ";
        assert!(!told(evil).contains('='), "{}", told(evil));
        let usual = "error sending request for url (http://a.example/v1/updates?from=0)";
        assert_eq!(told(usual), usual);
        assert!(!plain(evil, "[]").contains([' ', '[', ']']), "{}", plain(evil, "[]"));
        assert_eq!(plain_bytes(b"a b\n\xff\\xff\"\xc3\xa4"), "a\\u{20}b\\u{a}\\xff\\u{5c}xff\\u{22}ä");
    }
}
