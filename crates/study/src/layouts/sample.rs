// SPDX-License-Identifier: GPL-3.0-or-later
//! Elements, their numbers of additions, and the order.

use super::memory;
use crate::random::below;
use bulkmark_filter::ParameterError;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fmt;

/// The most additions of an element.
const MOST: u32 = 100_000;

/// The exponent of Zipf's law, the inverse of [`ZIPF_ALPHA`].
const ZIPF_EXPONENT: &str = "1.2";

/// In additions drawn from Zipf's law with exponent s, the elements seen once are the share 1/s of all.
const ZIPF_ALPHA: f64 = 1.0 / 1.2;

/// The finaliser of `SplitMix64`: a one-to-one mixture of 64 bits.
pub(super) const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// 128 bits that stand for the element with this number, spread over a filter as signatures are.
pub(super) const fn element(seed: u64, number: u64) -> u128 {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let first = mix(seed.wrapping_mul(STEP)).wrapping_add(number.wrapping_mul(2).wrapping_mul(STEP));
    (mix(first.wrapping_add(STEP)) as u128) << 64 | mix(first) as u128
}

/// How often elements are added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribution {
    /// c times or more with probability 1/c, at most 100,000 times: 5 % are added 20 times or more.
    Pareto,
    /// The result of additions drawn one by one from Zipf's law with exponent 1.2, at most 100,000 of each: 83 % are added once,
    /// 1.5 % 20 times or more.
    Zipf,
    /// Observed numbers, one for each element; each is equally likely.
    Found(Vec<u32>),
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pareto => f.pad("Pareto(1)"),
            Self::Zipf => f.pad(&format!("Zipf({ZIPF_EXPONENT})")),
            Self::Found(_) => f.pad("found"),
        }
    }
}

impl Distribution {
    fn draw(&self, n: u32, random: &mut Xoshiro256PlusPlus) -> Vec<u32> {
        // From above 0 up to 1.
        let unit =
            |random: &mut Xoshiro256PlusPlus| ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to MOST")]
        match self {
            Self::Pareto => (0..n).map(|_| (1.0 / unit(random)).min(f64::from(MOST)) as u32).collect(),
            Self::Zipf => {
                let above = zipf_tail();
                let one = |random: &mut Xoshiro256PlusPlus| {
                    let u = unit(random);
                    above.partition_point(|&tail| tail >= u) as u32 + 1
                };
                (0..n).map(|_| one(random)).collect()
            }
            Self::Found(counts) => {
                let all = u32::try_from(counts.len()).unwrap_or(u32::MAX);
                let one = |random: &mut Xoshiro256PlusPlus| match all {
                    0 => 1,
                    all => counts[below(random, all) as usize].clamp(1, MOST),
                };
                (0..n).map(|_| one(random)).collect()
            }
        }
    }
}

/// The chance of more than 1, 2, 3, ... additions. An element that came up exactly j times has the probability a/1 (j = 1), then
/// each time the share a/j of the rest (Karlin's law of rare elements under Zipf's law).
fn zipf_tail() -> Vec<f64> {
    let mut tail = 1.0;
    (1..MOST)
        .map(|j| {
            tail *= 1.0 - ZIPF_ALPHA / f64::from(j);
            tail
        })
        .collect()
}

/// The additions to a filter: so many elements, each with its number, in random order.
#[derive(Debug, Clone)]
pub struct History {
    pub(super) seed: u64,
    pub(super) counts: Vec<u32>,
    pub(super) order: Vec<u32>,
}

impl History {
    /// Draws the history of `elements` elements.
    ///
    /// # Errors
    /// When the machine has no memory for the order of all additions, or they are 2^32 or more.
    pub fn draw(distribution: &Distribution, elements: u32, seed: u64) -> Result<Self, ParameterError> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let counts = distribution.draw(elements, &mut random);
        let additions: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        ParameterError::check("additions", additions, 0, u32::MAX.into())?;
        memory::check("additions", additions, additions * size_of::<u32>() as u64)?;
        let mut order: Vec<u32> =
            (0..).zip(&counts).flat_map(|(i, &count)| std::iter::repeat_n(i, count as usize)).collect();
        // Fisher-Yates.
        for i in (1..u32::try_from(order.len()).unwrap_or(u32::MAX)).rev() {
            order.swap(i as usize, below(&mut random, i + 1) as usize);
        }
        Ok(Self { seed, counts, order })
    }

    /// The element with this number; those from the number of elements on were never added.
    pub(super) const fn element(&self, number: u64) -> u128 {
        element(self.seed, number)
    }

    /// Distinct elements.
    #[must_use]
    pub const fn elements(&self) -> usize {
        self.counts.len()
    }

    /// Additions, all elements together.
    #[must_use]
    pub const fn additions(&self) -> usize {
        self.order.len()
    }

    /// Elements that are added `threshold` times or more.
    #[must_use]
    pub fn reaching(&self, threshold: u32) -> usize {
        self.counts.iter().filter(|&&count| count >= threshold).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tails_are_those_that_are_said() {
        let n = 50_000;
        for (distribution, tails) in [
            (Distribution::Pareto, [1.0, 0.5, 0.05]),
            (Distribution::Zipf, [1.0, 0.16667, 0.0148]),
            (Distribution::Found(vec![1, 2, 20, 300]), [1.0, 0.75, 0.5]),
        ] {
            let history = History::draw(&distribution, n, 5).unwrap();
            for (threshold, tail) in [1, 2, 20].into_iter().zip(tails) {
                let share = history.reaching(threshold) as f64 / f64::from(n);
                let allowed = 5.0 * (tail / f64::from(n)).sqrt() + 1e-3;
                assert!((share - tail).abs() < allowed, "{distribution}: {threshold} or more: {share}");
            }
            assert_eq!(history.additions(), history.counts.iter().map(|&c| c as usize).sum::<usize>());
        }
        let much = Distribution::Found(vec![MOST]);
        let told = History::draw(&much, 50_000, 1).unwrap_err().to_string();
        assert_eq!(told, "additions is 5000000000, expected 0 to 4294967295");
        assert_eq!(History::draw(&Distribution::Found(Vec::new()), 3, 1).unwrap().counts, [1, 1, 1]);
    }
}
