// SPDX-License-Identifier: GPL-3.0-or-later
//! Collects the words of a part's lines, and the place of each.

use super::characters::{self, SpacedWord, WordLengths};
use super::content::{Content, MAX_WORDS, Position};
use super::line::Line;
use super::links;
use super::product::WordKey;
use super::words::{Sink, Word, Words};

/// Adds words to a part.
pub(super) struct Collector<'a> {
    key: WordKey,
    part: &'a mut Content,
    /// The part's number, if the place of each word is kept.
    traced: Option<usize>,
    line: usize,
    lengths: WordLengths,
    spaced: SpacedWord,
    numbers: Numbers,
}

impl<'a> Collector<'a> {
    /// Makes a collector of words for a part, which has this number if the place of each word is kept.
    pub(super) fn new(key: WordKey, part: &'a mut Content, traced: Option<usize>) -> Self {
        Self {
            key,
            part,
            traced,
            line: 0,
            lengths: WordLengths::default(),
            spaced: SpacedWord::default(),
            numbers: Numbers::default(),
        }
    }

    /// Adds the words of these lines.
    pub(super) fn read(mut self, lines: &[Line<'_>], words: &mut Words) {
        let start = self.part.words.len();
        // Words have six bytes on average, with the blank behind them.
        let bytes: usize = lines.iter().map(|(_, line)| line.len()).sum();
        self.part.words.reserve((bytes / 6).min(MAX_WORDS));
        let mut read = 0;
        for &(line, text) in lines {
            if self.part.words.len() >= MAX_WORDS {
                break;
            }
            read += 1;
            self.line = line;
            words.read(text, &mut self);
        }
        self.line = lines.last().map_or(0, |(line, _)| *line);
        self.join();
        let lines = &lines[..read];
        if self.lengths.needs_letters(lines) {
            self.part.words.truncate(start);
            self.part.positions.truncate(start);
            characters::pieces(lines, &mut |piece, line| {
                self.line = line;
                self.push(self.key.hash(piece.as_bytes()), piece);
            });
        }
    }

    #[inline(always)]
    fn push(&mut self, hash: u64, token: &str) {
        if self.part.words.len() < MAX_WORDS {
            self.part.words.push(hash);
            if let Some(part) = self.traced {
                self.place(token, part);
            }
        }
    }

    #[cold]
    fn place(&mut self, token: &str, part: usize) {
        // People see the word, so control characters are removed.
        let word = token.chars().filter(|c| !c.is_control()).collect();
        self.part.positions.push(Position { part, line: self.line, word });
    }

    /// Replaces a row of words of one letter by the words that it spells.
    #[cold]
    fn join(&mut self) {
        let spaced = std::mem::take(&mut self.spaced);
        if spaced.letters >= characters::MIN_SPACED {
            self.part.words.truncate(spaced.start);
            self.part.positions.truncate(spaced.start);
            characters::pieces_of(&spaced.row, &mut |piece| {
                self.push(self.key.hash(piece.as_bytes()), piece)
            });
        }
    }
}

impl Sink for Collector<'_> {
    #[inline(always)]
    fn word(&mut self, Word { hash, folded, token, digits }: Word<'_>) {
        // One line may hold a whole message.
        if self.part.words.len() >= MAX_WORDS {
            return self.lengths.other(token.len());
        }
        self.lengths.word(folded, token.len());
        let hash = self.numbers.read(hash, digits, &mut self.part.words);
        if !self.spaced.take(folded, self.part.words.len()) && !self.spaced.is_empty() {
            self.join();
        }
        self.push(hash, token);
    }

    fn link(&mut self, link: &str) {
        self.lengths.other(link.len());
        if let Some(page) = links::page_of(link) {
            self.part.page.link(self.key.hash(page.as_bytes()));
        }
    }
}

/// Numbers in a row, as in tables, which are content.
#[derive(Default)]
struct Numbers {
    /// The hash of the digits of the last word, if it was a number.
    last: Option<u64>,
}

impl Numbers {
    /// The hash to use for a word: for a number in a row, that of its digits. `words` are the words before it.
    #[inline]
    fn read(&mut self, hash: u64, digits: Option<u64>, words: &mut [u64]) -> u64 {
        let before = std::mem::replace(&mut self.last, digits);
        let (Some(digits), Some(before)) = (digits, before) else { return hash };
        if let Some(last) = words.last_mut() {
            *last = before;
        }
        digits
    }
}
