// SPDX-License-Identifier: GPL-3.0-or-later
//! Plain text as mdoc(7).

/// Text without markup, except bold code between backticks.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    let (mut before, mut is_code) = (' ', false);
    for c in text.chars() {
        match c {
            '`' => {
                is_code = !is_code;
                escaped += if is_code { "\\fB" } else { "\\fR" };
            }
            '\\' => escaped += "\\e",
            '"' => escaped += "\\(dq",
            // Options and file names are for copying; "near-replica" has a hyphen.
            '-' if is_code || !before.is_alphanumeric() => escaped += "\\-",
            c => escaped.push(c),
        }
        before = c;
    }
    assert!(!is_code, "one backtick is missing: {text}");
    escaped
}

/// Paragraphs, separated by empty lines.
pub(crate) fn prose(text: &str) -> String {
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join(".Pp\n")
}

fn paragraph(text: &str) -> String {
    // One line for each sentence: roff puts more space behind a period there, and differences are small.
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let begins = word.starts_with(|c: char| c.is_uppercase() || "`\"".contains(c));
        match lines.last_mut() {
            Some(line) if !(begins && line.ends_with('.')) => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    let is_control = |line: &str| line.starts_with(['.', '\'']);
    lines
        .iter()
        .map(|line| format!("{}{}\n", if is_control(line) { "\\&" } else { "" }, escaped(line)))
        .collect()
}

/// Lines printed unchanged.
pub(crate) fn literal(lines: &str) -> String {
    format!(".Bd -literal -offset indent\n{}\n.Ed\n", escaped(lines))
}
