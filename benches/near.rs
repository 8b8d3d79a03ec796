// SPDX-License-Identifier: GPL-3.0-or-later
//! What other schemes than the shipped one would find: the sweep of docs/evaluation.md.
//!
//!     CORPUS=DIR cargo bench --bench near
//!
//! Each scheme under several keys, which draw other passages, since one key's false joins are a matter of luck. No daemon, and
//! no doubts about what comes with ever other text: what is counted is whether so many slots agree.

#[path = "evaluate/corpus.rs"]
mod corpus;

use bulkmark::mail::RawMessage;
use bulkmark::signature::near::{Scheme, under};
use bulkmark::signature::{FederationKey, Signature};
use corpus::Corpus;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Keys under which each scheme is tried.
const KEYS: u32 = 8;

/// Messages that are made replicas of.
const MUTATED: usize = 40;

/// Mutations that are hard: they leave least of the text as it was.
const HARD: [&str; 5] = ["prepend-line", "append-line", "typo", "synonym", "heavy"];

fn main() {
    let Some(corpus) = std::env::var_os("CORPUS").map(PathBuf::from) else {
        println!("near: skipped, no CORPUS is given; see docs/evaluation.md");
        return;
    };
    let corpus = Corpus::read(&corpus);
    let work = tempfile::tempdir().unwrap();
    let (names, replicas) = corpus.replicas(MUTATED, work.path());
    let read = |files: &[PathBuf]| files.iter().map(|file| message(file)).collect::<Vec<_>>();
    let mail = Mail {
        ham: read(&corpus.ham),
        campaigns: corpus.campaigns.iter().map(|files| read(files)).collect(),
        alone: read(&corpus.alone),
        replicas: HARD
            .map(|hard| names.iter().position(|n| n == hard).map_or_else(Vec::new, |n| read(&replicas[n]))),
    };
    println!(
        "{:<44} {:>6} {:>10} {:>6} {}",
        "slots x probes, agreeing; passage; last",
        "ham",
        "campaigns",
        "whole",
        HARD.map(|name| format!("{name:>13}")).concat()
    );
    let shipped = Scheme::SHIPPED;
    let mut row = |what: &str, scheme: Scheme, agreeing| mail.row(what, &scheme, agreeing);
    row("shipped", shipped, 2);
    for (slots, probes, agreeing) in
        [(8, 1, 2), (8, 1, 3), (8, 3, 3), (6, 4, 3), (5, 2, 2), (5, 8, 2), (4, 4, 2), (5, 4, 1), (5, 4, 3)]
    {
        row("slots and probes", Scheme { slots, probes, ..shipped }, agreeing);
    }
    for (run, runs, gap, window) in [
        (3, 1, 0, 1),
        (6, 1, 0, 1),
        (3, 2, 4, 8),
        (4, 2, 4, 8),
        (3, 3, 3, 3),
        (2, 3, 2, 4),
        (2, 4, 4, 6),
        (1, 8, 1, 2),
    ] {
        row("passage", Scheme { run, runs, gap, window, ..shipped }, 2);
    }
    for last in [20, 10, 5, 1] {
        row("weight of the last passage", Scheme { last, ..shipped }, 2);
    }
}

fn message(file: &Path) -> RawMessage {
    RawMessage::from_bytes(&std::fs::read(file).unwrap()).unwrap_or_default()
}

struct Mail {
    ham: Vec<RawMessage>,
    campaigns: Vec<Vec<RawMessage>>,
    alone: Vec<RawMessage>,
    replicas: [Vec<RawMessage>; 5],
}

impl Mail {
    /// One line: means over all keys.
    fn row(&self, what: &str, scheme: &Scheme, agreeing: usize) {
        let (mut ham, mut joined, mut whole, mut hard) = (0, 0, 0, [0; 5]);
        for n in 0..KEYS {
            let key =
                FederationKey::from_bytes(format!("the key number {n} of the sweep").as_bytes()).unwrap();
            let mut seen = Seen { key, scheme, agreeing, all: HashSet::new() };
            ham += self.ham.iter().filter(|message| seen.joins(message)).count();
            for campaign in &self.campaigns {
                let found = campaign.iter().map(|message| seen.joins(message)).collect::<Vec<_>>();
                joined += found[1..].iter().filter(|&&joined| joined).count();
                whole += usize::from(found[1..].iter().all(|&joined| joined));
            }
            self.alone.iter().for_each(|message| _ = seen.joins(message));
            for (hard, replicas) in hard.iter_mut().zip(&self.replicas) {
                *hard += replicas.iter().filter(|message| seen.joins(message)).count();
            }
        }
        let keys = f64::from(KEYS);
        let percent = |n: usize, of: usize| 100.0 * n as f64 / keys / of.max(1) as f64;
        let later: usize = self.campaigns.iter().map(|campaign| campaign.len() - 1).sum();
        let Scheme { slots, probes, run, runs, gap, window, last } = scheme;
        let name = format!(
            "{slots}x{probes}, {agreeing}; {runs} runs of {run}, {gap}+{window}; {last}/{}",
            Scheme::FULL
        );
        let hard: String = hard
            .iter()
            .zip(&self.replicas)
            .map(|(&n, of)| format!("{:>13.1}", percent(n, of.len())))
            .collect();
        println!(
            "{name:<44} {:>6.1} {:>10.1} {:>6.1} {hard}  {what}",
            ham as f64 / keys,
            percent(joined, later),
            percent(whole, self.campaigns.len())
        );
    }
}

struct Seen<'a> {
    key: FederationKey,
    scheme: &'a Scheme,
    agreeing: usize,
    all: HashSet<Signature>,
}

impl Seen<'_> {
    /// Whether something like it was seen before; it is seen now.
    fn joins(&mut self, message: &RawMessage) -> bool {
        let near = under(message, &self.key, self.scheme);
        let known = |signature: &Signature| self.all.contains(signature);
        let agree = near
            .slots
            .iter()
            .filter(|slot| slot.passages.iter().any(|(_, signature)| known(signature)))
            .count();
        let joins = agree >= self.agreeing || near.things.iter().any(|(_, signature)| known(signature));
        self.all.extend(near.reported());
        joins
    }
}
