// SPDX-License-Identifier: GPL-3.0-or-later
//! The aims of a fleet, measured on real daemons and real engines: eight milters and two aggregators of default settings, on
//! three nodes of NATS or on PostgreSQL. Two of the milters hold bulk alone.
//!
//!     make fleet [MESSAGES=200000] [SEED=1] [ROWS="nats postgres times-nats times-postgres speed"]
//!
//! `nats` and `postgres`: messages through all milters while every two seconds something dies by SIGKILL: a server of the log, an
//! aggregator, a milter, connections. In the end all holders count what this program knows that was answered; partial ones hold of it what
//! docs/decisions/partial-copy.md promises, and are told all of it when they ask. `times-...`: how long it takes until others know a count, also
//! when somebody just died; whether a message waits meanwhile; and what an idle fleet costs. `speed`: signatures a second.
//!
//! Without `FULL` in the environment the first two are done in short. A wrong count or a row that fails is an error; a missed time is
//! only printed, since it says as much of the machine.

mod kills;
mod members;
mod partial;
mod times;
mod traffic;

use crate::nats::speed;
use std::time::{Duration, Instant};

/// How much is done.
struct Scale {
    messages: usize,
    /// Kills at least, and the time between them.
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

    /// A time, or another figure that the machine has its part in.
    fn timed(what: impl Into<String>, aim: &str, measured: impl Into<String>, kept: bool) -> Self {
        Self::new(what, aim, measured, if kept { Kept::Yes } else { Kept::No })
    }

    /// The engine cannot be had here, which it said.
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

/// Rows that are made together: their name, whether they are made in short, too, and how.
type Row = (&'static str, bool, fn(&Scale) -> Vec<Line>);

const ROWS: [Row; 5] = [
    ("nats", true, kills::on_nats),
    ("postgres", true, kills::on_postgres),
    ("times-nats", false, times::on_nats),
    ("times-postgres", false, times::on_postgres),
    ("speed", false, signatures),
];

/// A number of the environment.
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

/// The measure of `make bench-log`.
fn signatures(_: &Scale) -> Vec<Line> {
    let what = "signatures through three nodes, `sync_interval: always`, read by an aggregator";
    let Some(rate) = speed::rate() else { return vec![Line::skipped(what)] };
    let measured = format!("{rate:.0} a second");
    vec![Line::timed(what, ">= 300000 a second", measured, rate >= 300_000.0)]
}
