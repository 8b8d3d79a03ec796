// SPDX-License-Identifier: GPL-3.0-or-later
//! One round: draw hashes, keys and numbers, insert, and see which counts are wrong.

use super::experiment::{Experiment, KEYS, Order};
use super::universal::{PRIME, Universal};
use super::wide::Wide;
use crate::random::below;
use bulkmark_filter::internals::{Group, add_intuitive, add_refined, count};
use rand_xoshiro::rand_core::Rng;
use std::collections::HashSet;
use std::fmt;

/// The two counting extensions of a Bloom filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extension {
    /// Every cell of a key is raised.
    Intuitive,
    /// Only the smallest ones are (H1).
    Refined,
}

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Intuitive => "intuitive",
            Self::Refined => "refined",
        })
    }
}

/// The share of wrong counts in one round.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// With the intuitive extension.
    pub intuitive: f64,
    /// With the refined one.
    pub refined: f64,
}

/// Inserts the keys of `experiment` into filters of `m` cells with `k` hashes, both extensions with the same hashes and keys, and
/// returns how often they count wrongly (section 5).
#[must_use]
pub fn round(experiment: Experiment, m: u32, k: usize, random: &mut dyn Rng) -> Rates {
    let hashes: Vec<_> = (0..k).map(|_| Universal::draw(random, m)).collect();
    let cells: Vec<u32> =
        distinct_keys(random).iter().flat_map(|&key| hashes.iter().map(move |hash| hash.cell(key))).collect();
    let times = experiment.draw_times(random);
    let of =
        |i: usize| cells[i * k..(i + 1) * k].iter().map(|&cell| Group { block: cell as usize, cells: &[0] });

    // The order makes no difference to the intuitive extension: sums commute.
    let mut intuitive = Wide::new(m as usize);
    for (i, &c) in times.iter().enumerate() {
        add_intuitive(&mut intuitive, of(i), c);
    }
    let mut refined = Wide::new(m as usize);
    match experiment.order() {
        Order::InARow => times.iter().enumerate().for_each(|(i, &c)| {
            add_refined(&mut refined, of(i), c);
        }),
        order => {
            for i in sequence(&times, order, random) {
                add_refined(&mut refined, of(i.into()), 1);
            }
        }
    }
    let rate = |filter: &Wide| {
        let wrong = (0..KEYS).filter(|&i| count(filter, of(i)) != times[i]);
        if experiment.weighs_insertions() {
            let all: u32 = times.iter().sum();
            f64::from(wrong.map(|i| times[i]).sum::<u32>()) / f64::from(all)
        } else {
            wrong.count() as f64 / KEYS as f64
        }
    };
    Rates { intuitive: rate(&intuitive), refined: rate(&refined) }
}

/// Keys from 1 to p - 1. One double among them would show as a wrong count.
fn distinct_keys(random: &mut dyn Rng) -> Vec<u32> {
    let mut seen = HashSet::with_capacity(KEYS);
    let mut keys = Vec::with_capacity(KEYS);
    while keys.len() < KEYS {
        let key = 1 + below(random, PRIME - 1);
        if seen.insert(key) {
            keys.push(key);
        }
    }
    keys
}

/// The keys, by number, in the order of their insertions.
fn sequence(times: &[u32], order: Order, random: &mut dyn Rng) -> Vec<u16> {
    let keys = || (0..).zip(times);
    if order == Order::Rounds {
        let rounds = times.iter().max().copied().unwrap_or(0);
        return (0..rounds)
            .flat_map(|round| keys().filter(move |(_, c)| **c > round).map(|(i, _)| i))
            .collect();
    }
    let mut all: Vec<u16> = keys().flat_map(|(i, &c)| std::iter::repeat_n(i, c as usize)).collect();
    if order == Order::Shuffled {
        // Fisher-Yates, as in the paper.
        for i in (1..u32::try_from(all.len()).unwrap_or(u32::MAX)).rev() {
            all.swap(i as usize, below(random, i + 1) as usize);
        }
    }
    all
}
