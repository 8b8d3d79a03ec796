// SPDX-License-Identifier: GPL-3.0-or-later
//! The simulation study: the same on any machine, and right where there is a closed form. The 156 published means are
//! compared by `make study`.

use bulkmark::simulate::{Configuration, Experiment, Extension, compare, published, run};

fn experiment(number: &str, m: u32, k: usize) -> Configuration {
    Configuration { experiment: number.parse::<Experiment>().unwrap(), m, k }
}

#[test]
fn a_seed_gives_the_same_results_in_any_company() {
    let [a, b] = [experiment("4", 80_000, 4), experiment("1", 80_000, 6)];
    let together = run(&[a, b], 3, 7, &|| ());
    assert_eq!(together[2..], run(&[b], 3, 7, &|| ()));
    assert_ne!(together[2..], run(&[b], 3, 8, &|| ()));
}

/// Equation 1 of the paper: a key counts wrongly in the intuitive extension when others hit all of its cells.
#[test]
fn the_intuitive_extension_has_a_closed_form() {
    for k in [4, 6, 8] {
        let outcome = run(&[experiment("2", 80_000, k)], 6, 1, &|| ())[0];
        assert_eq!(outcome.extension, Extension::Intuitive);
        let k = k as f64;
        let expected = (1.0 - (-k * 10_000.0 / 80_000.0).exp()).powf(k);
        assert!((outcome.mean / expected - 1.0).abs() < 0.15, "k = {k}: {} for {expected}", outcome.mean);
    }
}

/// The paper's main finding, and the rule of comparison: ours agree, and ones that are off do not.
#[test]
fn the_refined_extension_counts_better_and_deviations_are_found() {
    let mut outcomes = run(&[experiment("6", 80_000, 6)], 8, 1, &|| ());
    assert!(outcomes[1].mean < outcomes[0].mean / 2.0);
    assert!(compare(&outcomes).iter().all(|c| c.agrees) && compare(&outcomes).len() == 2);
    outcomes[1].mean *= 1.3;
    assert!(!compare(&outcomes)[1].agrees);
    assert_eq!(published().count(), 156);
}
