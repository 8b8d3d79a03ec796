// SPDX-License-Identifier: GPL-3.0-or-later
//! Runs contenders in turn, round after round, so that other load on the machine affects all alike; and computes ratios between them.

use super::traffic::{Kind, Sample, Traffic};
use criterion::{Criterion, Throughput};
use std::time::Duration;

/// An operation that processes a sample, and returns how long it took.
pub(crate) struct Contender<'a> {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) run: Box<dyn FnMut(&Sample) -> Duration + 'a>,
}

impl<'a> Contender<'a> {
    pub(crate) fn new(
        name: impl Into<String>,
        kind: Kind,
        run: impl FnMut(&Sample) -> Duration + 'a,
    ) -> Self {
        Self { name: name.into(), kind, run: Box::new(run) }
    }
}

/// The number of samples, and of elements in each.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) rounds: usize,
    pub(crate) elements: usize,
    /// The number of elements in the preceding round, which is not timed.
    pub(crate) untimed: usize,
}

/// Nanoseconds per element of each contender in each round.
#[derive(Default)]
pub(crate) struct Results {
    times: Vec<(String, Vec<f64>)>,
}

impl Results {
    fn of(&self, name: &str) -> &[f64] {
        &self.times.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no contender {name}")).1
    }

    /// Returns the nanoseconds per element, the median of all rounds.
    pub(crate) fn ns(&self, name: &str) -> f64 {
        median(self.of(name).to_vec())
    }

    /// Returns how many times as long `a` takes as `b`: the median of the ratios in the same rounds.
    pub(crate) fn ratio(&self, a: &str, b: &str) -> f64 {
        median(self.of(a).iter().zip(self.of(b)).map(|(a, b)| a / b).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs all in turn, each with its own elements. Each runs once before it is timed: otherwise it would pay for the caches and page tables
/// that the previous one left. The first round warms up.
pub(crate) fn race(
    title: &str,
    contenders: &mut [Contender<'_>],
    traffic: &mut Traffic,
    rounds: Rounds,
) -> Results {
    let mut times = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds.rounds {
        for (i, contender) in contenders.iter_mut().enumerate() {
            (contender.run)(&traffic.sample(contender.kind, rounds.untimed));
            let sample = traffic.sample(contender.kind, rounds.elements);
            let took = (contender.run)(&sample);
            if round > 0 {
                times[i].push(took.as_secs_f64() * 1e9 / rounds.elements as f64);
            }
        }
    }
    println!("\n{title:<62} {:>9} {:>9}", "ns median", "fastest");
    for (contender, times) in contenders.iter().zip(&times) {
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        println!("  {:<60} {:>9.1} {fastest:>9.1}", contender.name, median(times.clone()));
    }
    Results { times: contenders.iter().map(|c| c.name.clone()).zip(times).collect() }
}

/// Runs the same contenders one by one under criterion, which stores its results and compares them with the previous run. An iteration is
/// one element.
pub(crate) fn with_criterion(
    criterion: &mut Criterion,
    title: &str,
    contenders: &mut [Contender<'_>],
    traffic: &mut Traffic,
    rounds: Rounds,
) {
    let mut group = criterion.benchmark_group(title);
    group.throughput(Throughput::Elements(1));
    for contender in contenders {
        group.bench_function(&contender.name, |bencher| {
            bencher.iter_custom(|iterations| {
                let (mut left, mut took) = (iterations as usize, Duration::ZERO);
                while left > 0 {
                    let elements = left.min(rounds.elements);
                    took += (contender.run)(&traffic.sample(contender.kind, elements));
                    left -= elements;
                }
                took
            });
        });
    }
    group.finish();
}
