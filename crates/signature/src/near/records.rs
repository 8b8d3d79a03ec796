// SPDX-License-Identifier: GPL-3.0-or-later
//! Calendars (RFC 5545) and cards (RFC 6350): the few properties that people write. Programs make all others, alike for unrelated people.

use bulkmark_mail::{Piece, Work, contained, is_data, pieces};
use std::fmt::Write;

/// Components whose properties describe the entry. Other components have time zones and alarms.
const ENTRIES: [&str; 4] = ["VEVENT", "VTODO", "VJOURNAL", "VCARD"];

/// Methods of an answer to an invitation (RFC 5546): a form that a program filled in.
const ANSWERS: [&str; 4] = ["REPLY", "COUNTER", "REFRESH", "DECLINECOUNTER"];

/// Bytes of a command of `text/enriched`.
const COMMAND: usize = 62;

/// Properties whose value is text.
const TEXTS: [&str; 6] = ["SUMMARY", "DESCRIPTION", "LOCATION", "COMMENT", "NOTE", "TITLE"];

/// Those of which an entry has one (RFC 5545, 3.6.1).
const SINGLE: [&str; 3] = ["SUMMARY", "DESCRIPTION", "LOCATION"];

/// Words of the shortest name that is read: it is none.
const NAME: usize = 8;

/// Whether a part of this subtype of `text` is a calendar or card.
pub(super) fn is_record(subtype: &str) -> bool {
    matches!(subtype, "calendar" | "x-vcalendar" | "vcard" | "x-vcard" | "directory")
}

/// The text of a calendar or card, a line each: summary, description, place and organiser of entries, or the notes of a card without names and
/// addresses; nothing for an answer to an invitation. Only the first entry with text counts, and the first of each property: programs show
/// no other one. Without any entry, the text as written. One pass.
pub(super) fn text(record: &str, work: &Work) -> String {
    // A line that begins with a blank continues the line before.
    let unfolded = record.replace("\r\n", "\n").replace("\n ", "").replace("\n\t", "");
    let (mut text, mut component, mut has_entry) = (String::new(), "", false);
    let mut seen = [false; SINGLE.len()];
    for line in unfolded.lines() {
        let Some((head, value)) = split(line) else { continue };
        let (name, parameters) = head.split_once(';').unwrap_or((head, ""));
        // A card may put a group before the name.
        let name = name.rsplit('.').next().unwrap_or(name);
        let is = |names: &[&str]| names.iter().any(|wanted| name.eq_ignore_ascii_case(wanted));
        let has = |names: &[&str]| names.iter().any(|wanted| value.trim().eq_ignore_ascii_case(wanted));
        if is(&["BEGIN"]) {
            component = value.trim();
            if has(&ENTRIES) {
                (has_entry, seen) = (true, [false; SINGLE.len()]);
            }
        } else if is(&["METHOD"]) && has(&ANSWERS) {
            return String::new();
        } else if is(&["END"]) {
            if has(&ENTRIES) && text.contains(char::is_alphanumeric) {
                return text;
            }
            // Alarms are nested in entries.
            component = if has(&["VALARM"]) { ENTRIES[0] } else { "" };
        } else if ENTRIES.iter().any(|entry| component.eq_ignore_ascii_case(entry)) {
            let single = SINGLE.iter().position(|single| name.eq_ignore_ascii_case(single));
            if single.is_some_and(|at| std::mem::replace(&mut seen[at], true)) {
                continue;
            }
            if is(&TEXTS) || is(&["FN"]) && value.split_whitespace().nth(NAME - 1).is_some() {
                unescape(value, &mut text);
                shown_instead(parameters, work, &mut text);
            } else if is(&["ORGANIZER"]) {
                let of_name = |(name, value): (&str, _)| name.eq_ignore_ascii_case("CN").then_some(value);
                let organiser = parameters.split(';').find_map(|p| p.split_once('=').and_then(of_name));
                let _ = writeln!(text, "{}", organiser.unwrap_or_default().trim_matches('"'));
            }
        }
    }
    if has_entry { text } else { record.to_owned() }
}

/// The name with parameters, and the value, separated by the first colon outside quotes.
fn split(line: &str) -> Option<(&str, &str)> {
    let mut in_quotes = false;
    let colon = line.bytes().position(|b| {
        in_quotes ^= b == b'"';
        b == b':' && !in_quotes
    })?;
    Some((&line[..colon], &line[colon + 1..]))
}

/// Appends the text that some programs show instead of a value (RFC 5545, 3.2.1), if the parameters contain it.
fn shown_instead(parameters: &str, work: &Work, out: &mut String) {
    let mut quoted = parameters.split('"').skip(1).step_by(2);
    let data = quoted.find_map(|quoted| contained(quoted).filter(|_| !is_data(quoted)));
    if let Some(data) = data {
        pieces(&String::from_utf8_lossy(&data), work, &mut |piece| match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Break => out.push('\n'),
            _ => (),
        });
        out.push('\n');
    }
}

/// Appends a value, with a line end behind it.
fn unescape(value: &str, out: &mut String) {
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        out.extend(match c {
            '\\' => chars.next().map(|c| if matches!(c, 'n' | 'N') { '\n' } else { c }),
            c => Some(c),
        });
    }
    out.push('\n');
}

/// The text of `text/enriched` (RFC 1896) without its commands and their parameters. One pass.
pub(super) fn enriched(text: &str) -> String {
    let (mut plain, mut rest, mut in_parameter) = (String::with_capacity(text.len()), text, false);
    while let Some((before, after)) = rest.split_once('<') {
        if !in_parameter {
            plain.push_str(before);
        }
        let command = after[..after.floor_char_boundary(COMMAND)]
            .find('>')
            .map(|end| (&after[..end], &after[end + 1..]));
        let command = command.filter(|(name, _)| !name.contains('<'));
        rest = match (after.strip_prefix('<'), command) {
            (Some(after), _) => {
                plain.push('<');
                after
            }
            (None, Some((name, after))) => {
                in_parameter = name.eq_ignore_ascii_case("param");
                after
            }
            (None, None) => {
                plain.push('<');
                after
            }
        };
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(record: &str) -> String {
        text(record, &Work::default())
    }

    #[test]
    fn an_invitation_is_summary_description_and_organiser() {
        let record = "BEGIN:VCALENDAR\r\nPRODID:program\r\nMETHOD:REQUEST\r\nBEGIN:VTIMEZONE\r\nTZID:x\r\nDESCRIPTION:no\r\nEND:VTIMEZONE\r\n\
            BEGIN:VEVENT\r\nORGANIZER;X=\"a:b\";CN=\"Tim Tester\":mailto:t@b.example\r\nBEGIN:VALARM\r\nDESCRIPTION:Reminder\r\n\
            END:VALARM\r\nSUMMARY;LANGUAGE=en:Cheap\\, good\r\nDESCRIPTION:one\\n\r\n two\\\\\r\nLOCATION:x\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        assert_eq!(read(record), "Tim Tester\nCheap, good\none\ntwo\\\nx\n");
        assert_eq!(read(&record.replace("REQUEST", "reply")), "");
        assert_eq!(read("BEGIN:VCARD\nFN:x\nitem1.NOTE:about me\nEND:VCARD\n"), "about me\n");
        assert_eq!(read("BEGIN:VCARD\nFN:a b c d e f g h\nEND:VCARD\n"), "a b c d e f g h\n");
        let other =
            "BEGIN:VEVENT\nDESCRIPTION;X=y;ALTREP=\"data:text/html;x=y,<p>one%20<b>two\":three\nEND:VEVENT\n";
        assert_eq!(read(other), "three\n\none two\n");
        assert_eq!(read("Buy this: now"), "Buy this: now");
    }

    #[test]
    fn only_the_first_entry_and_property_are_read() {
        let event = |text: &str| format!("BEGIN:VEVENT\nDESCRIPTION:{text}\nEND:VEVENT\n");
        assert_eq!(read(&(event("one") + &event("two"))), "one\n");
        assert_eq!(read(&(event("") + &event(" - ") + &event("two"))), "\n - \ntwo\n");
        let todo = "BEGIN:VTODO\nSUMMARY:two\nEND:VTODO\n";
        assert_eq!(read(&(event("one") + todo)), "one\n");
        let twice = "BEGIN:VEVENT\nSUMMARY:one\nsummary;X=y:two\nCOMMENT:three\nCOMMENT:four\nEND:VEVENT\n";
        assert_eq!(read(twice), "one\nthree\nfour\n");
    }

    #[test]
    fn enriched_text_is_read_without_its_commands() {
        let text = "<bold>mi</bold>llion <color><param>red</param>one</color> a << b <no end";
        assert_eq!(enriched(text), "million one a < b <no end");
    }

    #[test]
    fn any_text_is_read() {
        for record in
            ["", "\\", ":", "BEGIN:VEVENT\nSUMMARY:\\", "\"", "BEGIN:VEVENT\nORGANIZER:\nORGANIZER;CN:"]
        {
            read(record);
        }
    }
}
