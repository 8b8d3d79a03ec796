// SPDX-License-Identifier: GPL-3.0-or-later
//! Collects the words of a message, and the place of each.

use super::characters::{self, SpacedWord};
use super::content::{Content, MAX_WORDS, Position};
use super::product::WordKey;

/// Collects words.
#[derive(Clone, Copy)]
pub(super) struct Trace {
    /// The number of the current part.
    pub(super) part: usize,
    /// Whether places are kept.
    pub(super) traced: bool,
}

impl Trace {
    /// Adds a word of a line: its hash, and the token as written.
    #[inline(always)]
    pub(super) fn push(self, hash: u64, token: &str, line: usize, part: &mut Content) {
        if part.words.len() >= MAX_WORDS {
            return;
        }
        part.words.push(hash);
        if self.traced {
            self.place(token, line, part);
        }
    }

    /// Notes the place of the word.
    #[cold]
    fn place(self, token: &str, line: usize, part: &mut Content) {
        // People see the word, so control characters are removed.
        let word = token.chars().filter(|c| !c.is_control()).collect();
        part.positions.push(Position { part: self.part, line, word });
    }

    /// A row of single letters ends; if long enough, it is read as one word.
    pub(super) fn join(self, key: WordKey, spaced: &mut SpacedWord, line: usize, part: &mut Content) {
        if spaced.letters >= characters::MIN_SPACED {
            part.words.truncate(spaced.start);
            part.positions.truncate(spaced.start);
            characters::pieces_of(&spaced.row, &mut |piece| {
                self.push(key.hash(piece.as_bytes()), piece, line, part)
            });
        }
        spaced.clear();
    }
}
