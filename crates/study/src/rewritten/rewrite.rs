// SPDX-License-Identifier: GPL-3.0-or-later
//! Rewritten copies of a text.

use super::texts::Sentence;
use crate::random::below;
use bulkmark_mail::RawMessage;
use rand_xoshiro::rand_core::Rng;

/// The change to a text in addition to replaced words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Nothing.
    Words,
    /// Its sentences are in another order.
    Shuffled,
    /// Ham stands before it, twice as many words.
    Padded,
    /// Both.
    Both,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 4] = [Self::Words, Self::Shuffled, Self::Padded, Self::Both];

    /// The name for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Words => "words replaced",
            Self::Shuffled => "and sentences shuffled",
            Self::Padded => "and twice as much ham before",
            Self::Both => "both",
        }
    }

    const fn shuffles(self) -> bool {
        matches!(self, Self::Shuffled | Self::Both)
    }

    const fn pads(self) -> bool {
        matches!(self, Self::Padded | Self::Both)
    }
}

/// So many words of ham for each word of the text.
const PADDING: usize = 2;

/// Words on a line.
const LINE: usize = 11;

/// A copy with so many percent of its words replaced by words from `ham`, which must not be empty.
pub(super) fn rewritten(
    text: &[Sentence],
    way: Way,
    percent: u32,
    ham: &[Sentence],
    random: &mut dyn Rng,
) -> RawMessage {
    let mut sentences = text.to_vec();
    for word in sentences.iter_mut().flatten() {
        if below(random, 100) < percent {
            let sentence: &Sentence = pick(ham, random);
            word.clone_from(pick(sentence, random));
        }
    }
    if way.shuffles() {
        for last in (1..sentences.len()).rev() {
            sentences.swap(last, below(random, bound(last + 1)) as usize);
        }
    }
    let mut before: Vec<&String> = Vec::new();
    if way.pads() {
        let words = PADDING * sentences.iter().map(Vec::len).sum::<usize>();
        while before.len() < words {
            before.extend(pick(ham, random));
        }
        before.truncate(words);
    }
    let mut raw = String::from("Subject: a letter\n\n");
    for (words, end) in [(before, "\n"), (sentences.iter().flatten().collect(), "")] {
        for line in words.chunks(LINE) {
            let line: Vec<&str> = line.iter().map(|word| word.as_str()).collect();
            raw.push_str(&line.join(" "));
            raw.push('\n');
        }
        raw.push_str(end);
    }
    RawMessage::from_bytes(raw.as_bytes())
}

fn pick<'a, T>(from: &'a [T], random: &mut dyn Rng) -> &'a T {
    &from[below(random, bound(from.len())) as usize]
}

fn bound(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX).max(1)
}
