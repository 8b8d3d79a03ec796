// SPDX-License-Identifier: GPL-3.0-or-later
//! Text from outside, made safe for a terminal.

use unicode_width::UnicodeWidthChar as _;

/// Returns the text in one line, without anything that moves the cursor, hides, or changes the direction of writing; at most `width` columns,
/// with "…" at the end of a shortened text.
#[must_use]
pub fn plain(text: &str, width: usize) -> String {
    let visible: String =
        text.chars().filter(|&c| c.is_whitespace() || c.is_control() || !is_hidden(c)).collect();
    let words = visible.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    let columns = |c: char| c.width().unwrap_or(0);
    if line.chars().map(columns).sum::<usize>() <= width {
        return line;
    }
    let mut room = width.saturating_sub(1);
    let mut cut: String = line
        .chars()
        .take_while(|&c| {
            let fits = columns(c) <= room;
            room = room.saturating_sub(columns(c));
            fits
        })
        .collect();
    cut.push('…');
    cut
}

/// Whether a character is a mark of direction, shows nothing, or is in no font.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF0}'..='\u{FFFB}' | '\u{E000}'..='\u{F8FF}'
        | '\u{E0000}'..='\u{10FFFF}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_but_letters() {
        assert_eq!(plain(" a\r\n\tb\x1b[31m\u{9b}c\u{202e}d \u{200b} e ", 80), "a b [31m cd e");
        assert_eq!(plain("Grüße 漢字", 80), "Grüße 漢字");
    }

    #[test]
    fn long_lines_are_cut_by_columns() {
        assert_eq!(plain("abcdef", 6), "abcdef");
        assert_eq!(plain("abcdefg", 6), "abcde…");
        assert_eq!(plain("漢字漢字", 6), "漢字…");
        assert_eq!(plain("a", 0), "…");
    }
}
