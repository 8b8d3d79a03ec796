// SPDX-License-Identifier: GPL-3.0-or-later
//! The words of a message as they are written down, and where each stands.

use super::characters::{self, Apart};
use super::content::{Content, MAX_WORDS, Position};
use super::product::WordKey;

/// Writes words down.
#[derive(Clone, Copy)]
pub(super) struct Trace {
    /// The number of the part that is read.
    pub(super) part: usize,
    /// Whether it is kept where each word stands.
    pub(super) traced: bool,
}

impl Trace {
    /// A word of a line, by its hash and as it stands.
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

    /// Where the word stands.
    #[cold]
    fn place(self, token: &str, line: usize, part: &mut Content) {
        // It is shown to people; what would control their terminal is no part of a word.
        let word = token.chars().filter(|c| !c.is_control()).collect();
        part.positions.push(Position { part: self.part, line, word });
    }

    /// Letters that stood apart end; enough of them are read as one row.
    pub(super) fn join(self, key: WordKey, apart: &mut Apart, line: usize, part: &mut Content) {
        if apart.letters >= characters::APART {
            part.words.truncate(apart.start);
            part.positions.truncate(apart.start);
            characters::pieces_of(&apart.row, &mut |piece| {
                self.push(key.hash(piece.as_bytes()), piece, line, part)
            });
        }
        apart.clear();
    }
}
