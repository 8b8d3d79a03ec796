// SPDX-License-Identifier: GPL-3.0-or-later
//! Copies of one advertisement, each disguised: by evasions, and by the mutations of bulk senders. Each advertisement and
//! disguise has a ledger of its own.

use crate::client::{From, STRANGER};
use crate::counts::Share;
use crate::figures::{Wish, both, mean};
use crate::generated::python;
use crate::labelled::Labelled;
use crate::lists;
use crate::runs::{Bench, Job};
use crate::stream::{self, Message};
use std::path::{Path, PathBuf};

/// For each advertisement and disguise.
const COPIES: usize = 20;

pub(crate) fn evasions(bench: &Bench) -> Result<(), String> {
    bench.existing("streams/evade.py")?;
    measure(bench, "evasions", &lists::files(bench)?[0])
}

pub(crate) fn mutations(bench: &Bench) -> Result<(), String> {
    bench.existing("mutate.py")?;
    measure(bench, "mutations", Path::new(""))
}

fn measure(bench: &Bench, what: &str, sentences: &Path) -> Result<(), String> {
    bench.existing("manifest.tsv")?;
    let corpus = Labelled::read(&bench.corpus).map_err(|e| e.to_string())?;
    let files = corpus.alone.iter().filter_map(|file| file.strip_prefix(&bench.corpus).ok());
    let files: String = files.map(|file| format!("{}\n", file.display())).collect();
    let (bases, copies, out) = (bench.bases.to_string(), COPIES.to_string(), bench.work(what));
    let kinds = python("copies.py", &[&what, &bench.corpus, &sentences, &out, &bases, &copies], &files)?;
    println!(
        "{what}: {COPIES} copies of each base, a fresh ledger for each base and kind; {} keys, mean and worst",
        bench.keys.len()
    );
    println!(
        "{:<34}{:>6}{:>10}{:>10}{:>10}{:>10}{:>22}{:>10}",
        "", "bases", "joined, %", "worst", "largest", "worst", "refused, %: 1 network", "many"
    );
    for kind in kinds {
        let groups: Vec<Vec<Message>> =
            bases_of(&out.join(&kind)).iter().map(|d| stream::directory(d)).collect();
        // From one network, and each copy from another one.
        let [groups, many] = [|_| STRANGER, |copy: usize| From::Network(1000 + copy as u32)].map(|from| {
            let all = |group: &Vec<Message>| {
                group.iter().enumerate().map(|(copy, message)| message.clone().from(from(copy))).collect()
            };
            groups.iter().map(all).collect::<Vec<Vec<Message>>>()
        });
        if groups.is_empty() {
            println!("{kind:<34}{:>6}", 0);
            continue;
        }
        let counts_of = |groups: &[Vec<Message>]| {
            let jobs =
                bench.keys.iter().flat_map(|key| groups.iter().map(move |g| Job { key, parts: vec![g] }));
            bench.highest(&jobs.collect::<Vec<_>>())
        };
        let ((counts, refused), (_, refused_of_many)) = (counts_of(&groups), counts_of(&many));
        let by_key = |counts: &[Vec<u32>], figure: &dyn Fn(&[Vec<u32>]) -> f64| -> Vec<f64> {
            counts.chunks(groups.len()).map(figure).collect()
        };
        println!(
            "{kind:<34}{:>6}{}{}{:>22.1}{:>10.1}",
            groups.len(),
            both(&by_key(&counts, &joined), Wish::High, 1),
            both(&by_key(&counts, &largest), Wish::High, 1),
            mean(&by_key(&refused, &at_threshold)),
            mean(&by_key(&refused_of_many, &at_threshold)),
        );
    }
    Ok(())
}

/// The directories of all bases that can be disguised this way.
fn bases_of(kind: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(kind).into_iter().flatten();
    let mut bases: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    bases.sort();
    bases
}

/// The share of copies that were recognized.
fn joined(groups: &[Vec<u32>]) -> f64 {
    groups.iter().map(|copies| Share::joined(copies)).sum::<Share>().percent()
}

/// The share of copies at the threshold, of those from the twentieth on.
fn at_threshold(groups: &[Vec<u32>]) -> f64 {
    groups.iter().map(|copies| Share::at_threshold(copies)).sum::<Share>().percent()
}

/// The highest count of each base, averaged.
fn largest(groups: &[Vec<u32>]) -> f64 {
    let highest = groups.iter().map(|copies| copies.iter().copied().max().unwrap_or(0));
    f64::from(highest.sum::<u32>()) / groups.len() as f64
}
