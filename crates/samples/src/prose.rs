// SPDX-License-Identifier: GPL-3.0-or-later
//! Synthetic text: words of syllables, in sentences and lines.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const SYLLABLES: [&str; 24] = [
    "ba", "ter", "mon", "li", "sa", "rin", "do", "ken", "va", "los", "pe", "ram", "ti", "gor", "nu", "shel",
    "ka", "ven", "mi", "dor", "fa", "lun", "re", "stan",
];

/// Common words, which are half of each text, as in real texts.
const USUAL: [&str; 20] = [
    "the", "and", "of", "to", "in", "is", "that", "we", "it", "for", "you", "on", "with", "as", "this", "be",
    "are", "will", "have", "at",
];

/// A writer.
pub struct Prose(SplitMix64);

impl Prose {
    /// Makes a writer whose text is unique for this number.
    pub fn new(number: u64) -> Self {
        Self(SplitMix64::seed_from_u64(number))
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.next_u64() % n as u64).unwrap()
    }

    /// A word.
    pub fn word(&mut self) -> String {
        if self.below(2) == 0 {
            return USUAL[self.below(USUAL.len())].to_owned();
        }
        (0..2 + self.below(3)).map(|_| SYLLABLES[self.below(SYLLABLES.len())]).collect()
    }

    /// So many words, in sentences and in lines of twelve words.
    pub fn text(&mut self, words: usize) -> String {
        let mut text = String::new();
        let mut left = 0;
        for n in 0..words {
            if left == 0 {
                left = 5 + self.below(12);
            }
            left -= 1;
            text.push_str(&self.word());
            text.push_str(if left == 0 || n + 1 == words { "." } else { "" });
            text.push_str(if n % 12 == 11 || n + 1 == words { "\n" } else { " " });
        }
        text
    }
}
