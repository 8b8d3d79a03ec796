// SPDX-License-Identifier: GPL-3.0-or-later
//! Chooses the few passages that stand for a text: weighted min-hash, with runners-up.

use super::product::{constant, folded_product};
use std::ops::Range;

/// How passages are made and chosen. [`Scheme::SHIPPED`] defines `near/1`; other schemes exist only for the sweep in `bulkmark-study near`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// Number of slots: each chooses passages in its own order.
    pub slots: usize,
    /// Passages that each slot looks up: the first in its order, which is reported, and the next ones.
    pub probes: usize,
    /// Words in a run.
    pub run: usize,
    /// Runs in a passage.
    pub runs: usize,
    /// Words from the beginning of the first run to the window of the second.
    pub gap: usize,
    /// Places in the window of each further run.
    pub window: usize,
    /// Weight of the last passage, in parts of [`Scheme::FULL`]; weights fall evenly from the first to it.
    pub last: u64,
    /// Whether the first slot has a passage of the head of the text.
    pub head: bool,
}

impl Scheme {
    /// Words that a passage spans.
    #[must_use]
    pub const fn reach(&self) -> usize {
        self.gap + (self.runs - 1) * self.window + self.run - 1
    }

    /// The range of passages from which the first slot chooses: from the sixteenth part of the text to the twelfth. A greeting by name
    /// stands before it. An author of more new text above known text writes these words.
    fn head(&self, passages: usize) -> Range<usize> {
        if self.head { (passages / 16).max(4)..passages.div_ceil(12).max(8) } else { 0..passages }
    }

    /// The weight of the first passage.
    pub const FULL: u64 = 20;

    /// The scheme of `near/1`. docs/signatures.md has the reasons.
    pub const SHIPPED: Self =
        Self { slots: 8, probes: 3, run: 2, runs: 4, gap: 2, window: 3, last: 1, head: true };
}

/// A passage: some words near one another, by hash and place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// The hash of its words.
    pub hash: u64,
    /// The number of its first word.
    pub at: usize,
}

/// Different passages from which on a text gets signatures.
pub(super) const ENOUGH: usize = 8;

/// For each slot the first passages in its order, at most [`Scheme::probes`]; empty for a text with fewer than eight different passages.
/// `words` are hashes.
#[must_use]
pub fn sample(words: &[u64], scheme: &Scheme) -> Vec<Vec<Passage>> {
    let passages = passages(words, scheme);
    if !are_enough(&passages) {
        return Vec::new();
    }
    let mut slots = Vec::with_capacity(scheme.slots);
    if scheme.slots == 1 {
        slots.extend(first_of_group::<1>(0, &passages, scheme).map(First::passages));
    }
    while slots.len() < scheme.slots {
        let group = slots.len() / GROUP;
        slots.extend(first_of_group::<GROUP>(group, &passages, scheme).map(First::passages));
    }
    slots.truncate(scheme.slots);
    slots
}

/// The hash of the passage that comes first in one order, independent of the rest.
pub(super) fn first_hash(words: &[u64]) -> Option<u64> {
    let scheme = Scheme { slots: 1, probes: 1, head: false, ..Scheme::SHIPPED };
    Some(sample(words, &scheme).first()?.first()?.hash)
}

/// Slots that are drawn together.
const GROUP: usize = 8;

/// The first passages in the first `N` slots of a group: one pass over the passages for all slots.
fn first_of_group<const N: usize>(group: usize, passages: &[u64], scheme: &Scheme) -> [First; N] {
    let weight = |i: usize| Scheme::FULL - (Scheme::FULL - scheme.last) * i as u64 / passages.len() as u64;
    // Two slots share a product; each has a seed.
    let seeds: [[u64; 2]; GROUP / 2] = std::array::from_fn(|pair| {
        let n = 2 * (group * GROUP / 2 + pair) as u64 + 2;
        [constant(n), constant(n + 1) | 1]
    });
    let mut first: [First; N] = std::array::from_fn(|_| First::new(scheme.probes));
    // Only a number above it comes first. Few of all passages come first anywhere.
    let mut limits = [0; N];
    let mut insert = |at: usize, drawn: [u32; N], limits: &mut [u32; N]| {
        for slot in 0..N {
            if drawn[slot] > limits[slot] {
                let is_evenly_weighted = scheme.head && group == 0 && slot == 0;
                let weight = if is_evenly_weighted { Scheme::FULL } else { weight(at) };
                let passage = Passage { hash: passages[at], at };
                limits[slot] = first[slot].insert(key_of(drawn[slot], weight), passage);
            }
        }
    };
    let head = if group == 0 { scheme.head(passages.len()) } else { 0..passages.len() };
    for (part, is_head) in [(0..head.start, false), (head.clone(), true), (head.end..passages.len(), false)] {
        let limit = limits[0];
        if !is_head {
            limits[0] = u32::MAX;
        }
        for at in part {
            let drawn = draw::<N>(passages[at], &seeds);
            if (0..N).any(|slot| drawn[slot] > limits[slot]) {
                insert(at, drawn, &mut limits);
            }
        }
        if !is_head {
            limits[0] = limit;
        }
    }
    first
}

/// The numbers that a passage draws in the slots of a group.
#[inline]
fn draw<const N: usize>(hash: u64, seeds: &[[u64; 2]; GROUP / 2]) -> [u32; N] {
    let mut drawn = [0; N];
    for (drawn, [seed, factor]) in drawn.chunks_mut(2).zip(seeds) {
        let product = folded_product(hash ^ seed, *factor);
        let halves = [(product & 0xFFFF_FFFF) as u32, (product >> 32) as u32];
        drawn.iter_mut().zip(halves).for_each(|(drawn, half)| *drawn = half);
    }
    drawn
}

/// The hash of the passage that begins at each word. Texts are read in a circle, so that a passage begins at each word.
fn passages(words: &[u64], scheme: &Scheme) -> Vec<u64> {
    let numbers = |scheme: &Scheme| (scheme.run, scheme.runs, scheme.gap, scheme.window);
    // As constants, these numbers make straight code.
    let shipped = Scheme::SHIPPED;
    if numbers(scheme) == numbers(&shipped) {
        passages_by(words, shipped)
    } else {
        passages_by(words, *scheme)
    }
}

#[inline(always)]
fn passages_by(words: &[u64], scheme: Scheme) -> Vec<u64> {
    let mut passages = Vec::with_capacity(words.len() + scheme.window);
    passages.extend(words.windows(scheme.run).map(|run| run.iter().copied().reduce(chain).unwrap_or(0)));
    let count = passages.len();
    if count == 0 {
        return passages;
    }
    // Of the runs in a window, the lowest hash is chosen: it survives a word inserted before it.
    go_round(&mut passages, count + scheme.window - 1);
    let places = count + scheme.gap + scheme.runs * scheme.window;
    let mut chosen = Vec::with_capacity(places);
    chosen.extend(passages.windows(scheme.window).map(|window| window.iter().copied().min().unwrap_or(0)));
    go_round(&mut chosen, places);
    passages.truncate(count);
    for (at, hash) in passages.iter_mut().enumerate() {
        for further in 0..scheme.runs - 1 {
            *hash = chain(*hash, chosen[at + scheme.gap + further * scheme.window]);
        }
    }
    passages
}

/// Chains a further hash to a hash.
#[inline]
fn chain(hash: u64, further: u64) -> u64 {
    folded_product(hash ^ const { constant(0) }, further ^ const { constant(1) })
}

/// Continues a circle from its beginning up to this many places.
fn go_round(circle: &mut Vec<u64>, places: usize) {
    let around = circle.len();
    while circle.len() < places {
        circle.extend_from_within(..around.min(places - circle.len()));
    }
}

fn are_enough(passages: &[u64]) -> bool {
    let mut different = Vec::with_capacity(ENOUGH);
    for passage in passages {
        if !different.contains(passage) {
            different.push(*passage);
        }
        if different.len() == ENOUGH {
            return true;
        }
    }
    false
}

/// The passages that come first: those with the least `-log(u) / weight`, where `u` is drawn from their hash (A-Res of Efraimidis and
/// Spirakis), so that a passage of twice the weight is first twice as often.
struct First {
    probes: usize,
    found: Vec<(u64, Passage)>,
    /// Only a passage that draws more comes first.
    limit: u32,
}

impl First {
    fn new(probes: usize) -> Self {
        Self { probes, found: Vec::with_capacity(probes + 1), limit: 0 }
    }

    /// The passages in their order.
    fn passages(self) -> Vec<Passage> {
        self.found.into_iter().map(|(_, passage)| passage).collect()
    }

    /// Inserts a passage, and returns the number that the next one must exceed even with full weight.
    fn insert(&mut self, key: u64, passage: Passage) -> u32 {
        // The first occurrence has the highest weight.
        if self.found.iter().any(|(_, other)| other.hash == passage.hash) {
            return self.limit;
        }
        let place = self.found.partition_point(|(other, _)| *other <= key);
        self.found.insert(place, (key, passage));
        self.found.truncate(self.probes);
        if self.found.len() == self.probes
            && let Some((key, _)) = self.found.last()
        {
            self.limit = least_drawn(key.saturating_mul(Scheme::FULL).min(32 << FRACTION)).saturating_sub(1);
        }
        self.limit
    }
}

/// The sort key of a passage: lower keys come first.
fn key_of(drawn: u32, weight: u64) -> u64 {
    minus_log2(drawn) / weight
}

/// Fraction bits of [`minus_log2`].
const FRACTION: u32 = 48;

/// `-log2(u / 2^32)` in units of 2^-48, with a linear mantissa: integers, so that every machine gets the same result.
fn minus_log2(u: u32) -> u64 {
    let u = u.max(1);
    let exponent = u64::from(u.ilog2());
    let mantissa = u64::from(u << u.leading_zeros() << 1);
    (32 << FRACTION) - (exponent << FRACTION) - (mantissa << (FRACTION - 32))
}

/// The least `u` for which [`minus_log2`] is at most `bound`: its inverse, `(2 - fraction) * 2^(31 - whole)`.
fn least_drawn(bound: u64) -> u32 {
    let (whole, fraction) = (bound >> FRACTION, bound & ((1 << FRACTION) - 1));
    let mantissa = (2 << FRACTION) - fraction;
    u32::try_from(mantissa >> (u64::from(FRACTION) - 31 + whole)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(range: Range<u64>) -> Vec<u64> {
        range.map(|n| constant(n ^ 0xABCD)).collect()
    }

    /// The number of slots in which one looks up the passage that the other reports.
    fn joined(a: &[u64], b: &[u64]) -> usize {
        let scheme = Scheme::SHIPPED;
        let (a, b) = (sample(a, &scheme), sample(b, &scheme));
        a.iter().zip(&b).filter(|(a, b)| b.iter().any(|p| p.hash == a[0].hash)).count()
    }

    #[test]
    fn passages_are_those_of_the_text() {
        let scheme = Scheme::SHIPPED;
        let text = words(0..100);
        let found = sample(&text, &scheme);
        assert_eq!(found.len(), scheme.slots);
        let all = passages(&text, &scheme);
        for slot in &found {
            assert_eq!(slot.len(), scheme.probes);
            for passage in slot {
                assert_eq!(all[passage.at], passage.hash);
            }
        }
        assert_eq!(found, sample(&text, &scheme));
        assert!(sample(&text[..8], &scheme).is_empty(), "7 passages");
        assert!(!sample(&text[..9], &scheme).is_empty(), "8 passages");
        assert!(sample(&text[..2].repeat(50), &scheme).is_empty(), "2 different passages");
    }

    #[test]
    fn text_added_at_the_ends_changes_little() {
        let text = words(0..60);
        for (before, behind) in [(0, 40), (30, 0), (10, 10)] {
            let other = [words(1000..1000 + before), text.clone(), words(2000..2000 + behind)].concat();
            assert!(joined(&text, &other) >= 4, "{before} before, {behind} behind");
        }
        let mut changed = text.clone();
        changed[30] = 1;
        assert!(joined(&text, &changed) >= 4);
        assert_eq!(joined(&text, &words(5000..5060)), 0);
    }

    /// A passage of half the weight of the others comes first half as often.
    #[test]
    fn weights_are_kept() {
        let trials = 40_000u64;
        let mut light = 0;
        for n in 0..trials {
            let mut first = First::new(2);
            for i in 0..5 {
                let weight = if i == 0 { 10 } else { 20 };
                first.insert(key_of((constant(n * 5 + i) >> 32) as u32, weight), Passage { hash: i, at: 0 });
            }
            light += u64::from(first.found[0].1.hash == 0);
        }
        let share = light as f64 / trials as f64;
        assert!((share - 1.0 / 9.0).abs() < 0.02, "{share}");
    }

    #[test]
    fn bounds_of_the_logarithm() {
        for u in [1, 2, 3, 1 << 20, u32::MAX / 3, u32::MAX - 1, u32::MAX] {
            let bits = minus_log2(u) as f64 / (1u64 << FRACTION) as f64;
            let exact = 32.0 - f64::from(u).log2();
            assert!((bits - exact).abs() < 0.09, "{u}: {bits} {exact}");
        }
        for n in 0..100_000 {
            let random = constant(n);
            let (u, bound) = ((random & 0xFFFF_FFFF) as u32 >> (n % 30), minus_log2((random >> 32) as u32));
            assert!(u >= least_drawn(bound) || minus_log2(u) >= bound, "{u} {bound}");
        }
    }
}
