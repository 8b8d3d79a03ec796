// SPDX-License-Identifier: GPL-3.0-or-later
//! What reaches the threshold and should, and what reaches it and should not: by the milter, over its socket.
//!
//!     make evaluate CORPUS=DIR [KEYS=3] [SEEDS=3] [MUTATE=12]
//!
//! docs/evaluation.md says what DIR must hold, and what is measured. Each section sends streams of messages, each to a milter
//! that starts with an empty ledger, under several federation keys, and from the network that it came from. Of the environment there are also `ONLY` (names of sections,
//! with commas between them), `BINARY` (another program than the one built here), and `EXAMPLES` (a directory for the mail
//! that the sections letters, innocent and disguises make).

#[path = "../../crates/study/src/labelled.rs"]
#[allow(unreachable_pub, dead_code, reason = "it is a part of the studies, too")]
mod labelled;

mod client;
mod company;
mod copies;
mod counts;
mod disguises;
mod draft;
mod figures;
mod generated;
mod innocent;
mod labelled_mail;
mod letters;
mod lists;
mod milter;
mod pyzor;
mod runs;
mod site;
mod stream;
mod text;

use runs::Bench;
use std::time::Instant;

/// A section, by its name for `ONLY`. An error says why there is nothing to measure.
type Section = (&'static str, fn(&Bench) -> Result<(), String>);

const SECTIONS: [Section; 9] = [
    ("labelled", labelled_mail::measure),
    ("lists", lists::measure),
    ("company", company::measure),
    ("evasions", copies::evasions),
    ("mutations", copies::mutations),
    ("letters", letters::measure),
    ("site", site::measure),
    ("innocent", innocent::measure),
    ("disguises", disguises::measure),
];

fn main() {
    let Some(bench) = Bench::from_environment() else {
        println!("evaluate: skipped, no CORPUS is given; see docs/evaluation.md");
        return;
    };
    let only = std::env::var("ONLY").unwrap_or_default();
    let start = Instant::now();
    println!("{}, {} keys; at 20: counted 20 or more", bench.version(), bench.keys.len());
    for (name, measure) in SECTIONS {
        if !only.is_empty() && !only.split(',').any(|one| one == name) {
            continue;
        }
        let start = Instant::now();
        println!();
        match measure(&bench) {
            Ok(()) => println!("({:.0} s)", start.elapsed().as_secs_f64()),
            Err(why) => println!("{name}: skipped, {why}"),
        }
    }
    println!("\nall of it took {:.0} s", start.elapsed().as_secs_f64());
}
