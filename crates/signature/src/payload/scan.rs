// SPDX-License-Identifier: GPL-3.0-or-later
//! Finds payload in the lines of a text.

use super::address::addresses;
use super::digits::is_separator;
use super::fold::fold;
use super::found::{Found, Payload};
use super::iban::iban;
use super::link::{in_token, targets_of_text};
use super::telephone::telephones;
use super::wallet::{LENGTHS, wallet};
use crate::text::count;
use std::borrow::Cow;

/// Rows of letters and digits whose checksum is computed, per message: each costs some microseconds.
const MAX_CHECKSUMS: usize = 1024;

/// Finds payload in lines.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    checksums: usize,
    /// Bytes examined, counted each time.
    steps: usize,
}

impl Scanner {
    /// Adds the payload of a line to `found`.
    pub(crate) fn line(&mut self, line: &str, found: &mut Found) {
        self.steps += line.len();
        let marks = Marks::of(line);
        if !marks.have(mark::DISGUISE) {
            return self.folded(line, marks, found);
        }
        match fold(line) {
            Cow::Borrowed(line) => self.folded(line, marks, found),
            Cow::Owned(line) => self.folded(&line, Marks::of(&line), found),
        }
    }

    /// Reads a line without disguises. Links are taken out first, since they are full of digits.
    fn folded(&mut self, line: &str, marks: Marks, found: &mut Found) {
        if !marks.have(mark::SLASH) && !marks.may_have_www() {
            return self.plain(line, marks, found);
        }
        let (mut from, mut at) = (0, 0);
        for token in line.split(' ') {
            if let Some(link) = in_token(token) {
                self.plain(&line[from..at], marks, found);
                targets_of_text(link, &mut |target| found.target(target));
                from = at + token.len();
            }
            at += token.len() + 1;
        }
        self.plain(&line[from..], marks, found);
    }

    /// Reads text without links, from a line with these marks.
    fn plain(&mut self, text: &str, marks: Marks, found: &mut Found) {
        if marks.have(mark::AT) {
            self.steps += text.len();
            addresses(text, &mut self.steps, &mut |address| found.add(Payload::Address, address));
        }
        let has_digits = marks.have(mark::DIGIT) && count(text, |b| b.is_ascii_digit()) >= MIN_DIGITS;
        // A few wallets have no digit.
        if has_long_row(text) || has_digits && may_have_account(text) {
            self.steps += text.len();
            self.rows(text, found);
        }
        if has_digits && may_have_telephone(text) {
            self.steps += text.len();
            telephones(text, &mut |number| found.add(Payload::Telephone, number));
        }
    }

    /// Finds rows of letters and digits with a checksum.
    fn rows(&mut self, text: &str, found: &mut Found) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let length = bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
            if LENGTHS.contains(&length) && self.may_check() {
                self.steps += length;
                wallet(&text[at..at + length])
                    .into_iter()
                    .for_each(|wallet| found.add(Payload::Wallet, wallet));
            }
            let begins_account =
                length >= 4 && bytes[at + 2].is_ascii_digit() && bytes[at + 1].is_ascii_alphabetic();
            if begins_account && self.may_check() {
                self.steps += length.min(67);
                iban(&text[at..]).into_iter().for_each(|account| found.add(Payload::Iban, account));
            }
            at += length + bytes[at + length..].iter().take_while(|b| !b.is_ascii_alphanumeric()).count();
        }
    }

    fn may_check(&mut self) -> bool {
        self.checksums += 1;
        self.checksums <= MAX_CHECKSUMS
    }
}

/// Marks of the bytes in a line, a bit for each.
mod mark {
    pub(super) const DIGIT: u8 = 1;
    pub(super) const AT: u8 = 2;
    pub(super) const SLASH: u8 = 4;
    pub(super) const DOT: u8 = 8;
    pub(super) const W: u8 = 16;
    /// May need folding.
    pub(super) const DISGUISE: u8 = 32;
}

/// The marks of a line. Most lines have next to none.
#[derive(Debug, Clone, Copy)]
struct Marks(u8);

impl Marks {
    fn of(line: &str) -> Self {
        // Comparisons without branches, which the compiler vectorizes.
        let mark = |is: bool, mark: u8| u8::from(is).wrapping_neg() & mark;
        Self(line.bytes().fold(0, |marks, b| {
            let is_disguise = (b >= 0x80) | (b == b'[') | (b == b'(') | (b == b'{') | (b == b'\t');
            marks
                | mark(b.wrapping_sub(b'0') < 10, mark::DIGIT)
                | mark(b == b'@', mark::AT)
                | mark(b == b'/', mark::SLASH)
                | mark(b == b'.', mark::DOT)
                | mark(b | 0x20 == b'w', mark::W)
                | mark(is_disguise, mark::DISGUISE)
        }))
    }

    const fn have(self, mark: u8) -> bool {
        self.0 & mark != 0
    }

    const fn may_have_www(self) -> bool {
        self.have(mark::W) && self.have(mark::DOT)
    }
}

/// The digits of the shortest telephone number. The shortest account has as many: half of 15 characters.
const MIN_DIGITS: usize = 8;

/// Whether two letters and two digits begin a word, as they begin an account.
fn may_have_account(text: &str) -> bool {
    let begins = |b: &[u8; 4]| {
        b[0].is_ascii_alphabetic()
            & b[1].is_ascii_alphabetic()
            & b[2].is_ascii_digit()
            & b[3].is_ascii_digit()
    };
    let bytes = text.as_bytes();
    // Without branches, which the compiler vectorizes.
    let inside = bytes
        .array_windows::<5>()
        .fold(false, |any, [before, word @ ..]| any | (!before.is_ascii_alphanumeric() & begins(word)));
    inside || bytes.first_chunk().is_some_and(begins)
}

/// Whether enough digits for a telephone number stand together, with nothing but separators between them.
fn may_have_telephone(text: &str) -> bool {
    let (mut digits, mut most) = (0u32, 0);
    for b in text.bytes() {
        let stays = b.is_ascii_digit() | is_separator(b);
        digits = (digits + u32::from(b.is_ascii_digit())) & u32::from(stays).wrapping_neg();
        most = most.max(digits);
    }
    most as usize >= MIN_DIGITS
}

/// Whether a row of letters and digits is as long as a wallet. Each window of that length is read backwards to the first other byte, behind
/// which the next window begins, so in most texts few bytes are read.
fn has_long_row(text: &str) -> bool {
    let (bytes, length) = (text.as_bytes(), *LENGTHS.start());
    let mut start = 0;
    while let Some(row) = bytes.get(start..start + length) {
        match row.iter().rposition(|b| !b.is_ascii_alphanumeric()) {
            Some(other) => start += other + 1,
            None => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(line: &str) -> Vec<String> {
        let mut found = Found::default();
        Scanner::default().line(line, &mut found);
        found.contents()
    }

    #[test]
    fn all_kinds_stand_in_one_line() {
        let line = "Pay 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2 or DE89 3704 0044 0532 0130 00, call +44 20 7946 0958, \
                    write a@b.example, see http://shop.example/8005550100/212-555-0100?q=1 (or www.x.example).";
        assert_eq!(
            seen(line),
            [
                "Wallet 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
                "Iban DE89370400440532013000",
                "Telephone +442079460958",
                "Address a@b.example",
                "Site shop.example/<9>/<9>-<9>-<9>?q",
                "Site x.example",
                "Page shop.example/8005550100/212-555-0100",
            ]
        );
        assert!(seen("Nothing is here. It has 3 days, 12 people (or more) and 99.50 in cash.").is_empty());
    }

    /// Each byte of any line is examined only a few times.
    #[test]
    fn cost_is_linear() {
        for unit in [
            "@",
            "a@",
            "1 ",
            "+1",
            "(1)",
            "DE89 3704 ",
            "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa ",
            "a.b/",
            "www.",
            "://",
            "[at]",
            "９",
            "(",
            "a",
            "tel 1",
        ] {
            for size in [1 << 8, 1 << 13] {
                let line = unit.repeat(size);
                let mut scanner = Scanner::default();
                scanner.line(&line, &mut Found::default());
                assert!(scanner.steps <= 8 * line.len() && scanner.checksums <= 4 * size, "{unit}");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(line in "([0-9+@./:()\\[\\] -]|www\\.|http://|0x|bc1|[A-Za-z]{2}|\\PC){0,80}") {
            seen(&line);
        }

        /// The content found in a form is found again in the form alone, unless it begins like a link.
        #[test]
        fn forms_stay(line in "([0-9]{3}|\\+|@| |\\.|/|-|[a-z]{3}|http://|www\\.){0,30}") {
            for content in seen(&line) {
                let (kind, form) = content.split_once(' ').unwrap();
                if kind == "Address" && !form.starts_with("www.") || form.starts_with('+') {
                    prop_assert!(seen(form).contains(&content), "{content}");
                }
            }
        }
    }
}
