// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark-study paper`

use super::format::Format;
use anyhow::Context;
use bulkmark_study::paper::{self, Comparison, Configuration, Experiment, HASH_NUMBERS, Outcome, Published};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;

/// Repeat the simulation study of Yan & Cho.
///
/// Eight experiments insert 10,000 keys into counting Bloom filters, with the intuitive and with the refined extension,
/// and report the share of wrong counts. With the same seed the results are the same on any machine.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The experiment, 1 to 8, or "all".
    #[arg(long, default_value = "all")]
    experiment: String,
    /// The number of cells; may be given more than once [default: those of the paper]
    #[arg(long, value_name = "CELLS", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    m: Vec<u32>,
    /// The number of hashes; may be given more than once [default: 4, 6 and 8]
    #[arg(long, value_name = "HASHES", value_parser = clap::value_parser!(u8).range(1..=64))]
    k: Vec<u8>,
    /// Rounds of each configuration, each with new hashes and keys.
    #[arg(long, default_value_t = Published::ROUNDS, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rounds: u64,
    /// The seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How the results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Print the paper's means beside ours; exit code 1 if one does not agree.
    #[arg(long)]
    compare: bool,
    /// Draw a figure for each experiment into this directory, as SVG.
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let configurations = configurations(args)?;
    let total = configurations.len() as u64 * args.rounds;
    let bar = ProgressBar::new(total).with_style(ProgressStyle::with_template(
        "{elapsed_precise} {wide_bar} {pos}/{len} rounds, {eta} left",
    )?);
    let outcomes = paper::run(&configurations, args.rounds, args.seed, &|| bar.inc(1));
    bar.finish_and_clear();
    let agree = if args.compare {
        let comparisons = paper::compare(&outcomes);
        print_comparisons(&comparisons, args.format);
        comparisons.iter().all(|c| c.agrees)
    } else {
        print_outcomes(&outcomes, args.format);
        true
    };
    if let Some(directory) = &args.plot {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        for file in paper::plot(&outcomes, directory)? {
            eprintln!("drew {}", file.display());
        }
    }
    Ok(if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn configurations(args: &Args) -> anyhow::Result<Vec<Configuration>> {
    let experiments: Vec<Experiment> = match &*args.experiment {
        "all" => Experiment::all().collect(),
        number => vec![number.parse().with_context(|| format!("--experiment {number}"))?],
    };
    let ks =
        if args.k.is_empty() { HASH_NUMBERS.to_vec() } else { args.k.iter().map(|&k| k.into()).collect() };
    let mut all = Vec::new();
    for experiment in experiments {
        let sizes = if args.m.is_empty() { experiment.filter_sizes() } else { args.m.clone() };
        for m in sizes {
            all.extend(ks.iter().map(|&k| Configuration { experiment, m, k }));
        }
    }
    Ok(all)
}

fn print_outcomes(outcomes: &[Outcome], format: Format) {
    match format {
        Format::Csv => println!("experiment,extension,m,k,rounds,mean,std_dev"),
        Format::Table => {
            println!(
                "{:>10} {:<9} {:>7} {:>2} {:>6} {:>10} {:>10}",
                "experiment", "extension", "m", "k", "rounds", "mean", "std. dev."
            );
        }
    }
    for Outcome { configuration: Configuration { experiment, m, k }, extension, rounds, mean, std_dev } in
        outcomes
    {
        match format {
            Format::Csv => println!("{experiment},{extension},{m},{k},{rounds},{mean:e},{std_dev:e}"),
            Format::Table => {
                println!(
                    "{experiment:>10} {extension:<9} {m:>7} {k:>2} {rounds:>6} {mean:>10.3e} {std_dev:>10.3e}"
                );
            }
        }
    }
}

fn print_comparisons(comparisons: &[Comparison], format: Format) {
    match format {
        Format::Csv => {
            println!(
                "experiment,extension,m,k,rounds,mean,std_dev,published_mean,published_std_dev,standard_errors,agrees"
            );
        }
        Format::Table => println!(
            "{:>10} {:<9} {:>7} {:>2} {:>10} {:>10} {:>10} {:>10} {:>6}",
            "experiment", "extension", "m", "k", "mean", "std. dev.", "paper", "std. dev.", "s.e."
        ),
    }
    for Comparison { ours, theirs, standard_errors, agrees } in comparisons {
        let Outcome { configuration: Configuration { experiment, m, k }, extension, rounds, mean, std_dev } =
            ours;
        match format {
            Format::Csv => println!(
                "{experiment},{extension},{m},{k},{rounds},{mean:e},{std_dev:e},{:e},{:e},{standard_errors:.2},{agrees}",
                theirs.mean, theirs.std_dev
            ),
            Format::Table => println!(
                "{experiment:>10} {extension:<9} {m:>7} {k:>2} {mean:>10.3e} {std_dev:>10.3e} {:>10.3e} {:>10.3e} \
                 {standard_errors:>6.1}{}",
                theirs.mean,
                theirs.std_dev,
                if *agrees { "" } else { "  DIFFERS" }
            ),
        }
    }
    if format == Format::Table {
        let agreeing = comparisons.iter().filter(|c| c.agrees).count();
        println!("{agreeing} of {} published means agree", comparisons.len());
    }
}
