// SPDX-License-Identifier: GPL-3.0-or-later
//! Rows of digits with separators, as numbers of all kinds are written.

/// The most groups of digits of a row, and digits in all: two or three telephone numbers. A longer row is no number.
const MAX_GROUPS: usize = 24;
const MAX_DIGITS: usize = 64;

/// Separators between two groups: ` - `, `) (`.
const MAX_SEPARATORS: usize = 3;

/// A group of digits, and the separators before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group<'a> {
    pub(super) digits: &'a str,
    /// Whether parentheses enclose it alone.
    pub(super) in_parentheses: bool,
    /// The separators before it; none before the first.
    pub(super) before: &'a str,
}

impl Group<'_> {
    pub(super) const fn len(&self) -> usize {
        self.digits.len()
    }
}

/// A row of groups.
#[derive(Debug, Default)]
pub(super) struct Row<'a> {
    pub(super) groups: Vec<Group<'a>>,
    /// Whether a `+` stands before it.
    pub(super) plus: bool,
    /// Start and end in the text.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Whether a byte may stand between two groups of one row.
pub(super) const fn is_separator(b: u8) -> bool {
    matches!(b, b' ' | b'-' | b'.' | b'/' | b'(' | b')')
}

/// Passes on the separate rows of a text, from the left. A row over the bounds is passed on without groups.
pub(super) fn rows<'a>(text: &'a str, emit: &mut impl FnMut(&Row<'a>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut row = Row::default();
    while let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|i| at + i) {
        read(text, start, at, &mut row);
        at = row.end;
        if begins_alone(text, row.start) && ends_alone(text, row.end) {
            emit(&row);
        }
    }
}

/// Reads the row whose first digit is at `first`; nothing before `from` belongs to it.
fn read<'a>(text: &'a str, first: usize, from: usize, row: &mut Row<'a>) {
    let bytes = text.as_bytes();
    row.groups.clear();
    let opened = first > from && bytes[first - 1] == b'(';
    let mut start = first - usize::from(opened);
    row.plus = start > from && bytes[start - 1] == b'+';
    start -= usize::from(row.plus);
    (row.start, row.end) = (start, first);
    let (mut at, mut digits, mut before, mut opened) = (first, 0, "", opened);
    loop {
        let length = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let group = &text[at..at + length];
        at += length;
        digits += length;
        row.end = at;
        let is_closed = bytes.get(at) == Some(&b')');
        if row.groups.len() < MAX_GROUPS && digits <= MAX_DIGITS {
            row.groups.push(Group { digits: group, in_parentheses: opened && is_closed, before });
        }
        // A number wholly in parentheses, `(212-555-0100)`, ends before the closing one.
        let separators = bytes[at..].iter().take_while(|&&b| is_separator(b)).count();
        before = &text[at..at + separators];
        at += separators;
        let goes_on = bytes.get(at).is_some_and(u8::is_ascii_digit)
            && separators <= MAX_SEPARATORS
            && !before.contains("  ")
            && !before.contains("..");
        if !goes_on {
            break;
        }
        opened = before.ends_with('(');
    }
    if row.groups.len() == MAX_GROUPS || digits > MAX_DIGITS {
        row.groups.clear();
    }
}

/// Whether no text before a row makes it part of something else: a name, a path, a sum of money, a longer number.
fn begins_alone(text: &str, start: usize) -> bool {
    let mut before = text[..start].chars().rev();
    let Some(last) = before.next() else { return true };
    match last {
        '_' | '@' | '=' | '#' | '$' | '%' | '&' | '£' | '€' | '¥' | '₹' | '^' | '~' | '\\' | '+' | '*' => {
            false
        }
        '-' | '/' | ',' => !before.next().is_some_and(is_of_word),
        // As in `Tel.:`; behind a digit, it belongs to a number.
        '.' | ':' => !before.next().is_some_and(|c| c.is_ascii_digit()),
        c => !is_of_word(c),
    }
}

/// The same for the text behind it.
fn ends_alone(text: &str, end: usize) -> bool {
    let mut after = text[end..].chars();
    let Some(first) = after.next() else { return true };
    match first {
        '_' | '@' | '=' | '%' | '€' | '£' | '$' | '^' | '~' | '\\' | '*' | '+' => false,
        '-' | '/' => !after.next().is_some_and(is_of_word),
        ',' | ':' | '.' => !after.next().is_some_and(|c| c.is_ascii_digit()),
        // An extension.
        'x' | 'X' => after.next().is_some_and(|c| c.is_ascii_digit()),
        c => !is_of_word(c),
    }
}

/// Letters and digits, except those of scripts without spaces.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() && !crate::text::is_unspaced(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        rows(text, &mut |row| {
            let groups: Vec<String> = row
                .groups
                .iter()
                .map(|g| if g.in_parentheses { format!("({})", g.digits) } else { g.digits.to_owned() })
                .collect();
            all.push(format!("{}{}", if row.plus { "+" } else { "" }, groups.join(" ")));
        });
        all
    }

    #[test]
    fn rows_are_found() {
        assert_eq!(seen("call +1 (212) 555-0100, or 030/1234."), ["+1 (212) 555 0100", "030 1234"]);
        assert_eq!(seen("(212-555-0100) 12  34 5...6 电话138"), ["212 555 0100 12", "34 5", "6", "138"]);
        assert_eq!(seen("+(44)20 0100x12"), ["+(44) 20 0100"]);
    }

    #[test]
    fn parts_of_something_else_are_none() {
        for text in ["a1", "1a", "$12", "12%", "1,2", "12:30", "a-1", "x=1", "1@b", "#1", "/a/1", "++1", "1_"]
        {
            assert!(seen(text).is_empty(), "{text}: {:?}", seen(text));
        }
        assert_eq!(seen(&"1 ".repeat(1000)), [""]);
        assert_eq!(seen(&"1".repeat(1000)), [""]);
    }
}
