// SPDX-License-Identifier: GPL-3.0-or-later
//! The aims of a fleet, measured on real daemons and real engines: eight milters and two aggregators with default settings, on three nodes
//! of NATS or on PostgreSQL. Two of the milters have a partial copy.
//!
//!     make fleet [MESSAGES=200000] [SEED=1] [ROWS="nats postgres times-nats times-postgres speed"]
//!
//! `nats` and `postgres`: messages through all milters while every two seconds something dies by SIGKILL: a server of the log, an
//! aggregator, a milter, connections. In the end all full copies have the counts that milters answered; partial ones hold the part of them
//! that docs/decisions/partial-copy.md promises, and get all of them when they ask. `times-...`: the time until others know a count, also
//! right after a kill; whether a message waits meanwhile; and the cost of an idle fleet. `speed`: signatures a second.
//!
//! Without `FULL` in the environment the first two are shortened. A wrong count or a row that fails is an error; a missed time is only
//! printed, since it depends on the machine as well.

mod kills;
mod members;
mod partial;
mod times;
mod traffic;

use crate::nats::speed;
use std::time::{Duration, Instant};

/// The scale of a run.
struct Scale {
    messages: usize,
    /// The minimum number of kills, and the time between them.
    kills: usize,
    pause: Duration,
    seed: u64,
}

/// Whether an aim was reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
    /// A count is wrong.
    Wrong,
    Skipped,
}

/// A line of the table.
struct Line {
    what: String,
    aim: String,
    measured: String,
    kept: Kept,
}

impl Line {
    fn new(what: impl Into<String>, aim: &str, measured: impl Into<String>, kept: Kept) -> Self {
        Self { what: what.into(), aim: aim.to_owned(), measured: measured.into(), kept }
    }

    /// A time, or another figure that depends on the machine.
    fn timed(what: impl Into<String>, aim: &str, measured: impl Into<String>, kept: bool) -> Self {
        Self::new(what, aim, measured, if kept { Kept::Yes } else { Kept::No })
    }

    /// The engine is missing here, and has logged that.
    fn skipped(what: impl Into<String>) -> Self {
        Self::new(what, "", "the engine cannot be had here", Kept::Skipped)
    }

    fn print(&self) {
        let word = match self.kept {
            Kept::Yes => "kept",
            Kept::No => "not kept",
            Kept::Wrong => "WRONG",
            Kept::Skipped => "skipped",
        };
        println!("| {} | {} | {} | {word} |", self.what, self.aim, self.measured);
    }
}

/// Rows that are measured together: their name, whether the short run includes them, and their function.
type Row = (&'static str, bool, fn(&Scale) -> Vec<Line>);

const ROWS: [Row; 5] = [
    ("nats", true, kills::on_nats),
    ("postgres", true, kills::on_postgres),
    ("times-nats", false, times::on_nats),
    ("times-postgres", false, times::on_postgres),
    ("speed", false, signatures),
];

/// A number from the environment.
fn given(name: &str, default: usize) -> usize {
    std::env::var(name).ok().filter(|value| !value.is_empty()).map_or(default, |value| value.parse().unwrap())
}

#[test]
fn aims_are_reached() {
    let full = std::env::var_os("FULL").is_some();
    let rows = std::env::var("ROWS").unwrap_or_default();
    let names: Vec<_> = rows.split_whitespace().collect();
    let seed = given("SEED", 1) as u64;
    let scale = if full {
        Scale { messages: given("MESSAGES", 200_000), kills: 10, pause: Duration::from_secs(2), seed }
    } else {
        Scale { messages: given("MESSAGES", 2000), kills: 8, pause: Duration::from_secs(1), seed }
    };
    let mut lines = Vec::new();
    for (name, short, row) in ROWS {
        let is_asked = if names.is_empty() { short || full } else { names.contains(&name) };
        if !is_asked {
            continue;
        }
        let began = Instant::now();
        let scale = &scale;
        let made = std::thread::scope(|scope| scope.spawn(|| row(scale)).join());
        let made =
            made.unwrap_or_else(|_| vec![Line::new(name, "", "the row failed; see above", Kept::Wrong)]);
        made.iter().for_each(Line::print);
        println!("({name}: {:.0} s)", began.elapsed().as_secs_f64());
        lines.extend(made);
    }
    println!("\n| what | aim | measured | |\n|---|---|---|---|");
    lines.iter().for_each(Line::print);
    assert!(lines.iter().all(|line| line.kept != Kept::Wrong), "a count is wrong, or a row failed");
}

/// The measurement of `make bench-log`.
fn signatures(_: &Scale) -> Vec<Line> {
    let what = "signatures through three nodes, `sync_interval: always`, read by an aggregator";
    let Some(rate) = speed::rate() else { return vec![Line::skipped(what)] };
    let measured = format!("{rate:.0} a second");
    vec![Line::timed(what, ">= 300000 a second", measured, rate >= 300_000.0)]
}
