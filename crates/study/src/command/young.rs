// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark-study young`

use bulkmark_study::reporters::{Day, HOURS, Seeds, young};
use std::process::ExitCode;

/// Simulate a new site, on which twelve accounts of one owner vouch for each other by mail that only they get.
///
/// Prints the weights of honest people and of these accounts after hours and days, and the wrong verdicts before and after the accounts
/// begin to lie. docs/trust.md explains the tables.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// People of the site.
    #[arg(long, value_name = "PEOPLE", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(50..=100_000))]
    people: u32,
    /// The seed of the random numbers.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
}

/// The beginning of trust.
const SEEDS: [(&str, Seeds); 4] = [
    ("nothing", Seeds { vouched: 0, trapped: 0 }),
    ("20 vouched for", Seeds { vouched: 20, trapped: 0 }),
    ("traps for 10 %", Seeds { vouched: 0, trapped: 10 }),
    ("traps for 30 %", Seeds { vouched: 0, trapped: 30 }),
];

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let all = SEEDS.map(|(name, seeds)| (name, young(args.people, seeds, args.seed)));
    println!("after so many hours: mean weight of honest people / of the twelve accounts, trusted reporters");
    println!("{:<7}{}", "", all.each_ref().map(|(name, _)| format!("{name:>20}")).concat());
    for (at, hours) in HOURS.iter().enumerate() {
        let cell = |weights: &bulkmark_study::reporters::Weights| {
            format!(
                "{:>20}",
                format!("{:.2} / {:.2} {:>4}", weights.honest, weights.liars, weights.established)
            )
        };
        println!("{hours:<7}{}", all.each_ref().map(|(_, (_, weights))| cell(&weights[at])).concat());
    }
    println!("\nham called spam / spam missed, percent of copies");
    for (from, to) in [(1, 2), (3, 5), (6, 10), (11, 20), (21, 30)] {
        let row = all.each_ref().map(|(_, (days, _))| {
            let sum = Day::sum(&days[from - 1..to]);
            format!("{:>20}", format!("{:.2} / {:.1}", sum.false_spam(), sum.missed()))
        });
        println!("{:<7}{}", format!("{from}-{to}"), row.concat());
    }
    Ok(ExitCode::SUCCESS)
}
