// SPDX-License-Identifier: GPL-3.0-or-later
//! Which lines of a text were written for this message: not those of the message that is answered, nor footers that stand
//! below every message of a list, a company or a person.

/// Bytes that a footer has at most; what is longer is content behind a line.
const FOOTER: usize = 1500;

/// Marks that make a line of its own.
const RULE: usize = 20;

/// Words of a line of a name, a place or a telephone number.
const SHORT: usize = 5;

/// Lines of such at the end.
const SIGN_OFF: usize = 10;

/// Letters and digits before the `>` of a quoted line (`Tim> text`).
const QUOTED_BY: usize = 8;

/// The lines that were written for this message, without blanks around them, and their numbers from 1.
pub(super) fn own_lines(text: &str) -> Vec<(usize, &str)> {
    let mut own = Vec::new();
    let mut rest = text;
    let mut number = 0;
    while let Some(line) = rest.split_inclusive('\n').next() {
        rest = &rest[line.len()..];
        number += 1;
        let line = line.trim();
        if line.is_empty() || is_quoted(line) {
            continue;
        }
        let before = text.len() - rest.len();
        let footer = rest.len() <= FOOTER && is_rule(line)
            || rest.len() <= FOOTER.min(before / 2) && leaves_list(line);
        if footer || begins_answered(line, rest) {
            break;
        }
        own.push((number, line));
    }
    let own_end = own.len() - sign_off(&own);
    own.truncate(own_end);
    own
}

/// A line of the message that is answered: `> text`, `Tim> text`.
fn is_quoted(line: &str) -> bool {
    let rest = line.trim_start_matches(char::is_alphanumeric);
    line.len() - rest.len() <= QUOTED_BY && rest.starts_with('>')
}

/// A line that parts a footer from the text: RFC 3676's `-- `, or one that is mostly dashes or the like.
fn is_rule(line: &str) -> bool {
    let marks = line.bytes().filter(|b| b"-_=*~#<>".contains(b)).count();
    let blanks = line.bytes().filter(|&b| b == b' ').count();
    line == "--" || (marks >= RULE && 2 * marks >= line.len() - blanks)
}

/// A line that says how to get no more of such mail, in the languages of much mail.
fn leaves_list(line: &str) -> bool {
    const WORDS: [&str; 10] = [
        "unsubscribe",
        "abbestellen",
        "abmelden",
        "désabonner",
        "désinscrire",
        "darse de baja",
        "disiscriver",
        "uitschrijven",
        "cancelar a inscrição",
        "отписаться",
    ];
    let line = line.to_lowercase();
    WORDS.iter().any(|word| line.contains(word))
}

/// A line with which the message that is answered or handed on begins, in full below it.
fn begins_answered(line: &str, rest: &str) -> bool {
    if line.starts_with("---") {
        let bare = line.trim_matches(['-', ' ']).to_ascii_lowercase();
        return bare == "original message" || bare.starts_with("forwarded");
    }
    // Outlook's way: some fields of the other message's header.
    line.starts_with("From:") && {
        let next = rest.lines().map(str::trim).find(|line| !line.is_empty());
        next.is_some_and(|next| ["Sent:", "Date:", "To:"].iter().any(|field| next.starts_with(field)))
    }
}

/// How many lines at the end say who wrote: short ones, behind a longer one.
fn sign_off(lines: &[(usize, &str)]) -> usize {
    let is_short = |(_, line): &&(usize, &str)| line.split_whitespace().nth(SHORT).is_none();
    let run = lines.iter().rev().take_while(is_short).count();
    if run > SIGN_OFF || run == lines.len() { 0 } else { run }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> String {
        own_lines(text).iter().map(|(_, line)| *line).collect::<Vec<_>>().join("|")
    }

    const LONG: &str = "This line has more words than those of a name.";

    #[test]
    fn quotes_are_not_own() {
        assert_eq!(own(&format!("{LONG}\n> no\nTim> no\n>> no\n")), LONG);
        assert_eq!(own(&format!("{LONG}\n-----Original Message-----\nno no no no no no no\n")), LONG);
        assert_eq!(own(&format!("{LONG}\nFrom: Tim\n\nSent: today\nno no no no no no no\n")), LONG);
        assert_eq!(own("a longer line with a > b in it\n"), "a longer line with a > b in it");
    }

    #[test]
    fn footers_are_not_own() {
        for rule in
            ["-- ", "_______________________________________________", "---------- Groups Sponsor ----------"]
        {
            assert_eq!(own(&format!("{LONG}\n{rule}\nno no no no no no no no\n")), LONG, "{rule}");
        }
        let text = format!("{LONG}\n{LONG}\n");
        assert_eq!(
            own(&format!("{text}To unsubscribe, write to\nno@example.org\n")),
            format!("{LONG}|{LONG}")
        );
        // What is long is no footer.
        let content = format!("{LONG}\n").repeat(50);
        assert_eq!(own_lines(&format!("{LONG}\n-- \n{content}")).len(), 52);
    }

    #[test]
    fn who_wrote_is_not_own() {
        assert_eq!(own(&format!("{LONG}\nRegards\n\nTim Tester\nPhone 555 1234\n")), LONG);
        // Lines that are all short are a text of short lines.
        assert_eq!(own("Buy now\nCheap pills\nClick here\n"), "Buy now|Cheap pills|Click here");
        assert_eq!(own_lines(&format!("{LONG}\n{}", "item\n".repeat(11))).len(), 12);
    }

    #[test]
    fn numbers_are_those_of_the_text() {
        assert_eq!(own_lines("> no\n\n  yes\nyes").iter().map(|(n, _)| *n).collect::<Vec<_>>(), [3, 4]);
    }
}
