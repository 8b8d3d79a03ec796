// SPDX-License-Identifier: GPL-3.0-or-later
//! Splits lines into words and links.

use super::fold::{READ_AS, fold, is_long_number, plain_bytes, without_marks};
use super::product::{BLOCK, WordKey};
use crate::text::is_unspaced;
use std::borrow::Cow;

/// Letters and digits of a random string, which differs in each copy, at least.
const RANDOM: usize = 8;

/// Changes between letters and digits that no word has.
const TURNS: usize = 3;

/// Bytes of the longest word.
const LONGEST: usize = 40;

/// Takes the words and links of a text.
pub(super) trait Sink {
    fn word(&mut self, word: Word<'_>);

    /// The target of a link.
    fn link(&mut self, link: &str);
}

/// A word of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    /// Its keyed hash.
    pub(super) hash: u64,
    /// Its folded form, as UTF-8; never empty.
    pub(super) folded: &'a [u8],
    /// The word as written.
    pub(super) token: &'a str,
    /// For a number, the hash of its digits.
    pub(super) digits: Option<u64>,
}

/// Classes of bytes in a token, a bit for each.
mod class {
    /// Ends a token.
    pub(super) const SPACE: u8 = 1;
    pub(super) const LETTER: u8 = 2;
    pub(super) const DIGIT: u8 = 4;
    /// May be read as a letter among letters.
    pub(super) const SIGN: u8 = 8;
    pub(super) const COLON: u8 = 16;
    pub(super) const AT: u8 = 32;
    pub(super) const DOT: u8 = 64;
    pub(super) const WIDE: u8 = 128;
}

/// The class of each byte, and its folded letter.
const TABLE: [(u8, u8); 256] = {
    let mut table = [(0, 0); 256];
    let mut b = 0u8;
    loop {
        table[b as usize] = match b {
            // The other controls show nothing.
            b'\t' | b'\n' | b'\r' | b' ' => (class::SPACE, 0),
            b'a'..=b'z' | b'A'..=b'Z' => (class::LETTER, READ_AS[b as usize]),
            b'0'..=b'9' => (class::DIGIT, READ_AS[b as usize]),
            b'@' => (class::AT, 0),
            b':' => (class::COLON, 0),
            b'.' => (class::DOT, 0),
            b'\\' => (class::SIGN, 0),
            0x80.. => (class::WIDE, 0),
            _ if READ_AS[b as usize] != 0 => (class::SIGN, 0),
            _ => (0, 0),
        };
        if b == u8::MAX {
            break table;
        }
        b += 1;
    }
};

/// Room for the letters of a token; a power of two.
const ROOM: usize = 64;

const _: () = assert!(LONGEST < ROOM);

/// Reads texts: finds their words, and folds and hashes them.
#[derive(Debug)]
pub(super) struct Words {
    key: WordKey,
    folded: String,
    characters: CharacterCache,
}

impl Words {
    pub(super) fn new(key: WordKey) -> Self {
        Self { key, folded: String::new(), characters: CharacterCache::default() }
    }

    /// Passes on the words and links of a line, without mail addresses and random strings, which differ in each copy.
    pub(super) fn read(&mut self, line: &str, sink: &mut impl Sink) {
        let mut start = 0;
        while start < line.len() {
            let (mut letters, mut count, mut has, mut end) = ([0; ROOM], 0, 0, line.len());
            // Letters are folded while searching the token's end. Nearly all tokens need nothing else.
            for (length, &b) in line.as_bytes()[start..].iter().enumerate() {
                let (class, letter) = TABLE[usize::from(b)];
                if class == class::SPACE {
                    end = start + length;
                    break;
                }
                has |= class;
                letters[count % ROOM] = letter;
                count += usize::from(letter != 0);
            }
            let token = &line[start..end];
            start = end + 1;
            // Most marks stand behind a word.
            let inside = token.trim_end_matches(|c: char| c.is_ascii_punctuation());
            if count < inside.len()
                && has & (class::WIDE | class::AT | class::COLON) == 0
                && !token.starts_with("www.")
                && is_joined(token)
            {
                joined(token).for_each(|word| self.token(word, has, sink));
                continue;
            }
            if has & !(class::DOT | class::DIGIT) == class::LETTER && token.len() <= LONGEST {
                if has & class::DIGIT != 0 && (is_random(token) || is_long_number(token)) {
                    self.token(token, has, sink);
                    continue;
                }
                if has & class::DOT != 0 && token.starts_with("www.") {
                    sink.link(token);
                    continue;
                }
                let folded = &letters[..count];
                let hash = match letters.first_chunk() {
                    Some(block) if count <= BLOCK => self.key.add(count as u64, block),
                    _ => self.key.hash(folded),
                };
                sink.word(Word { hash, folded, token, digits: None });
            } else if has & class::WIDE != 0 {
                let tokens = token.split(separates_words).filter(|token| !token.is_empty());
                tokens.for_each(|token| self.token(token, has, sink));
            } else if has != 0 {
                self.token(token, has, sink);
            }
        }
    }

    /// Passes on a token with any classes, which are in `has`.
    fn token(&mut self, token: &str, has: u8, sink: &mut impl Sink) {
        let is_url = has & class::COLON != 0 && token.contains("://");
        if is_url || has & class::DOT != 0 && token.starts_with("www.") {
            sink.link(token);
            return;
        }
        // No word is that long: programs that show a blank or a box there part words by it.
        if token.len() > LONGEST && token.contains(shows_nothing) {
            let words = token.split(shows_nothing).filter(|word| !word.is_empty());
            return words.for_each(|word| self.token(word, has, sink));
        }
        let is_wide = has & class::WIDE != 0 && !token.is_ascii();
        let is_address = has & class::AT != 0 && is_address(token);
        if !is_address && is_joined(token) {
            return joined(token).for_each(|word| self.token(word, has, sink));
        }
        if is_address || !is_wide && (token.len() > LONGEST || has & class::DIGIT != 0 && is_random(token)) {
            return;
        }
        let plain = if is_wide { without_marks(token) } else { Cow::Borrowed(token) };
        let read = &*plain;
        let is_long = || token.len() > LONGEST && read.chars().map(plain_bytes).sum::<usize>() > LONGEST;
        if is_wide && (is_long() || read.contains(is_unspaced)) {
            // A text without spaces, or in an undeclared charset: each character is a word.
            for (at, c) in read.char_indices() {
                let token = &read[at..at + c.len_utf8()];
                let entry = self.characters.entry(c, token, self.key);
                if !entry.folded().is_empty() {
                    sink.word(Word { hash: entry.hash, folded: entry.folded(), token, digits: None });
                }
            }
            return;
        }
        self.folded.clear();
        fold(read, &mut self.folded);
        if !self.folded.is_empty() {
            let folded = self.folded.as_bytes();
            let digits = || token.bytes().filter(u8::is_ascii_digit).collect::<Vec<_>>();
            let digits = is_long_number(read).then(|| self.key.hash(&digits()));
            sink.word(Word { hash: self.key.hash(folded), folded, token, digits });
        }
    }
}

/// Cached characters; a text without spaces has some hundred different ones.
const KEPT: usize = 512;

/// Cached folds of single characters that are words.
#[derive(Debug, Default)]
struct CharacterCache {
    kept: Vec<CachedCharacter>,
    folded: String,
}

#[derive(Debug, Clone, Default)]
struct CachedCharacter {
    c: char,
    length: usize,
    folded: [u8; BLOCK],
    hash: u64,
}

impl CachedCharacter {
    fn folded(&self) -> &[u8] {
        &self.folded[..self.length]
    }
}

impl CharacterCache {
    /// The fold of a character, which is `token`. It has four characters at most.
    fn entry(&mut self, c: char, token: &str, key: WordKey) -> &CachedCharacter {
        if self.kept.is_empty() {
            // The default character occurs in no token.
            self.kept.resize(KEPT, CachedCharacter::default());
        }
        let entry = &mut self.kept[c as usize % KEPT];
        if entry.c != c {
            self.folded.clear();
            fold(token, &mut self.folded);
            let length = self.folded.floor_char_boundary(BLOCK);
            let mut folded = [0; BLOCK];
            folded[..length].copy_from_slice(&self.folded.as_bytes()[..length]);
            let hash = key.hash(&folded[..length]);
            *entry = CachedCharacter { c, length, folded, hash };
        }
        entry
    }
}

/// White space except characters that mail programs do not show: separators of lines and paragraphs, control characters. The empty
/// pattern of Braille and the fillers of Hangul look like blanks.
fn separates_words(c: char) -> bool {
    let looks_blank = matches!(c, '\u{2800}' | '\u{115F}' | '\u{1160}' | '\u{3164}' | '\u{FFA0}');
    looks_blank || c.is_whitespace() && !shows_nothing(c)
}

/// White space that some mail programs do not show.
const fn shows_nothing(c: char) -> bool {
    matches!(c, '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The words that marks join into a token: `Buy_now/or·never`. In one that is longer than a word, marks that may stand for letters do, too.
fn joined(token: &str) -> impl Iterator<Item = &str> {
    let is_long = token.len() > LONGEST;
    let is_mark = move |c: char| match c {
        '\'' => is_long,
        '!'..='~' => !c.is_ascii_alphanumeric() && (is_long || READ_AS[c as usize] == 0),
        _ => matches!(c, '·' | '•' | '∙' | '…' | '–' | '—'),
    };
    token.split(is_mark).filter(|word| !word.is_empty())
}

/// Whether these are words of two letters or more. Single letters are parts of a word: `v.i.s.i.t`. Of a longer token, most must be words: random
/// strings, such as keys and encoded files, have digits and capitals inside.
fn is_joined(token: &str) -> bool {
    let is_long = token.len() > LONGEST;
    let is_cased = |word: &str| {
        let mut capitals = word.chars().skip(1).map(char::is_uppercase);
        let first = capitals.next();
        capitals.all(|capital| Some(capital) == first)
    };
    let is_word = |word: &str| {
        word.chars().nth(1).is_some()
            && word.len() <= LONGEST
            && word.chars().all(char::is_alphabetic)
            && (!is_long || is_cased(word))
    };
    let count = |(all, words), word| (all + 1, words + usize::from(is_word(word)));
    let (all, words) = joined(token).fold((0, 0), count);
    all > 1 && if is_long { 2 * words > all } else { words == all }
}

fn is_address(token: &str) -> bool {
    token.rsplit_once('@').is_some_and(|(_, domain)| domain.contains('.'))
}

/// Whether a string alternates letters and digits: such strings differ in each copy.
fn is_random(token: &str) -> bool {
    let (mut kinds, mut turns, mut last) = (0, 0, None);
    for b in token.bytes().filter(u8::is_ascii_alphanumeric) {
        let digit = b.is_ascii_digit();
        kinds += 1;
        turns += usize::from(last.is_some_and(|last| last != digit));
        last = Some(digit);
    }
    kinds >= RANDOM && turns >= TURNS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(line: &str) -> String {
        struct All(WordKey, Vec<String>);
        impl Sink for All {
            fn word(&mut self, Word { hash, folded, .. }: Word<'_>) {
                assert_eq!(hash, self.0.hash(folded));
                self.1.push(String::from_utf8(folded.to_vec()).unwrap());
            }
            fn link(&mut self, link: &str) {
                self.1.push(format!("<{link}>"));
            }
        }
        let key = WordKey::new([7; BLOCK]);
        let mut all = All(key, Vec::new());
        Words::new(key).read(line, &mut all);
        all.1.join(" ")
    }

    #[test]
    fn words_and_links() {
        assert_eq!(seen("Dear friend@example.org, only 3 days!"), "dear only 3 days");
        assert_eq!(seen("kx83jd92ks0 ab12cd34 windows2000 x86"), "wlndowszooo x86".replace("x86", "xb6"));
        assert_eq!(
            seen("see http://a.example/x or www.b.example"),
            "see <http://a.example/x> or <www.b.example>"
        );
        assert_eq!(seen("买一送一 ok"), "买 一 送 一 ok");
        assert_eq!(seen("mil\u{b}lion gar\u{c}den gär\u{c}ten re\u{1}port"), "mllllon garden garten report");
        let words = ["garden"; 8];
        for parts in ["\u{b}", "\u{c}", "\u{85}", "\u{2028}"] {
            assert_eq!(seen(&words.join(parts)), words.join(" "), "{parts:?}");
        }
        // Marks of other scripts on Latin letters, and in their own words.
        for mark in [
            '\u{591}',
            '\u{5bf}',
            '\u{670}',
            '\u{711}',
            '\u{816}',
            '\u{859}',
            '\u{cbc}',
            '\u{e31}',
            '\u{e47}',
            '\u{fc6}',
            '\u{135d}',
            '\u{2cef}',
            '\u{2de0}',
            '\u{302a}',
            '\u{3099}',
            '\u{a8e0}',
            '\u{101fd}',
            '\u{16af0}',
            '\u{1d165}',
            '\u{1e000}',
            '\u{1e8d0}',
        ] {
            let marked: String = "garden".chars().flat_map(|c| [c, mark, mark]).collect();
            assert_eq!(seen(&marked), "garden", "{mark:?}");
            let marked: String = "сад".chars().flat_map(|c| [c, mark]).collect();
            assert_eq!(seen(&marked), seen("сад"), "{mark:?}");
        }
        assert_eq!(seen("हिन्दी").chars().count(), "हिन्दी".chars().count());
        // Most writers leave these out.
        for (word, bare) in [("שָׁלוֹם", "שלום"), ("سَلَام", "سلام"), ("سـلـام", "سلام")]
        {
            assert_eq!(seen(word), seen(bare), "{word}");
        }
        // Letters of two scripts that look alike.
        for (word, mixed) in [("кредит", "кpeдит"), ("Сегодня", "Ceгодня"), ("σήμερα", "σήμεpα")]
        {
            assert_eq!(seen(word), seen(mixed), "{word}");
        }
        assert_eq!(seen("กำ").split(' ').count(), 2);
        // Marks in the place of blanks.
        let joined = "Buy-now_the/best~garden.of+this|SUMMER,please*and=enjoy·it";
        assert_eq!(seen(joined), seen(&joined.replace(|c: char| !c.is_alphanumeric(), " ")));
        assert_eq!(seen("first.second.third.fourth.fifth.sixth@mail.example.org"), "", "an address");
        assert_eq!(seen("and/or wELL-kNown d.o.t.s can't e-mail"), "and or well known dots cant emall");
        assert_eq!(seen("mQENBFzq+8gBCADHkLw/4cYtPvbnRhTfQsZ+KxWuJeRoAi/3mNbVcXzLk"), "", "a key");
        // A letter without ink.
        assert_eq!(seen("one\u{2800}two\u{3164}\u{2800}three\u{ffa0}four"), "one two three four");
    }
}
