// SPDX-License-Identifier: GPL-3.0-or-later
//! Many rounds of many configurations, on all cores, with the same results whatever their number.

use super::experiment::Experiment;
use super::round::{Extension, Rates, round};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The configuration of one row of the paper's tables, for both extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configuration {
    /// The experiment.
    pub experiment: Experiment,
    /// Cells of the filter.
    pub m: u32,
    /// Hashes.
    pub k: usize,
}

impl Configuration {
    /// Its random numbers: a separate stream for each round, so that rounds can run in any thread.
    fn random(&self, seed: u64, round: u64) -> Xoshiro256PlusPlus {
        let experiment = u64::from(self.experiment.to_string().as_bytes()[0]);
        let mut state = seed;
        for field in [experiment, self.m.into(), self.k as u64, round] {
            state = (state ^ field).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            state ^= state >> 29;
        }
        Xoshiro256PlusPlus::seed_from_u64(state)
    }
}

/// Mean and standard deviation of the rates of one configuration with one extension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The configuration.
    pub configuration: Configuration,
    /// The extension.
    pub extension: Extension,
    /// The number of rounds.
    pub rounds: u64,
    /// The mean rate.
    pub mean: f64,
    /// The standard deviation of the rate of a round.
    pub std_dev: f64,
}

/// Runs `rounds` rounds of each configuration; calls `progress` after each round. Two outcomes a configuration, the intuitive one
/// first.
pub fn run(
    configurations: &[Configuration],
    rounds: u64,
    seed: u64,
    progress: &(dyn Fn() + Sync),
) -> Vec<Outcome> {
    let rounds_each = usize::try_from(rounds).unwrap_or(usize::MAX).max(1);
    let all = configurations.len() * rounds_each;
    let next = AtomicUsize::new(0);
    let rates = Mutex::new(vec![None; all]);
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= all {
                return;
            }
            let configuration = &configurations[i / rounds_each];
            let mut random = configuration.random(seed, i as u64 % rounds);
            let Configuration { experiment, m, k } = *configuration;
            let result = round(experiment, m, k, &mut random);
            rates.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[i] = Some(result);
            progress();
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let rates = rates.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let rates: Vec<Rates> = rates.into_iter().flatten().collect();
    configurations
        .iter()
        .zip(rates.chunks(rounds_each))
        .flat_map(|(&configuration, rates)| {
            let outcome = |extension, rate: fn(&Rates) -> f64| {
                let (mean, std_dev) = mean_and_deviation(rates.iter().map(rate));
                Outcome { configuration, extension, rounds, mean, std_dev }
            };
            [outcome(Extension::Intuitive, |r| r.intuitive), outcome(Extension::Refined, |r| r.refined)]
        })
        .collect()
}

fn mean_and_deviation(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let squares: f64 = values.map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}
