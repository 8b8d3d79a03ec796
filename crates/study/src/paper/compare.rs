// SPDX-License-Identifier: GPL-3.0-or-later
//! Our means against the published ones.

use super::experiment::KEYS;
use super::published::{Published, published};
use super::run::Outcome;

/// Standard errors by which two means may differ. With 156 means, one of 4 can be expected once in 100 studies.
const TOLERANCE: f64 = 4.0;

/// The paper drew the numbers of insertions of experiments 4, 5 and 8 once for all rounds, so its means of these carry the chance
/// of that one draw: up to 3.5 % below fresh draws (as its intuitive rows show, which have a closed form).
const DRAWN_ONCE: f64 = 0.04;

/// One of our means beside the published one.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// Ours.
    pub ours: Outcome,
    /// Theirs.
    pub theirs: Published,
    /// The difference of the means, in standard errors of that difference.
    pub standard_errors: f64,
    /// Whether the difference is within four standard errors, and four per cent of the mean where the paper drew once.
    pub agrees: bool,
}

/// Compares the outcomes that the paper has a row for.
#[must_use]
pub fn compare(outcomes: &[Outcome]) -> Vec<Comparison> {
    let find = |theirs: Published| {
        let same = |o: &&Outcome| o.configuration == theirs.configuration && o.extension == theirs.extension;
        outcomes.iter().find(same).map(|ours| compare_one(*ours, theirs))
    };
    published().filter_map(find).collect()
}

fn compare_one(ours: Outcome, theirs: Published) -> Comparison {
    let error =
        variance_of_mean(ours.std_dev, ours.rounds) + variance_of_mean(theirs.std_dev, Published::ROUNDS);
    let difference = (ours.mean - theirs.mean).abs();
    let allowed = TOLERANCE * error.sqrt()
        + if ours.configuration.experiment.drew_once() { DRAWN_ONCE * theirs.mean } else { 0.0 };
    Comparison { ours, theirs, standard_errors: difference / error.sqrt(), agrees: difference <= allowed }
}

/// In few rounds, a rare event may not occur; its deviation is then taken as that of one wrong key in all rounds.
fn variance_of_mean(std_dev: f64, rounds: u64) -> f64 {
    let one_event = 1.0 / KEYS as f64 / (rounds as f64).sqrt();
    std_dev.max(one_event).powi(2) / rounds as f64
}
