// SPDX-License-Identifier: GPL-3.0-or-later
//! Attacks on running daemons: each attempt, its result, and whether SECURITY.md promises better.
//!
//!     make attack [ROWS="1 2 ..."] [BINARY=/path/to/bulkmark]
//!
//! The attackers have their own HTTP client and milter client, and know docs/protocol.md and docs/filter.md. They find a signature's cells
//! with the crate bulkmark-filter. Without `FULL` in the environment the short attacks run, on small ledgers; with it all run at an
//! attacker's full scale, which needs a release build.

#[path = "../../../crates/study/src/partners/aim.rs"]
#[allow(unreachable_pub, reason = "it is a part of the studies, too")]
mod cells;

mod aimed;
mod bank;
pub(crate) mod client;
mod files;
mod flood;
mod guess;
mod influence;
mod log;
mod pool;
mod register;
mod senders;
mod stranger;
mod streams;
mod upstream;

use std::time::Instant;

/// The result of an attack.
struct Outcome {
    /// The attempt.
    tried: String,
    /// Its effect.
    came: String,
    /// Whether the effect stays within SECURITY.md's promise; `None` if this machine lacks something.
    kept: Option<bool>,
}

impl Outcome {
    fn new(tried: impl Into<String>, came: impl Into<String>, kept: bool) -> Self {
        Self { tried: tried.into(), came: came.into(), kept: Some(kept) }
    }

    /// The attack did not run.
    fn skipped(why: &str) -> Self {
        assert!(std::env::var_os("CI").is_none(), "this must not be skipped in CI: {why}");
        Self { tried: "skipped".to_owned(), came: why.to_owned(), kept: None }
    }
}

/// The scale of an attack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// A small ledger, for any build.
    Small,
    /// An attacker's full scale, for a release build.
    Full,
}

/// An attack: its name, whether it has a short form, and its function.
type Row = (&'static str, bool, fn(Scale) -> Outcome);

const ROWS: [Row; 38] = [
    ("1", true, influence::cover),
    ("1k", false, influence::cover_together),
    ("2", true, influence::permute),
    ("3", true, influence::wait_for_windows),
    ("4", false, bank::same_words),
    ("4b", false, bank::some_words),
    ("4c", false, bank::pretended_networks),
    ("5", true, files::links),
    ("6", false, streams::never_read),
    ("7", false, guess::enumerate),
    ("8", true, streams::wrong_tokens),
    ("9", false, streams::many_streams),
    ("9b", false, streams::silent_connections),
    ("10", false, flood::distinct),
    ("11", false, upstream::empty_frames),
    ("12", false, pool::large_messages),
    ("13a", false, log::alternate),
    ("13b", true, log::quoted_canary),
    ("13c", true, upstream::escapes),
    ("13d", true, upstream::redirect),
    ("13e", true, upstream::password),
    ("13f", true, log::imitated_fields),
    ("13g", false, files::modes),
    ("13i", false, pool::idle_connections),
    ("14", true, stranger::header_shield),
    ("14b", true, stranger::packets),
    ("15", false, stranger::pictures),
    ("16", true, stranger::trap_domain),
    ("17", true, stranger::names),
    ("18", true, stranger::one_provider),
    ("19", true, stranger::page_streams),
    ("20", true, stranger::vouching_accounts),
    ("21", true, register::made_up_sites),
    ("22", true, stranger::hidden_host),
    ("23", false, flood::aimed_user_reports),
    ("24", false, flood::empty_batches),
    ("25", true, senders::many_senders),
    ("39", true, aimed::hidden),
];

#[test]
fn promises_are_kept() {
    let scale = if std::env::var_os("FULL").is_some() { Scale::Full } else { Scale::Small };
    let rows = std::env::var("ROWS").unwrap_or_default();
    let names: Vec<_> = rows.split_whitespace().collect();
    let is_asked = |name: &str, short: bool| {
        if names.is_empty() { short || scale == Scale::Full } else { names.contains(&name) }
    };
    let mut broken = Vec::new();
    for (name, short, attack) in ROWS {
        if !is_asked(name, short) {
            continue;
        }
        let began = Instant::now();
        let outcome = std::thread::spawn(move || attack(scale)).join();
        let Outcome { tried, came, kept } =
            outcome.unwrap_or_else(|_| Outcome::new("the attack itself failed", "see above", false));
        let word = match kept {
            Some(true) => "kept",
            Some(false) => "BROKEN",
            None => "skipped",
        };
        if kept == Some(false) {
            broken.push(name);
        }
        println!("{name:<4}{word:<8}{tried} -> {came} ({:.0} s)", began.elapsed().as_secs_f64());
    }
    assert!(broken.is_empty(), "promises are broken by the attacks {}", broken.join(" "));
}
