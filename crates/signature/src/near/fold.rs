// SPDX-License-Identifier: GPL-3.0-or-later
//! Folds words that look alike into one: case, accents, letters of other scripts, digits for letters (V1agr@).

use crate::text::is_blank;
use std::borrow::Cow;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_security::confusable_detection::skeleton;

/// The letter that an ASCII character inside a word is read as, or 0.
pub(super) const READ_AS: [u8; 128] = read_as();

const fn read_as() -> [u8; 128] {
    let mut table = [0; 128];
    let mut c = 0u8;
    while c < 128 {
        table[c as usize] = match c.to_ascii_lowercase() {
            // Characters that look the same in some font, or are used as if they did.
            b'i' | b'l' | b'1' | b'|' | b'!' => b'l',
            b'0' => b'o',
            b'2' => b'z',
            b'3' => b'e',
            b'4' | b'@' => b'a',
            b'5' | b'$' => b's',
            b'7' | b'+' => b't',
            b'8' => b'b',
            b'9' => b'g',
            b'(' => b'c',
            b'6' => b'6',
            lower @ b'a'..=b'z' => lower,
            _ => 0,
        };
        c += 1;
    }
    table
}

/// Appends the folded form of a token, text without white space, to `out`, and returns whether it is a long number. Appends nothing for a
/// token that is no word.
pub(super) fn fold(token: &str, out: &mut String) -> bool {
    let is_number = is_long_number(token);
    if is_number {
        out.push_str(LONG_NUMBER);
    } else if token.is_ascii() {
        fold_ascii(token.as_bytes(), out);
    } else if !fold_known(token, out) {
        fold_any(token, out);
    }
    is_number
}

/// The fold of a long number: order, account and telephone numbers differ in each copy.
const LONG_NUMBER: &str = "0";

/// Digits in a row of a long number. Dates, times and most amounts have fewer, and are content.
const LONG_ROW: usize = 5;

/// Whether a token has more digits than letters, and [`LONG_ROW`] digits in a row.
pub(super) fn is_long_number(token: &str) -> bool {
    let bytes = token.as_bytes();
    if bytes.is_ascii() && bytes.iter().filter(|b| b.is_ascii_digit()).count() < LONG_ROW {
        return false;
    }
    // Most letters stand between these, where looking them up would take long.
    let may_be_digit = |c: char| matches!(c, '\u{B2}'..='\u{BE}' | '\u{660}'..);
    let is_digit = |c: char| c.is_ascii_digit() || may_be_digit(c) && c.is_numeric();
    let (mut digits, mut row, mut longest) = (0, 0, 0);
    for c in token.chars() {
        row = if is_digit(c) { row + 1 } else { 0 };
        longest = longest.max(row);
        digits += usize::from(row > 0);
    }
    longest >= LONG_ROW && token.chars().filter(|c| c.is_alphabetic()).count() < digits
}

/// Characters read of NFKC's expansion per character, on average over a token: NFKC expands one character to a sentence of 18.
const EXPANDED: usize = 4;

/// Folds a token of any characters.
fn fold_any(token: &str, out: &mut String) {
    let seen = token.chars().filter(|&c| !is_blank(c) && !is_optional(c)).map(|c| letter_of(c).unwrap_or(c));
    let plain: String = seen.nfkc().take(EXPANDED * token.chars().count()).collect();
    let mut latin = String::with_capacity(plain.len());
    if plain.contains(|c: char| c.is_ascii_alphabetic()) {
        // Letters of another script among Latin ones are meant to look like them.
        plain.nfkd().for_each(|c| push_alike(c, true, &mut latin));
    } else {
        bare(&plain.to_lowercase()).chars().for_each(|c| push_alike(c, false, &mut latin));
    }
    if !latin.is_ascii() {
        // A word of another script: each of its letters may be written by a Latin one that looks like it.
        latin.clear();
        bare(&plain.to_lowercase()).chars().for_each(|c| push_in_script(c, &mut latin));
    }
    push_letters(&latin, out);
}

/// Appends a letter of a word in its own script, as a Latin one if it looks like one.
fn push_in_script(c: char, out: &mut String) {
    if is_european(c) { push_alike(c, true, out) } else { out.push(c) }
}

/// A text without accents.
fn bare(text: &str) -> String {
    text.nfkd().filter(|&c| !is_accent(c)).collect()
}

/// Appends a character, or what it looks like. Among Latin letters, some of other scripts look like small capitals.
fn push_alike(c: char, among_latin: bool, out: &mut String) {
    if c.is_ascii() {
        out.push(c);
    } else if !is_accent(c) {
        let mut bytes = [0; 4];
        let alike = skeleton(c.encode_utf8(&mut bytes)).filter(|&c| !is_accent(c));
        out.extend(alike.map(|c| if among_latin { letter_of(c).unwrap_or(c) } else { c }));
    }
}

/// The letter behind a small capital, a letter in a filled circle or square, or one in parentheses. NFKC leaves these, or makes marks of
/// them.
fn letter_of(c: char) -> Option<char> {
    const SMALL_CAPITALS: [(char, char); 26] = [
        ('ᴀ', 'a'),
        ('ʙ', 'b'),
        ('ᴃ', 'b'),
        ('ᴄ', 'c'),
        ('ᴅ', 'd'),
        ('ᴇ', 'e'),
        ('ꜰ', 'f'),
        ('ɢ', 'g'),
        ('ʜ', 'h'),
        ('ɪ', 'i'),
        ('ᴊ', 'j'),
        ('ᴋ', 'k'),
        ('ʟ', 'l'),
        ('ᴍ', 'm'),
        ('ɴ', 'n'),
        ('ᴏ', 'o'),
        ('ᴘ', 'p'),
        ('ꞯ', 'q'),
        ('ʀ', 'r'),
        ('ꜱ', 's'),
        ('ᴛ', 't'),
        ('ᴜ', 'u'),
        ('ᴠ', 'v'),
        ('ᴡ', 'w'),
        ('ʏ', 'y'),
        ('ᴢ', 'z'),
    ];
    let of_row = |start: char| char::from_u32('a' as u32 + (c as u32 - start as u32));
    match c {
        '\u{1F150}'..='\u{1F169}' => of_row('\u{1F150}'),
        '\u{1F170}'..='\u{1F189}' => of_row('\u{1F170}'),
        '\u{1F1E6}'..='\u{1F1FF}' => of_row('\u{1F1E6}'),
        '\u{1F110}'..='\u{1F129}' => of_row('\u{1F110}'),
        '\u{249C}'..='\u{24B5}' => of_row('\u{249C}'),
        '\u{250}'..='\u{A7FF}' => {
            SMALL_CAPITALS.iter().find(|(small, _)| *small == c).map(|&(_, letter)| letter)
        }
        _ => None,
    }
}

/// Bytes of the plain form of a character: 0 for an accent or an invisible character, 1 for a Latin letter in another form.
pub(super) fn plain_bytes(c: char) -> usize {
    match c {
        '\u{1D400}'..='\u{1D7FF}'
        | '\u{FF01}'..='\u{FF5E}'
        | '\u{24B6}'..='\u{24E9}'
        | '\u{1F130}'..='\u{1F149}' => 1,
        _ if is_blank(c) || is_accent(c) => 0,
        _ => letter_of(c).unwrap_or(c).len_utf8(),
    }
}

fn push_letters(latin: &str, out: &mut String) {
    if latin.is_ascii() {
        fold_ascii(latin.as_bytes(), out);
        return;
    }
    latin.chars().for_each(|c| push_letter(c, out));
}

fn push_letter(c: char, out: &mut String) {
    if c.is_ascii() {
        push_read(c as u8, out);
    } else if is_letter(c) {
        out.extend(c.to_lowercase());
    }
}

/// The letters of Latin, Greek and Cyrillic that are looked up: U+00A0 to U+052F without the accents.
const KNOWN: std::ops::Range<u32> = 0xA0..0x530;

/// The results of [`fold_any`] for a letter.
struct Known {
    /// Its form among Latin letters.
    among_latin: String,
    /// In lower case, as it looks.
    read: String,
    /// In a word that is not all Latin.
    in_script: String,
}

static TABLE: LazyLock<Vec<Option<Known>>> = LazyLock::new(|| KNOWN.map(known).collect());

/// `None` for characters whose fold depends on others.
fn known(c: u32) -> Option<Known> {
    let c = char::from_u32(c).filter(|&c| !is_accent(c) && !is_blank(c) && letter_of(c).is_none())?;
    if c.nfkc().ne([c]) {
        return None;
    }
    let letters = |text: &str| {
        let mut letters = String::new();
        text.chars().for_each(|c| push_letter(c, &mut letters));
        letters
    };
    let lower = bare(&c.to_lowercase().collect::<String>());
    let (mut among_latin, mut read, mut in_script) = (String::new(), String::new(), String::new());
    c.nfkd().for_each(|c| push_alike(c, true, &mut among_latin));
    lower.chars().for_each(|c| push_alike(c, false, &mut read));
    lower.chars().for_each(|c| push_in_script(c, &mut in_script));
    Some(Known { among_latin, read, in_script: letters(&in_script) })
}

/// Does the same as [`fold_any`], from a table; returns false if a character is not in it.
fn fold_known(token: &str, out: &mut String) -> bool {
    let entry = |c: char| TABLE.get((c as u32).wrapping_sub(KNOWN.start) as usize).and_then(Option::as_ref);
    if !token.chars().all(|c| c.is_ascii() || entry(c).is_some()) {
        return false;
    }
    let is_latin = token.bytes().any(|b| b.is_ascii_alphabetic());
    let read = |known: &'static Known| if is_latin { &known.among_latin } else { &known.read };
    if token.chars().filter_map(entry).all(|known| read(known).is_ascii()) {
        let mut latin = String::with_capacity(token.len());
        for c in token.chars() {
            match entry(c) {
                Some(known) => latin.push_str(read(known)),
                None => latin.push(c),
            }
        }
        fold_ascii(latin.as_bytes(), out);
        return true;
    }
    for c in token.chars() {
        match entry(c) {
            Some(known) => out.push_str(&known.in_script),
            None => push_letter(c, out),
        }
    }
    true
}

/// Letters, their marks, and Latin-1 signs that are no punctuation: with a missing or wrong charset, letters look like these.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric()
        || is_combining_mark(c)
        || matches!(c, '\u{A2}'..='\u{BE}' if !matches!(c, '«' | '·' | '»'))
}

/// Marks above and below Latin, Greek and Cyrillic letters. In other scripts marks are vowels.
fn is_accent(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}'
        | '\u{FE20}'..='\u{FE2F}')
}

/// The stroke that lengthens Arabic words, and the vowel marks of Arabic and Hebrew, which most writers leave out.
const fn is_optional(c: char) -> bool {
    matches!(c, '\u{640}' | '\u{64B}'..='\u{65F}' | '\u{670}' | '\u{6D6}'..='\u{6DC}' | '\u{591}'..='\u{5BD}' | '\u{5BF}'
        | '\u{5C1}' | '\u{5C2}' | '\u{5C4}' | '\u{5C5}' | '\u{5C7}')
}

/// A token without marks of other scripts on letters of Latin, Greek and Cyrillic, where they are no part of the word.
pub(super) fn without_marks(token: &str) -> Cow<'_, str> {
    let mut is_marked = false;
    let mut is_base = false;
    let mut keeps = |c: char| {
        if is_base && c >= FIRST_MARK && is_combining_mark(c) {
            is_marked = true;
            return false;
        }
        // Marks may follow one another, and invisible characters.
        is_base = is_european(c) || is_base && (is_accent(c) || is_blank(c));
        true
    };
    let kept: String = token.chars().filter(|&c| keeps(c)).collect();
    if is_marked { Cow::Owned(kept) } else { Cow::Borrowed(token) }
}

/// The first mark behind the accents of Latin, Greek and Cyrillic.
const FIRST_MARK: char = '\u{591}';

/// A visible character of ASCII, or a letter of Latin, Greek or Cyrillic, in any form.
fn is_european(c: char) -> bool {
    match c {
        '!'..=FIRST_MARK => !is_accent(c),
        '\u{1C80}'..='\u{1C8F}'
        | '\u{1D00}'..='\u{1DBF}'
        | '\u{1E00}'..='\u{1FFF}'
        | '\u{2460}'..='\u{24FF}'
        | '\u{2C60}'..='\u{2C7F}'
        | '\u{A640}'..='\u{A66E}'
        | '\u{A680}'..='\u{A69D}'
        | '\u{A720}'..='\u{A7FF}'
        | '\u{AB30}'..='\u{AB6F}'
        | '\u{FB00}'..='\u{FB06}'
        | '\u{FF01}'..='\u{FF5E}'
        | '\u{1D400}'..='\u{1D7FF}'
        | '\u{1F110}'..='\u{1F1FF}' => true,
        _ => false,
    }
}

fn push_read(byte: u8, out: &mut String) {
    let letter = READ_AS[usize::from(byte & 0x7F)];
    if letter != 0 {
        out.push(char::from(letter));
    }
}

fn fold_ascii(token: &[u8], out: &mut String) {
    if !token.iter().any(u8::is_ascii_alphabetic) {
        // A number is its digits, however they are grouped.
        out.extend(token.iter().filter(|b| b.is_ascii_digit()).map(|&b| char::from(b)));
        return;
    }
    // Punctuation around a word is not part of it, but a sign for a letter at its beginning or end is.
    let (mut start, mut end) = (0, token.len());
    while start < end && !token[start].is_ascii_alphanumeric() && !begins_word(&token[start..end]) {
        start += 1;
    }
    while start < end
        && !token[end - 1].is_ascii_alphanumeric()
        && !matches!(token[end - 1], b'$' | b'@' | b'|' | b'+')
    {
        end -= 1;
    }
    let word = &token[start..end];
    if memchr::memchr(b'\\', word).is_none() {
        for piece in word.chunks(PIECE) {
            push_ascii(piece, out);
        }
        return;
    }
    let mut at = 0;
    while at < word.len() {
        if word[at..].starts_with(b"\\/") {
            out.push('v');
            at += 2;
        } else {
            push_read(word[at], out);
            at += 1;
        }
    }
}

/// Bytes that are read at a time.
const PIECE: usize = 64;

fn push_ascii(piece: &[u8], out: &mut String) {
    let (mut letters, mut end) = ([0; PIECE], 0);
    // Each letter is written and the next one overwrites it unless it stays: no branch to mispredict.
    for &b in piece {
        letters[end] = READ_AS[usize::from(b & 0x7F)];
        end += usize::from(letters[end] != 0);
    }
    out.push_str(str::from_utf8(&letters[..end]).unwrap_or_default());
}

fn begins_word(rest: &[u8]) -> bool {
    match rest {
        [b'\\', b'/', ..] => true,
        [b'@' | b'$' | b'|' | b'!' | b'+', next, ..] => next.is_ascii_alphabetic(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(token: &str) -> String {
        let mut out = String::new();
        fold(token, &mut out);
        out
    }

    #[test]
    fn look_alikes_are_one() {
        for (first, others) in [
            (
                "Viagra",
                &[
                    "V1agr@",
                    "viagra",
                    "\\/iagra",
                    "VI@GRA!",
                    "v.i-a'g*ra",
                    "(Viagra),",
                    "vi\u{200B}ag\u{AD}ra",
                    "Ⓥｉａｇｒａ",
                    "ᴠɪᴀɢʀᴀ",
                    "Vɪᴀɢʀᴀ",
                    "𝐕𝒊𝖆𝗴𝚛𝒶",
                    "🅅🅘🅰🄶⒭⒜",
                    "🇻\u{200c}🇮🇦🇬🇷🇦",
                    "vi\u{1}a\u{2028}g\u{85}ra",
                    "v\u{b}i\u{c}agra",
                ][..],
            ),
            (
                "account",
                &[
                    "@ccount",
                    "aссоunt",
                    "Аccount",
                    "àccöunt",
                    "account\u{301}",
                    "a\u{1ab0}c\u{1dc0}c\u{20d0}o\u{fe20}unt",
                    "ac\u{17b4}co\u{202e}u\u{2063}n\u{fe0f}t",
                ][..],
            ),
            // Marks on all letters, and letters that look like small capitals.
            ("moment", &["ḿóḿéńť", "mo\u{489}ment", "momenт"][..]),
            ("sale", &["$ale", "$a1e", "5ALE"][..]),
            ("копия", &["КОПИЯ", "копия,", "«Копия»"][..]),
            ("copy", &["сору", "COPY"][..]),
        ] {
            for other in others {
                assert_eq!(folded(first), folded(other), "{first} {other}");
            }
        }
    }

    /// The table gives the same results as the computation.
    #[test]
    fn known_letters_are_folded_alike() {
        let letters: Vec<char> =
            (0x20..0x600).filter_map(char::from_u32).filter(|c| !c.is_whitespace()).collect();
        let mut found = 0;
        for pair in letters.windows(2).chain(letters.chunks(7)) {
            for token in [pair.iter().collect::<String>(), pair.iter().rev().chain(&['x']).collect()] {
                let (mut by_table, mut without) = (String::new(), String::new());
                if !token.is_ascii() && fold_known(&token, &mut by_table) {
                    fold_any(&token, &mut without);
                    assert_eq!(by_table, without, "{token}");
                    found += 1;
                }
            }
        }
        assert!(found > 1000, "{found}");
    }

    #[test]
    fn tokens_without_a_word_fold_to_nothing() {
        for token in ["", "--", "…", "***"] {
            assert_eq!(folded(token), "", "{token}");
        }
        for (token, number) in [
            ("$1,000.00", "100000"),
            ("2026-11-26", "20261126"),
            ("#71234", "0"),
            ("INV-12345", "0"),
            ("4111111111XX", "0"),
        ] {
            assert_eq!(folded(token), number, "{token}");
        }
        for (token, word) in [("5ALE", "sale"), ("mp3", "mpe"), ("v14gr4", "vlagra")] {
            assert_eq!(folded(token), word);
        }
    }
}
