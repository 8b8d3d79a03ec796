// SPDX-License-Identifier: GPL-3.0-or-later
//! From the words of a text to the few of its passages that stand for it: weighted min-hash, with runners-up.

/// How passages are made and chosen. [`Scheme::SHIPPED`] is what `near/1` is; others exist for the sweep in
/// `benches/near.rs` alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// Times that a passage is chosen, each time by another order of all of them.
    pub slots: usize,
    /// Passages that are asked for in each slot: the first in its order, which is reported, and the next ones.
    pub probes: usize,
    /// Words in a run.
    pub run: usize,
    /// Runs in a passage.
    pub runs: usize,
    /// Words from the beginning of the first run to those from which the second is chosen.
    pub gap: usize,
    /// Places among which each further run is chosen.
    pub window: usize,
    /// What the last passage weighs, in parts of [`Scheme::FULL`]; from the first to it weights fall evenly.
    pub last: u64,
}

impl Scheme {
    /// Words that a passage reaches over.
    #[must_use]
    pub const fn reach(&self) -> usize {
        self.gap + (self.runs - 1) * self.window + self.run - 1
    }

    /// The weight of the first passage.
    pub const FULL: u64 = 20;

    /// The scheme of `near/1`. docs/signatures.md has the reasons.
    pub const SHIPPED: Self = Self { slots: 8, probes: 3, run: 2, runs: 4, gap: 2, window: 3, last: 1 };
}

/// A passage: some words near one another, by their hash and where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// The hash of its words.
    pub hash: u64,
    /// The number of its first word.
    pub at: usize,
}

/// Different passages below which a text says too little.
pub(super) const ENOUGH: usize = 8;

/// For each slot the passages that come first in its order, at most [`Scheme::probes`] of them; empty for a text with fewer
/// than eight different passages. `words` are hashes.
#[must_use]
pub fn sample(words: &[u64], scheme: &Scheme) -> Vec<Vec<Passage>> {
    let passages = passages(words, scheme);
    if !are_enough(&passages) {
        return Vec::new();
    }
    let weight = |i: usize| Scheme::FULL - (Scheme::FULL - scheme.last) * i as u64 / passages.len() as u64;
    (0..scheme.slots as u64)
        .map(|slot| {
            let seed = mix(slot.wrapping_add(1).wrapping_mul(GOLDEN));
            let mut first = First::new(scheme.probes);
            for (at, &hash) in passages.iter().enumerate() {
                first.see(mix(hash ^ seed), || weight(at), Passage { hash, at });
            }
            first.found.into_iter().map(|(_, passage)| passage).collect()
        })
        .collect()
}

/// The hash of the passage that begins at each word. Texts are read in a circle, so that each word begins one.
fn passages(words: &[u64], scheme: &Scheme) -> Vec<u64> {
    let mut runs: Vec<u64> =
        words.windows(scheme.run).map(|run| run.iter().fold(0, |hash, &word| mix(hash ^ word))).collect();
    let count = runs.len();
    go_round(&mut runs, scheme.window);
    // Of the runs at `window` places, the one whose hash is lowest: it stays the same when a word is put in before it.
    let ranks: Vec<u64> = runs.iter().map(|&run| mix(run)).collect();
    let mut chosen: Vec<u64> = ranks[..]
        .windows(scheme.window)
        .take(count)
        .zip(runs.windows(scheme.window))
        .map(|(ranks, runs)| {
            let lowest = ranks.iter().zip(runs).min_by_key(|(rank, _)| **rank);
            lowest.map_or(0, |(_, &run)| run)
        })
        .collect();
    go_round(&mut chosen, scheme.gap + scheme.runs * scheme.window);
    (0..count)
        .map(|at| {
            let further = (1..scheme.runs).map(|n| chosen[at + scheme.gap + (n - 1) * scheme.window]);
            further.fold(mix(runs[at]), |hash, run| mix(hash ^ run))
        })
        .collect()
}

/// Appends so many places from the beginning.
fn go_round(circle: &mut Vec<u64>, places: usize) {
    let length = circle.len();
    if length > 0 {
        for i in 0..places {
            circle.push(circle[i % length]);
        }
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

/// The passages that come first: those with the least `-log(u) / weight` for a `u` that is drawn from their hash (A-Res of
/// Efraimidis and Spirakis), so that one of twice the weight is twice as likely to be the first.
struct First {
    probes: usize,
    found: Vec<(u64, Passage)>,
    /// What a passage of full weight draws below this does not come first.
    least: u64,
}

impl First {
    fn new(probes: usize) -> Self {
        Self { probes, found: Vec::with_capacity(probes + 1), least: 0 }
    }

    #[inline]
    fn see(&mut self, drawn: u64, weight: impl FnOnce() -> u64, passage: Passage) {
        if drawn >= self.least {
            self.insert(minus_log2(drawn) / weight(), passage);
        }
    }

    fn insert(&mut self, key: u64, passage: Passage) {
        // What is found again further down weighs no more than the first time.
        if self.found.iter().any(|(_, other)| other.hash == passage.hash) {
            return;
        }
        let place = self.found.partition_point(|(other, _)| *other <= key);
        self.found.insert(place, (key, passage));
        self.found.truncate(self.probes);
        if self.found.len() == self.probes
            && let Some((key, _)) = self.found.last()
        {
            self.least = least_drawn(key.saturating_mul(Scheme::FULL).min(64 << FRACTION));
        }
    }
}

/// Bits behind the point of [`minus_log2`].
const FRACTION: u32 = 48;

/// `-log2(u / 2^64)` in units of 2^-48, with the logarithm of the mantissa taken for linear: whole numbers, so that every
/// machine finds the same.
fn minus_log2(u: u64) -> u64 {
    let u = u.max(1);
    let exponent = u64::from(u.ilog2());
    let mantissa = (u << u.leading_zeros()) << 1;
    (64 << FRACTION) - (exponent << FRACTION) - (mantissa >> (64 - FRACTION))
}

/// The least `u` for which [`minus_log2`] is at most `bound`: its inverse, `(2 - fraction) * 2^(63 - whole)`.
fn least_drawn(bound: u64) -> u64 {
    let (whole, fraction) = (bound >> FRACTION, bound & ((1 << FRACTION) - 1));
    let mantissa = u128::from((2 << FRACTION) - fraction);
    u64::try_from((mantissa << (63 - FRACTION)) >> whole).unwrap_or(u64::MAX)
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of SplitMix64.
pub(super) const fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(GOLDEN);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(range: std::ops::Range<u64>) -> Vec<u64> {
        range.map(|n| mix(n ^ 0xABCD)).collect()
    }

    /// The share of slots in which something that is asked for is what the other reported.
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
    fn what_is_put_before_or_behind_changes_little() {
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

    /// With one passage of half the weight of each of the others, it comes first half as often.
    #[test]
    fn weights_are_kept() {
        let trials = 40_000u64;
        let mut light = 0;
        for n in 0..trials {
            let mut first = First::new(2);
            for i in 0..5 {
                let weight = if i == 0 { 10 } else { 20 };
                first.see(mix(n * 5 + i), || weight, Passage { hash: i, at: 0 });
            }
            light += u64::from(first.found[0].1.hash == 0);
        }
        let share = light as f64 / trials as f64;
        assert!((share - 1.0 / 9.0).abs() < 0.02, "{share}");
    }

    #[test]
    fn bounds_of_the_logarithm() {
        for u in [1, 2, 3, 1 << 20, u64::MAX / 3, u64::MAX - 1, u64::MAX] {
            let bits = minus_log2(u) as f64 / (1u64 << FRACTION) as f64;
            let exact = 64.0 - (u as f64).log2();
            assert!((bits - exact).abs() < 0.09, "{u}: {bits} {exact}");
        }
        let mut random = 1;
        for _ in 0..100_000 {
            random = mix(random);
            let (u, bound) = (random >> (random % 40), minus_log2(mix(random ^ 7)));
            assert!(u >= least_drawn(bound) || minus_log2(u) >= bound, "{u} {bound}");
        }
    }
}
