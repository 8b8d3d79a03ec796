// SPDX-License-Identifier: GPL-3.0-or-later
//! Telephone numbers. A row of digits is one if its form is that of telephone numbers only, or if a word before it identifies it.
//! docs/signatures.md has the rule and the reasons.

use super::digits::{Group, Row, rows};

/// Digits of a number with its country code (E.164: 15 at most).
const MIN: usize = 8;
const MAX: usize = 15;

/// Words before a number that identify it, folded to small letters.
const CUES: [&str; 22] = [
    "call",
    "cell",
    "fax",
    "fon",
    "fone",
    "handy",
    "hotline",
    "mob",
    "mobil",
    "mobile",
    "movil",
    "ph",
    "phone",
    "sms",
    "tel",
    "telefax",
    "telefon",
    "telefono",
    "telephone",
    "viber",
    "whatsapp",
    "тел",
];

/// The same in scripts without blanks.
const CUES_BEFORE: [&str; 8] = ["电话", "電話", "手机", "手機", "热线", "熱線", "致电", "전화"];

/// Words allowed between the cue and the number.
const FILLERS: [&str; 11] = ["at", "is", "me", "nr", "no", "now", "number", "on", "or", "text", "us"];

/// Bytes before a number that are searched for the cue.
const REACH: usize = 40;

/// Passes on the telephone numbers of a line: `+` and digits if the country is known, else the digits dialled at home.
pub(super) fn telephones(text: &str, emit: &mut impl FnMut(String)) {
    rows(text, &mut |row| {
        let mut at = 0;
        while let Some((number, groups)) = first_of(text, row, at) {
            let rest = &row.groups[at + groups..];
            // A row that continues with a hyphen or a dot is another kind of number.
            if rest.first().is_some_and(|next| !next.before.contains([' ', '/'])) {
                return;
            }
            if !is_filler(&number) {
                emit(number);
            }
            at += groups;
        }
    });
}

/// The number that begins at a group of a row, and its number of groups.
fn first_of(text: &str, row: &Row<'_>, at: usize) -> Option<(String, usize)> {
    let groups = row.groups.get(at..).filter(|groups| !groups.is_empty())?;
    if at == 0 && row.plus {
        return international(groups, 0);
    }
    let cue = || if at == 0 { behind_cue(&text[..row.start], groups) } else { None };
    if groups[0].digits.starts_with("00") {
        let parted = international(groups, 2).filter(|(number, _)| groups.len() > 1 && number.len() > 10);
        return parted.or_else(cue);
    }
    if has_date(groups) {
        return None;
    }
    north_american(groups).or_else(|| in_parentheses(groups)).or_else(|| with_zero(groups)).or_else(cue)
}

/// The number of the digits behind a `+`, or behind `skipped` zeros.
fn international(groups: &[Group<'_>], skipped: usize) -> Option<(String, usize)> {
    let mut number = String::from("+");
    for (i, group) in groups.iter().enumerate() {
        let digits = if i == 0 { &group.digits[skipped..] } else { group.digits };
        // `+44 (0)20`: this zero is dialled at home only, but always in Italy.
        let at_home = group.in_parentheses && i > 0 && number != "+39";
        number.push_str(if at_home { digits.strip_prefix('0').unwrap_or(digits) } else { digits });
        // These two have numbers of one length.
        if number.len() == 12 && matches!(number.as_bytes()[1], b'1' | b'7') {
            return Some((number, i + 1));
        }
        if number.len() > MAX + 1 {
            return None;
        }
    }
    let is_none = matches!(number.as_bytes().get(1), Some(b'0' | b'1' | b'7') | None);
    let is_day =
        number.len() == 9 && groups.len() == 1 && (number.starts_with("+19") || number.starts_with("+20"));
    (!is_none && !is_day && number.len() > MIN).then_some((number, groups.len()))
}

/// `(212) 555-0100`, with or without a 1 before it.
fn north_american(groups: &[Group<'_>]) -> Option<(String, usize)> {
    let one = usize::from(groups[0].digits == "1");
    let (area, rest) = groups.get(one..)?.split_first()?;
    let parts = match rest {
        [exchange, line, ..] if exchange.len() == 3 && line.len() == 4 => 2,
        [both, ..] if area.in_parentheses && both.len() == 7 => 1,
        _ => return None,
    };
    let number = joined(&groups[one..=one + parts]);
    let used = one + 1 + parts;
    // Blanks alone separate numbers of any kind, so nothing else may follow.
    let by_blanks = groups[1..used].iter().all(|group| group.before == " ") && !area.in_parentheses;
    (area.len() == 3 && is_north_american(&number) && (!by_blanks || used == groups.len()))
        .then(|| (format!("+1{number}"), used))
}

/// Neither area nor exchange begins with 0 or 1 (North American Numbering Plan).
fn is_north_american(digits: &str) -> bool {
    let digits = digits.as_bytes();
    digits.len() == 10 && digits[0] > b'1' && digits[3] > b'1'
}

/// `(030) 123 4567`, `8 (495) 123-45-67`, `(0) 20 7946 0958`.
fn in_parentheses(groups: &[Group<'_>]) -> Option<(String, usize)> {
    let before = groups.iter().position(|group| group.in_parentheses).filter(|&before| before <= 1)?;
    let (area, rest) = groups[before..].split_first()?;
    let is_year = area.len() == 4 && area.digits.starts_with(['1', '2']);
    let lead_fits = before == 0 || groups[0].len() <= 2 && groups[0].before.is_empty();
    let digits: usize = rest.iter().map(Group::len).sum();
    let fits = match area.len() {
        1 => area.digits == "0" && before == 0 && (8..=11).contains(&digits),
        2..=5 => !is_year && (5..=9).contains(&digits),
        _ => false,
    };
    let number = joined(groups);
    let rest_fits = rest.len() <= 5 && rest.iter().all(|group| group.len() > 1 && !group.in_parentheses);
    (fits && lead_fits && rest_fits && (MIN..=13).contains(&number.len())).then_some((number, groups.len()))
}

/// `020 7946 0958`: a zero, and groups unlike dates and article numbers.
fn with_zero(groups: &[Group<'_>]) -> Option<(String, usize)> {
    // A second number may follow behind a slash.
    let next =
        groups.iter().skip(2).position(|group| group.before.contains('/') && group.digits.starts_with('0'));
    let groups = &groups[..next.map_or(groups.len(), |next| next + 2)];
    let (first, rest) = groups.split_first()?;
    let number = joined(groups);
    let is_pairs = groups.iter().all(|group| group.len() == 2);
    let pairs_fit = groups.len() == 5 && rest.iter().all(|group| group.before == rest[0].before);
    let is_postal_code = first.len() == 5 && rest.len() == 1 && rest[0].len() == 4 && rest[0].before == "-";
    let fits = first.digits.starts_with('0')
        && (2..=6).contains(&first.len())
        && (1..=5).contains(&rest.len())
        && rest.iter().all(|group| group.len() > 1)
        && (9..=12).contains(&number.len())
        && (!is_pairs || pairs_fit)
        && !is_postal_code;
    fits.then_some((number, groups.len()))
}

/// Any digits, if a word before them identifies them as a telephone number.
fn behind_cue(before: &str, groups: &[Group<'_>]) -> Option<(String, usize)> {
    let number = joined(groups);
    if !(MIN..=MAX).contains(&number.len()) || !has_cue(before) {
        return None;
    }
    Some((bare(&number), groups.len()))
}

/// A number without separators between its parts. If it may be North American, it is taken for that; the choice does not matter as long as
/// all copies have the same digits.
fn bare(digits: &str) -> String {
    let home = digits.strip_prefix('1').unwrap_or(digits);
    if is_north_american(home) {
        return format!("+1{home}");
    }
    match digits.strip_prefix("00") {
        Some(rest) if rest.len() >= MIN => format!("+{rest}"),
        _ => digits.to_owned(),
    }
}

fn has_cue(before: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(REACH))..];
    let near = near.trim_end_matches(|c: char| !c.is_alphanumeric());
    if CUES_BEFORE.iter().any(|cue| near.ends_with(cue)) {
        return true;
    }
    let lower = near.to_lowercase();
    let mut words = lower.rsplit(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.by_ref().take(3).find(|word| !FILLERS.contains(word)).is_some_and(|word| CUES.contains(&word))
}

/// The number in the target of a link such as `tel:+1-212-555-0100;ext=1`, without its scheme.
pub(super) fn target(text: &str) -> Option<String> {
    let text = text.split([';', '?', ',', '&']).next()?.trim();
    let digits: String = text.chars().filter(char::is_ascii_digit).take(MAX + 2).collect();
    let known = text.bytes().all(|b| b.is_ascii_digit() || b"+-.()/ ".contains(&b));
    let number = match text.strip_prefix('+') {
        Some(_) => format!("+{digits}"),
        None => bare(&digits),
    };
    (known && (MIN..=MAX).contains(&number.trim_start_matches('+').len()) && !is_filler(&number))
        .then_some(number)
}

fn joined(groups: &[Group<'_>]) -> String {
    groups.iter().map(|group| group.digits).collect()
}

/// Whether a date with a year of four digits is in the row.
fn has_date(groups: &[Group<'_>]) -> bool {
    let is = |group: &Group<'_>, most: u32| {
        group.len() <= 2 && (1..=most).contains(&group.digits.parse().unwrap_or(0))
    };
    let is_year = |group: &Group<'_>| group.len() == 4 && matches!(&group.digits[..2], "19" | "20");
    groups.windows(3).any(|three| {
        let day = |a, b| is(a, 31) && is(b, 12) || is(a, 12) && is(b, 31);
        day(&three[0], &three[1]) && is_year(&three[2]) || is_year(&three[0]) && day(&three[1], &three[2])
    })
}

/// Whether the last seven digits are equal: a placeholder of a form.
fn is_filler(number: &str) -> bool {
    let mut seen = [false; 10];
    number.bytes().rev().take(7).filter(u8::is_ascii_digit).for_each(|b| seen[usize::from(b - b'0')] = true);
    seen.iter().filter(|&&seen| seen).count() < 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::fold::fold;
    use proptest::prelude::*;

    fn seen(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        telephones(&fold(text), &mut |number| all.push(number));
        all
    }

    #[test]
    fn one_number_in_many_forms() {
        for text in [
            "+1 212 555 0100",
            "+1-212-555-0100",
            "+12125550100",
            "(212) 555-0100",
            "(212)5550100",
            "212-555-0100",
            "212.555.0100",
            "212/555/0100.",
            "1-212-555-0100",
            "1 (212) 555-0100 x12",
            "001 212 555 0100",
            "0012125550100 or tel: 2125550100",
            "Call us at 12125550100!",
            "\u{FF0B}１ ２１２ ５５５ ０１００",
            "+1 (212)\u{A0}555\u{2011}0100",
            "2\u{200B}12-555-0100",
            "Phone:212-555-0100",
            "+1·212·555·0100",
            "电话：2125550100转1",
        ] {
            assert_eq!(seen(text), ["+12125550100"], "{text}");
        }
        for text in [
            "+44 20 7946 0958",
            "0044 20 7946 0958",
            "+44 (0)20 7946-0958",
            "+44 (020) 7946 0958",
            "+442079460958",
        ] {
            assert_eq!(seen(text), ["+442079460958"], "{text}");
        }
        for text in
            ["020 7946 0958", "(020) 7946-0958", "(0)20 7946 0958", "0207/9460958", "Tel. 02079460958"]
        {
            assert_eq!(seen(text), ["02079460958"], "{text}");
        }
    }

    #[test]
    fn numbers_of_many_countries() {
        for (text, number) in [
            ("01 42 68 53 00", "0142685300"),
            ("01.42.68.53.00", "0142685300"),
            ("030/1234-567", "0301234567"),
            ("0911 - 12 34 56", "0911123456"),
            ("03-1234-5678", "0312345678"),
            ("+39 06 1234 5678", "+390612345678"),
            ("+39 (06) 1234 5678", "+390612345678"),
            ("8 (495) 123-45-67", "84951234567"),
            ("+7 495 123-45-67", "+74951234567"),
            ("(11) 5555-1234", "1155551234"),
            ("+234 803 555 0100", "+2348035550100"),
            ("Whatsapp: 2348035550100", "2348035550100"),
            ("Tel 00442079460958", "+442079460958"),
            ("手机13812345678", "+13812345678"),
            ("+49(30)1234567", "+49301234567"),
        ] {
            assert_eq!(seen(text), [number], "{text}");
        }
        assert_eq!(seen("212-555-0100 / 212-555-0199"), ["+12125550100", "+12125550199"]);
        assert_eq!(seen("030 123456/0171 1234567"), ["030123456", "01711234567"]);
        assert_eq!(seen("+1 212 555 0100 +44 20 7946 0958"), ["+12125550100", "+442079460958"]);
    }

    /// Other numbers, by kind.
    #[test]
    fn other_numbers_are_no_telephone_numbers() {
        for text in [
            // Dates and times.
            "2003-01-02",
            "01.02.2003",
            "01/02/2003 10.30",
            "02.03.2004 - 05.06.2004",
            "20030102",
            "+20030102",
            "09.00 - 17.00",
            "2003-01-02 10:30:00",
            "01-02-03 04-05",
            "1998 - 2003",
            "01.02.03",
            // Sums of money and other quantities.
            "$212.555.0100",
            "1 234 567 890",
            "1,234,567.00",
            "12345678.90",
            "0.12345678",
            "10 000 000 000",
            "100.000.000,00 EUR",
            // Orders, accounts, tracking, cards, postal codes.
            "Order 2125550100",
            "No. 12345678901",
            "#212-555-0100",
            "4111 1111 1111 1111",
            "Invoice 0012345678",
            "12345678",
            "1Z 999 AA1 01 2345 6784",
            "02134-1234",
            "123-45-6789",
            "A-212-555-0100",
            "212-555-0100-7",
            "00012 345678",
            "DE89 3704 0044 0532 0130 00",
            // Versions, IP addresses, books.
            "192.168.100.200",
            "10.0.0.1",
            "1.2.3.4567",
            "978-3-16-148410-0",
            "0-306-40615-2",
            "ISBN 0306406152",
            "5.10.0-1234",
            // Placeholders of forms, too short and too long ones, letters for digits.
            "555-0100",
            "000-000-0000",
            "+1 234",
            "+12345678901234567",
            "+1 212 555 O1OO",
            "+1 555 555 5555",
            "212 555 0100 4321",
            "123-456-7890",
            "call 123456",
            "12-34",
        ] {
            assert_eq!(seen(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn targets() {
        for (text, number) in [
            ("+1-212-555-0100;ext=3", Some("+12125550100")),
            ("2125550100", Some("+12125550100")),
            ("0044 20 7946 0958", Some("+442079460958")),
            ("13812345678?body=x", Some("+13812345678")),
            ("911", None),
            ("abc12345678", None),
            ("1234567890123456", None),
        ] {
            assert_eq!(target(text).as_deref(), number, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_and_the_form_stays(text in "[0-9+(). /-]{0,40}|(tel |call )?\\PC{0,60}") {
            for number in seen(&text) {
                let digits = number.strip_prefix('+');
                prop_assert!(digits.unwrap_or(&number).bytes().all(|b| b.is_ascii_digit()));
                prop_assert!((MIN..=MAX).contains(&digits.unwrap_or(&number).len()));
                if digits.is_some() {
                    prop_assert_eq!(seen(&number), vec![number.clone()]);
                }
                prop_assert_eq!(target(&number), Some(bare(&number)));
            }
        }
    }
}
