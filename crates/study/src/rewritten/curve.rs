// SPDX-License-Identifier: GPL-3.0-or-later
//! The share of rewritten copies that is found, by their share of other text.

use super::ledger::Ledger;
use super::rewrite::{Way, rewritten};
use super::texts::{Sentence, sentences};
use crate::labelled::{Labelled, LabelledError};
use bulkmark_mail::RawMessage;
use bulkmark_types::FederationKey;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Keys under which everything is counted, since each draws other passages.
const KEYS: usize = 3;

/// Copies of each text.
const COPIES: usize = 40;

/// The count from which on a message is bulk.
const AT: u32 = 20;

/// The length in words of the rewritten texts: shorter ones are hardly advertisements, and longer ones are rare.
const WORDS: std::ops::RangeInclusive<usize> = 80..=400;

/// Words of a sentence used as ham.
const SENTENCE: std::ops::RangeInclusive<usize> = 5..=40;

/// Replaced words, in percent.
const PERCENT: [u32; 11] = [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50];

/// The texts.
#[derive(Debug)]
pub struct Mail {
    bases: Vec<Vec<Sentence>>,
    /// The results for unrelated ham.
    sentences: Vec<Sentence>,
    ham: Vec<RawMessage>,
}

/// Unrelated ham that is taken for copies, averaged over all keys.
#[derive(Debug, Clone, Copy)]
pub struct False {
    /// The number of messages.
    pub messages: usize,
    /// Those that are joined.
    pub joined: f64,
    /// Those that reach the threshold.
    pub at: f64,
}

/// The results of one way of rewriting.
#[derive(Debug, Clone)]
pub struct Curve {
    /// The way.
    pub way: Way,
    /// The results by increasing numbers of replaced words.
    pub points: Vec<Point>,
}

/// The results for copies; percent.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// The replaced words.
    pub replaced: u32,
    /// The share of copies after the first with a count of two or more.
    pub joined: f64,
    /// The share of copies at the threshold, of those that could be.
    pub at: f64,
}

impl Mail {
    /// Reads the messages, and takes as many texts as `bases` at equal distances.
    ///
    /// # Errors
    /// When a message cannot be read, or no text is of the right length, or no ham has a sentence.
    pub fn read(labelled: &Labelled, bases: usize) -> Result<Self, LabelledError> {
        let ham = labelled.ham.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let spam = labelled.alone.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let words = |text: &Vec<Sentence>| text.iter().map(Vec::len).sum::<usize>();
        let mut texts: Vec<_> = spam.iter().map(sentences).collect();
        texts.retain(|text| WORDS.contains(&words(text)));
        let mut of_ham: Vec<Sentence> = ham.iter().flat_map(sentences).collect();
        of_ham.retain(|sentence| SENTENCE.contains(&sentence.len()));
        // Footers stand in many messages.
        of_ham.sort_unstable();
        of_ham.dedup();
        if texts.is_empty() || of_ham.is_empty() {
            return Err(LabelledError::NoText);
        }
        let chosen = |n: usize| texts[n * texts.len() / bases].clone();
        let bases = (0..bases.min(texts.len())).map(chosen).collect();
        Ok(Self { bases, sentences: of_ham, ham })
    }

    /// The number of rewritten texts.
    #[must_use]
    pub fn bases(&self) -> usize {
        self.bases.len()
    }

    /// The ham that is taken for copies at the same time.
    #[must_use]
    pub fn false_bulk(&self) -> False {
        let (mut joined, mut at) = (0, 0);
        for key in keys() {
            let mut ledger = Ledger::new(&key);
            for message in &self.ham {
                let count = ledger.count(message);
                joined += usize::from(count >= 2);
                at += usize::from(count >= AT);
            }
        }
        let mean = |number: usize| number as f64 / KEYS as f64;
        False { messages: self.ham.len(), joined: mean(joined), at: mean(at) }
    }

    /// Measures copies that are rewritten in this way; each text has its own ledger.
    #[must_use]
    pub fn curve(&self, way: Way) -> Curve {
        Curve { way, points: PERCENT.iter().map(|&replaced| self.point(way, replaced)).collect() }
    }

    fn point(&self, way: Way, replaced: u32) -> Point {
        let (mut joined, mut at) = (0, 0);
        let possible = (COPIES + 1).saturating_sub(AT as usize);
        for (base, seed) in self.bases.iter().zip(0..) {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let copy = |_| rewritten(base, way, replaced, &self.sentences, &mut random);
            let copies: Vec<RawMessage> = (0..COPIES).map(copy).collect();
            for key in keys() {
                let mut ledger = Ledger::new(&key);
                let counts: Vec<u32> = copies.iter().map(|copy| ledger.count(copy)).collect();
                joined += counts[1..].iter().filter(|&&count| count >= 2).count();
                at += counts.iter().filter(|&&count| count >= AT).count().min(possible);
            }
        }
        let percent = |part: usize, of_base: usize| {
            100.0 * part as f64 / (of_base * KEYS * self.bases.len().max(1)) as f64
        };
        Point { replaced, joined: percent(joined, COPIES - 1), at: percent(at, possible) }
    }
}

/// The public key, and others.
fn keys() -> impl Iterator<Item = FederationKey> {
    let key = |n| match n {
        0 => Some(FederationKey::public()),
        n => FederationKey::from_bytes(format!("key number {n} of the evaluation").as_bytes()).ok(),
    };
    (0..KEYS).filter_map(key)
}

/// A file that is no message counts as an empty one.
fn read(path: &std::path::PathBuf) -> Result<RawMessage, LabelledError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(RawMessage::from_bytes(&bytes)),
        Err(error) => Err(LabelledError::Read { path: path.clone(), error }),
    }
}
