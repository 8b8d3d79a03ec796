// SPDX-License-Identifier: GPL-3.0-or-later
//! Copies of one advertisement, each disguised: by evasions, and by the mutations of bulk senders. Each advertisement and
//! disguise has a ledger of its own.

use crate::counts::Share;
use crate::figures::{Wish, both};
use crate::generated::python;
use crate::labelled::Labelled;
use crate::lists;
use crate::runs::{Bench, Job};
use crate::stream::{self, Message};
use std::path::{Path, PathBuf};

/// Of each advertisement and disguise.
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
    println!("{:<34}{:>6}{:>10}{:>10}{:>10}{:>10}", "", "bases", "joined, %", "worst", "largest", "worst");
    for kind in kinds {
        let groups: Vec<Vec<Message>> =
            bases_of(&out.join(&kind)).iter().map(|d| stream::directory(d)).collect();
        if groups.is_empty() {
            println!("{kind:<34}{:>6}", 0);
            continue;
        }
        let jobs = bench.keys.iter().flat_map(|key| groups.iter().map(move |g| Job { key, parts: vec![g] }));
        let counts = bench.highest(&jobs.collect::<Vec<_>>());
        let by_key = |figure: &dyn Fn(&[Vec<u32>]) -> f64| -> Vec<f64> {
            counts.chunks(groups.len()).map(figure).collect()
        };
        println!(
            "{kind:<34}{:>6}{}{}",
            groups.len(),
            both(&by_key(&joined), Wish::High, 1),
            both(&by_key(&largest), Wish::High, 1)
        );
    }
    Ok(())
}

/// The directories of all bases that can be disguised so.
fn bases_of(kind: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(kind).into_iter().flatten();
    let mut bases: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    bases.sort();
    bases
}

/// The share of copies that were seen before.
fn joined(groups: &[Vec<u32>]) -> f64 {
    groups.iter().map(|copies| Share::joined(copies)).sum::<Share>().percent()
}

/// The highest count of each base, on the average.
fn largest(groups: &[Vec<u32>]) -> f64 {
    let highest = groups.iter().map(|copies| copies.iter().copied().max().unwrap_or(0));
    f64::from(highest.sum::<u32>()) / groups.len() as f64
}
