// SPDX-License-Identifier: GPL-3.0-or-later
//! Text whose words carry little information: letters stand apart (`F r e e`) or words stand together (`Freemoney`), because style margins
//! replace the blanks that a reader sees. It is read as one row of letters and cut by the letters themselves, so that blanks do not matter.

use super::fold::fold;
use super::line::Line;
use super::product::{constant, folded_product};
use crate::text::is_unspaced;

/// Words of one letter in a row that make one word, at least.
pub(super) const MIN_SPACED: usize = 4;

/// Words from which on their mean length is used.
const SOME: usize = 40;

/// The highest mean length of split words, in half letters. Languages with blanks and letters have four to eight letters.
const SPLIT: usize = 5;

/// Letters of a token that joins many words: no language often has such long words.
const JOINED: usize = 20;

/// Letters in such tokens from which on they are text; fewer are a few names.
const MANY: usize = 100;

/// Letters on either side that decide whether a piece begins at a letter.
const AROUND: usize = 2;

/// Letters of the longest piece.
const LONGEST: usize = 16;

/// Letters that are read of one text.
const MAX_LETTERS: usize = 1 << 18;

/// The lengths of a text's words.
#[derive(Debug, Default)]
pub(super) struct WordLengths {
    words: usize,
    letters: usize,
    /// Bytes of the tokens read.
    bytes: usize,
}

impl WordLengths {
    /// Adds a word: its folded form, and its length in bytes as written.
    #[inline]
    pub(super) fn word(&mut self, folded: &[u8], bytes: usize) {
        self.bytes += bytes;
        let first = folded.first().copied().unwrap_or(b'0');
        if first.is_ascii_digit() {
            return;
        }
        if first < 0x80 {
            self.words += 1;
            self.letters += folded.len();
        } else if let Ok(folded) = str::from_utf8(folded)
            && !folded.starts_with(is_unspaced)
        {
            self.words += 1;
            self.letters += folded.chars().count();
        }
    }

    /// Adds a link, or a word beyond the limit.
    pub(super) fn other(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Whether the words of `lines` carry so little information that the letters are read instead.
    pub(super) fn needs_letters(&self, lines: &[Line<'_>]) -> bool {
        if self.words >= SOME && 2 * self.letters < SPLIT * self.words {
            return true;
        }
        let all: usize = lines.iter().map(|(_, line)| line.len()).sum();
        let (long, unread) = (self.letters > 10 * self.words, 2 * self.bytes < all);
        (long || unread) && all >= MANY && are_joined(lines)
    }
}

/// A row of words of one letter.
#[derive(Debug, Default)]
pub(super) struct SpacedWord {
    pub(super) row: String,
    pub(super) letters: usize,
    /// The number of its first word.
    pub(super) start: usize,
}

impl SpacedWord {
    /// Adds the word if it belongs to the row; `number` is the word's number. If it returns false, the row ends before this word.
    #[inline]
    pub(super) fn take(&mut self, word: &[u8], number: usize) -> bool {
        let Some(letter) = only_letter(word) else { return false };
        if self.letters == 0 {
            self.start = number;
        }
        self.row.push(letter);
        self.letters += 1;
        true
    }

    /// Whether the row is empty.
    pub(super) const fn is_empty(&self) -> bool {
        self.letters == 0
    }
}

/// The letter of a word of one letter.
#[inline]
fn only_letter(word: &[u8]) -> Option<char> {
    match word {
        [letter] => Some(char::from(*letter)).filter(char::is_ascii_alphabetic),
        // No character is longer than four bytes.
        [0x80..=u8::MAX, ..] if word.len() <= 4 => {
            let mut chars = str::from_utf8(word).ok()?.chars();
            let letter = chars.next().filter(|&c| c.is_alphabetic() && !is_unspaced(c))?;
            chars.next().is_none().then_some(letter)
        }
        _ => None,
    }
}

/// Whether at least three quarters of the letters are in tokens longer than words.
fn are_joined(lines: &[Line<'_>]) -> bool {
    let (mut all, mut joined) = (0, 0);
    for token in tokens(lines) {
        let letters = token.chars().filter(|c| c.is_alphabetic()).count();
        all += letters;
        // Only letters and sentence marks: no code, no path, no key.
        let is_text = |c: char| {
            c.is_alphabetic() && !is_unspaced(c)
                || matches!(
                    c,
                    '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '"' | '(' | ')' | '-' | '\u{2010}'
                        ..='\u{2026}'
                )
        };
        if letters >= JOINED && 8 * letters >= 7 * token.chars().count() && token.chars().all(is_text) {
            joined += letters;
        }
    }
    joined >= MANY && 4 * joined >= 3 * all
}

/// The tokens whose letters are read: neither links nor addresses.
fn tokens<'a>(lines: &'a [Line<'a>]) -> impl Iterator<Item = &'a str> {
    let all = lines.iter().flat_map(|(_, line)| line.split_whitespace());
    all.filter(|token| !token.contains("://") && !token.starts_with("www.") && !token.contains('@'))
}

/// Passes on the pieces into which the letters of `lines` are cut, each with the number of the line where it ends.
pub(super) fn pieces(lines: &[Line<'_>], emit: &mut dyn FnMut(&str, usize)) {
    let (mut letters, mut ends) = (Vec::new(), Vec::new());
    let mut reader = Letters::default();
    for line in lines {
        for c in tokens(std::slice::from_ref(line)).flat_map(str::chars) {
            if letters.len() >= MAX_LETTERS {
                break;
            }
            reader.read(c, &mut letters);
        }
        ends.push((letters.len(), line.0));
    }
    let mut line = 0;
    cut(&letters, &mut |piece, end| {
        while ends[line].0 < end {
            line += 1;
        }
        emit(piece, ends[line].1);
    });
}

/// Passes on the pieces of a row of letters that stood apart.
pub(super) fn pieces_of(row: &str, emit: &mut dyn FnMut(&str)) {
    let letters: Vec<char> = row.chars().collect();
    cut(&letters, &mut |piece, _| emit(piece));
}

/// Cuts before each letter that, with the two behind it, has the lowest rank within two letters. Letters further away do not matter.
fn cut(letters: &[char], emit: &mut dyn FnMut(&str, usize)) {
    let at = |i: usize| letters.get(i).map_or(0, |&c| u64::from(c));
    let ranks: Vec<u64> =
        (0..letters.len()).map(|i| rank(at(i) | at(i + 1) << 21 | at(i + 2) << 42)).collect();
    let (mut piece, mut length) = (String::new(), 0);
    for (i, &c) in letters.iter().enumerate() {
        let before = &ranks[i.saturating_sub(AROUND)..i];
        let behind = &ranks[i + 1..ranks.len().min(i + 1 + AROUND)];
        let begins =
            before.iter().all(|&rank| ranks[i] < rank) && behind.iter().all(|&rank| ranks[i] <= rank);
        if length > 0 && (begins || length == LONGEST) {
            emit(&piece, i);
            piece.clear();
            length = 0;
        }
        piece.push(c);
        length += 1;
    }
    if length > 0 {
        emit(&piece, letters.len());
    }
}

/// The rank of three letters in a pseudo-random order.
const fn rank(letters: u64) -> u64 {
    folded_product(letters ^ const { constant(0) }, const { constant(1) })
}

/// Folds characters one by one, without their context.
#[derive(Debug, Default)]
struct Letters {
    folded: String,
}

impl Letters {
    /// Each character is folded behind an `a`, so that a digit becomes the letter that it looks like.
    fn read(&mut self, c: char, letters: &mut Vec<char>) {
        if c.is_ascii_lowercase() && c != 'i' {
            letters.push(c);
            return;
        }
        let mut token = [b'a', 0, 0, 0, 0];
        let length = c.encode_utf8(&mut token[1..]).len();
        self.folded.clear();
        fold(str::from_utf8(&token[..=length]).unwrap_or_default(), &mut self.folded);
        letters.extend(self.folded.chars().skip(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_up(row: &str) -> Vec<String> {
        let mut all = Vec::new();
        pieces_of(row, &mut |piece| all.push(piece.to_owned()));
        all
    }

    const ROW: &str =
        "thebakerybytheoldmllopensasecondshoplnsprlngandeverybodywhocomesonthefirstdaygetsawarmloaf";

    #[test]
    fn pieces_are_those_of_the_letters_around() {
        let all = cut_up(ROW);
        assert_eq!(all.concat(), ROW);
        assert!((12..=24).contains(&all.len()), "{all:?}");
        let behind = cut_up(&format!("xqzvk{ROW}"));
        assert!(behind.ends_with(&all[3..]), "{behind:?}");
        let changed = cut_up(&ROW.replace("shop", "stall"));
        let same = all.iter().filter(|piece| changed.contains(piece)).count();
        assert!(same + 4 >= all.len(), "{all:?} {changed:?}");
        // No piece begins where all letters are equal.
        assert_eq!(cut_up(&"a".repeat(40))[..2].iter().map(String::len).collect::<Vec<_>>(), [LONGEST; 2]);
    }

    fn little(text: &str) -> bool {
        let lines: Vec<Line<'_>> = (1..).zip(text.lines()).collect();
        let (mut lengths, mut folded) = (WordLengths::default(), String::new());
        for token in text.split_whitespace().filter(|token| token.len() <= 40) {
            folded.clear();
            fold(token, &mut folded);
            if !folded.is_empty() {
                lengths.word(folded.as_bytes(), token.len());
            }
        }
        lengths.needs_letters(&lines)
    }

    #[test]
    fn ordinary_words_are_not_cut() {
        for text in [
            "Chúng tôi sẽ gửi cho bạn một lá thư về giá của cửa hàng ở Huế. ".repeat(9),
            "Die Donaudampfschifffahrtsgesellschaft hat eine Rechtsschutzversicherung für ihre Fahrgäste auf der Donau abgeschlossen. ".repeat(9),
            "/usr/share/java/org/example/application/configuration/implementation/Factory.class:7\n"
                .repeat(9),
            "mQENBFxyzABCADefGHIjklMNOpqrSTUvwxYZabcDEFghiJKLmnoPQRstuVWXyz0123\n".repeat(30),
            "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 ".repeat(9),
            "\u{4e70}\u{4e00}\u{9001} \u{4e00} ".repeat(30),
        ] {
            assert!(!little(&text), "{text}");
        }
        assert!(little(&"F re e mo ne y f o r al l of y ou ".repeat(9)));
        assert!(little(&"Getallofthemoneythatyoueverwanted,inasingleday!".repeat(9)));
    }
}
