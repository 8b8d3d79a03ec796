// SPDX-License-Identifier: GPL-3.0-or-later
//! The elements that fill a filter, and those that are then looked up.

use super::random::{Random, element};

/// The largest number of additions of one element.
const MAX_TIMES: f64 = 100_000.0;

/// Elements from this number on are in no filter at first.
const UNSEEN: u64 = 1 << 40;

/// The number of additions that fill a filter together.
const FILLING: u64 = 4096;

/// Returns how often the element with this number is in a filled filter: c times or more with probability 1/c.
fn times(number: u64) -> u32 {
    let u = ((Random::new(!number).next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    (1.0 / u).min(MAX_TIMES) as u32
}

/// Calls `add` with the elements `numbers` and their counts, some thousand at a time.
pub(crate) fn filling(numbers: std::ops::Range<u64>, mut add: impl FnMut(&[(u128, u32)])) {
    let mut additions = Vec::new();
    for start in numbers.clone().step_by(FILLING as usize) {
        additions.clear();
        additions.extend((start..numbers.end.min(start + FILLING)).map(|i| (element(i), times(i))));
        add(&additions);
    }
}

/// The kind of elements to count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Half of the elements are in the filter, any of them with the same probability; the others are new.
    Mixed,
    /// All are in the filter with counts beyond 15, so that their further counts are in split storage.
    Bulk,
}

/// Elements to measure with, in the form that each contender needs.
pub(crate) struct Sample {
    pub(crate) additions: Vec<(u128, u32)>,
    pub(crate) elements: Vec<u128>,
}

/// A source of samples for a filter that was filled with `seen` elements. No element is used twice on purpose, so that the processor's
/// caches know none from the sample before.
pub(crate) struct Traffic {
    seen: usize,
    unseen: u64,
    random: Random,
}

impl Traffic {
    pub(crate) fn new(seen: u64) -> Self {
        Self { seen: seen as usize, unseen: UNSEEN, random: Random::new(7) }
    }

    pub(crate) fn sample(&mut self, kind: Kind, size: usize) -> Sample {
        let elements: Vec<u128> = (0..size).map(|_| element(self.number(kind))).collect();
        Sample { additions: elements.iter().map(|&element| (element, 1)).collect(), elements }
    }

    fn number(&mut self, kind: Kind) -> u64 {
        if kind == Kind::Mixed && self.random.next() >> 63 == 0 {
            self.unseen += 1;
            return self.unseen;
        }
        loop {
            let number = self.random.below(self.seen) as u64;
            if kind == Kind::Mixed || times(number) > 15 {
                return number;
            }
        }
    }
}
