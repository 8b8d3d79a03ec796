// SPDX-License-Identifier: GPL-3.0-or-later
//! The eight experiments: how often each key is inserted, and in which order.

use crate::random::below;
use rand_xoshiro::rand_core::Rng;
use std::fmt;
use std::str::FromStr;

/// Distinct keys of every experiment.
pub const KEYS: usize = 10_000;

/// Cells of the study's filters; experiment 8 has two more.
pub const FILTER_SIZES: [u32; 3] = [80_000, 160_000, 320_000];

/// Hashes of the study's filters.
pub const HASH_NUMBERS: [usize; 3] = [4, 6, 8];

/// One of the paper's experiments, 1 to 8. Its results are in the paper's table of number plus two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Experiment(u8);

/// A number without an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an experiment, 1 to 8")]
pub struct ParseExperimentError;

impl FromStr for Experiment {
    type Err = ParseExperimentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().ok().filter(|n| (1..=8).contains(n)).map(Self).ok_or(ParseExperimentError)
    }
}

impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How often each key is inserted.
enum Times {
    Twenty,
    /// Uniform on 0 to a largest number.
    Uniform(u32),
    Poisson(f64),
}

/// The order of insertions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// All keys in sequence, then all keys again.
    Rounds,
    /// All insertions of a key in a row.
    InARow,
    /// All insertions shuffled.
    Shuffled,
}

impl Experiment {
    /// All eight.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=8).map(Self)
    }

    /// The sizes that the paper gives for this experiment.
    #[must_use]
    pub fn filter_sizes(self) -> Vec<u32> {
        if self.0 == 8 { vec![80_000, 160_000, 240_000, 320_000, 640_000] } else { FILTER_SIZES.to_vec() }
    }

    /// In the first three experiments a wrong count is one of 10,000; in the others it has the weight of the key's insertions.
    pub(super) const fn weighs_insertions(self) -> bool {
        self.0 >= 4
    }

    /// Whether the paper drew the numbers of insertions once for all rounds, and not afresh.
    #[must_use]
    pub const fn drew_once(self) -> bool {
        matches!(self.0, 4 | 5 | 8)
    }

    pub(super) const fn order(self) -> Order {
        match self.0 {
            1 => Order::Rounds,
            2 | 5 => Order::InARow,
            _ => Order::Shuffled,
        }
    }

    const fn times(self) -> Times {
        match self.0 {
            1..=3 => Times::Twenty,
            4 | 5 => Times::Uniform(20),
            6 => Times::Poisson(10.0),
            7 => Times::Poisson(20.0),
            _ => Times::Uniform(40),
        }
    }

    /// Draws the number of insertions of each key.
    pub(super) fn draw_times(self, random: &mut dyn Rng) -> Vec<u32> {
        let keys = 0..KEYS;
        match self.times() {
            Times::Twenty => keys.map(|_| 20).collect(),
            Times::Uniform(most) => keys.map(|_| below(random, most + 1)).collect(),
            Times::Poisson(mean) => {
                let cumulated = poisson(mean);
                keys.map(|_| draw_from(&cumulated, random)).collect()
            }
        }
    }
}

/// Draws from a distribution by its cumulated probabilities.
fn draw_from(cumulated: &[f64], random: &mut dyn Rng) -> u32 {
    let u = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    u32::try_from(cumulated.partition_point(|&p| p <= u)).unwrap_or(u32::MAX)
}

/// The cumulated probabilities of a Poisson distribution, until they reach one.
fn poisson(mean: f64) -> Vec<f64> {
    let (mut p, mut sum, mut cumulated) = ((-mean).exp(), 0.0, Vec::new());
    for i in 1..200 {
        sum += p;
        cumulated.push(sum);
        p *= mean / f64::from(i);
    }
    cumulated
}
