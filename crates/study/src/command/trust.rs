// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark-study trust`

use bulkmark_study::reporters::{Day, Lie, Runs, Scenario, TURN, plot};
use std::path::PathBuf;
use std::process::ExitCode;

/// Simulate a site whose people report spam, with liars among them, without trust and with it.
///
/// Prints, for four periods, the shares of ham called spam and of spam missed; the weights of people; and the wrong verdicts that
/// patient liars spared others before they lied, and caused afterwards. docs/trust.md explains the tables.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// People of the site.
    #[arg(long, value_name = "PEOPLE", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(50..=100_000))]
    people: u32,
    /// Days that are simulated; patient liars begin to lie on day 31.
    #[arg(long, value_name = "DAYS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(10..=1_000))]
    days: u32,
    /// Honest people for whom the administrator vouches.
    #[arg(long, value_name = "PEOPLE", default_value_t = 0)]
    vouched: u32,
    /// Percentage of spam mailings that reach a trap of the site.
    #[arg(long, value_name = "PERCENT", default_value_t = 10)]
    trapped: u32,
    /// Number of runs with different seeds, whose mean is printed.
    #[arg(long, value_name = "RUNS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,
    /// Draw the days of 30 % liars into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// The last days of the periods.
const PERIODS: [u32; 4] = [10, TURN, 40, 60];

/// The results of a scenario, by days.
struct Outcome {
    scenario: Scenario,
    plain: Vec<Day>,
    trust: Vec<Day>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runs = Runs {
        people: args.people,
        days: args.days,
        vouched: args.vouched,
        trapped: args.trapped,
        runs: args.runs,
    };
    let outcome = |scenario: Scenario| {
        let [plain, trust] = [false, true].map(|trust| scenario.run(runs, trust));
        Outcome { scenario, plain, trust }
    };
    let outcomes: Vec<_> = Scenario::all().into_iter().map(outcome).collect();
    table("ham called spam, percent of copies", &outcomes, args.days, |day| {
        format!("{:.2}", day.false_spam())
    });
    table("spam missed, percent of copies", &outcomes, args.days, |day| format!("{:.1}", day.missed()));
    table("of these, called spam before", &outcomes, args.days, |day| format!("{:.1}", day.taken_back()));
    weights(&outcomes, args.days);
    patience(&outcomes, runs);
    if let Some(path) = &args.plot {
        let drawn = |outcome: &&Outcome| {
            let Scenario { liars, eager, accounts, .. } = outcome.scenario;
            (liars == 0 || liars == 30) && !eager && accounts.is_none()
        };
        let of = |outcome: &Outcome| (outcome.scenario, outcome.plain.clone(), outcome.trust.clone());
        let drawn: Vec<_> = outcomes.iter().filter(drawn).map(of).collect();
        plot(&drawn, path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The periods that there are, as their first and last day, counted from 1.
fn periods(days: u32) -> Vec<(u32, u32)> {
    let firsts = [0].into_iter().chain(PERIODS);
    let all = firsts.zip(PERIODS).map(|(before, last)| (before + 1, last.min(days)));
    all.filter(|(first, last)| first <= last).collect()
}

fn of(days: &[Day], (first, last): (u32, u32)) -> Day {
    Day::sum(&days[first as usize - 1..last as usize])
}

fn table(title: &str, outcomes: &[Outcome], days: u32, cell: fn(&Day) -> String) {
    let periods = periods(days);
    let names: String =
        periods.iter().map(|(first, last)| format!("{:>8}", format!("{first}-{last}"))).collect();
    let width = 8 * periods.len();
    println!("{title}\n{:<28}{:>width$}{:>width$}", "", "without trust", "with trust");
    println!("{:<28}{names}{names}", "days");
    for Outcome { scenario, plain, trust } in outcomes {
        let row = |days: &[Day]| -> String {
            periods.iter().map(|&period| format!("{:>8}", cell(&of(days, period)))).collect()
        };
        println!("{:<28}{}{}", scenario.name(), row(plain), row(trust));
    }
    println!();
}

fn weights(outcomes: &[Outcome], days: u32) {
    let periods = periods(days);
    println!("mean weight at the end of the period, with trust: honest people / liars");
    let names: String = periods.iter().map(|(_, last)| format!("{:>14}", format!("day {last}"))).collect();
    println!("{:<28}{names}", "");
    for Outcome { scenario, trust, .. } in outcomes {
        let row = periods.iter().map(|&period| {
            let Day { honest, liars, .. } = of(trust, period);
            format!("{:>14}", format!("{honest:.2} / {liars:.2}"))
        });
        println!("{:<28}{}", scenario.name(), row.collect::<String>());
    }
    println!();
}

/// Compared with the same people without reports: how many wrong verdicts fewer before the lies, and how many more afterwards.
fn patience(outcomes: &[Outcome], runs: Runs) {
    if runs.days <= TURN {
        return;
    }
    println!(
        "wrong verdicts by patient liars, in copies for each of them in a run: spared in 30 days, caused in the next ten, and in all after"
    );
    println!("{:<28}{:>30}{:>30}", "", "without trust", "with trust");
    for Outcome { scenario, plain, trust } in outcomes {
        if !matches!(scenario.lie, Lie::Patient(_)) {
            continue;
        }
        let liars = f64::from(runs.people * scenario.liars / 100 * runs.runs);
        let row = [(false, plain), (true, trust)].map(|(with, days)| {
            let silent = Scenario { lie: Lie::Silent, ..*scenario }.run(runs, with);
            let more = |period| {
                let [lied, silent] = [days, &silent].map(|days| of(days, period).wrong() as f64);
                (lied - silent) / liars
            };
            let until = runs.days.min(TURN + 10);
            let (spared, soon) = (-more((1, TURN)), more((TURN + 1, until)));
            format!("{spared:>10.1}{soon:>10.1}{:>10.1}", more((TURN + 1, runs.days)))
        });
        println!("{:<28}{}", scenario.name(), row.concat());
    }
}
