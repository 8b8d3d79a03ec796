// SPDX-License-Identifier: GPL-3.0-or-later
//! What another machine says, made fit for logs, terminals and pages.

use std::fmt::Write as _;

/// Characters of a foreign text that are shown at most.
const MOST: usize = 500;

/// The text with everything in the form `\u{..}` that would move a cursor, forge a line, or show other text than there is; and cut
/// after 500 characters.
#[must_use]
pub fn told(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(MOST));
    for (i, c) in text.trim().chars().enumerate() {
        if i == MOST {
            shown.push_str("...");
            break;
        }
        if is_invisible(c) {
            // Writing to a String does not fail.
            let _ = write!(shown, "{}", c.escape_unicode());
        } else {
            shown.push(c);
        }
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
        assert_eq!(told(hostile), "\\u{1b}]0;title\\u{7}\\u{9b}2J a\\u{d}\\u{a}b\\u{202e}c\\u{200b}é\\u{7f}");
        assert_eq!(told(&"ä".repeat(501)), "ä".repeat(500) + "...");
        assert_eq!(told(&"\u{1b}".repeat(1 << 20)).len(), 500 * "\\u{1b}".len() + 3);
    }
}
