// SPDX-License-Identifier: GPL-3.0-or-later
//! Escapes characters that would move a cursor, forge a line or a field, or hide text, as `\u{..}`.

use std::fmt::Write as _;

/// The most characters of a foreign text that are shown.
const MAX_CHARS: usize = 500;

/// The text, with each character that `is_special` accepts as `\u{..}`.
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

/// The text as one visible line: no character moves the cursor, ends the line or is invisible.
#[must_use]
pub fn visible(text: &str) -> String {
    escaped(text, is_invisible)
}

/// The text as the value of a log line's field: without blanks, quotation marks, backslashes and `others`, which would end it.
#[must_use]
pub fn plain(text: &str, others: &str) -> String {
    escaped(text, |c| is_invisible(c) || c.is_whitespace() || "\"\\".contains(c) || others.contains(c))
}

/// The same for bytes: bytes that are no UTF-8 become `\xff`. A backslash is escaped, so no other text looks like this.
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

/// Text from another machine, safe in a log line: trimmed, cut after 500 characters, and without the beginning of a field (a name and `=`).
#[must_use]
pub fn remote_text(text: &str) -> String {
    let text = text.trim();
    let end = text.char_indices().nth(MAX_CHARS).map(|(end, _)| end);
    // Whether the text since the last blank could be the name of a field. In a URL, `=` follows other characters.
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

/// Control characters of both sets, line ends, changes of the writing direction, and characters without width.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_movements_are_escaped_and_long_texts_cut() {
        let hostile = "\u{1b}]0;title\u{7}\u{9b}2J a\r\nb\u{202e}c\u{200b}é\u{7f}";
        let shown = "\\u{1b}]0;title\\u{7}\\u{9b}2J a\\u{d}\\u{a}b\\u{202e}c\\u{200b}é\\u{7f}";
        assert_eq!((visible(hostile), remote_text(hostile)), (shown.to_owned(), shown.to_owned()));
        assert_eq!(remote_text(&"ä".repeat(501)), "ä".repeat(500) + "...");
        assert_eq!(remote_text(&"\u{1b}".repeat(1 << 20)).len(), 500 * "\\u{1b}".len() + 3);
    }

    #[test]
    fn no_line_can_be_forged() {
        assert_eq!(
            visible("a\r\nNov 21 sshd: ok\u{2028}b\0é\u{202e}"),
            "a\\u{d}\\u{a}Nov 21 sshd: ok\\u{2028}b\\u{0}é\\u{202e}"
        );
    }

    /// A rule that matches log lines about messages, ` client=\S*\[<ADDR>\] .* verdict=(?:bulk|spam) `, matches no text from others.
    #[test]
    fn no_field_can_be_forged() {
        let evil = " client=a[192.0.2.1] x verdict=bulk y ";
        assert!(!remote_text(evil).contains('='), "{}", remote_text(evil));
        let usual = "error sending request for url (http://a.example/v1/updates?from=0)";
        assert_eq!(remote_text(usual), usual);
        assert!(!plain(evil, "[]").contains([' ', '[', ']']), "{}", plain(evil, "[]"));
        assert_eq!(plain_bytes(b"a b\n\xff\\xff\"\xc3\xa4"), "a\\u{20}b\\u{a}\\xff\\u{5c}xff\\u{22}ä");
    }
}
