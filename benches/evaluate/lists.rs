// SPDX-License-Identifier: GPL-3.0-or-later
//! Ham of mailing lists, each message written by a person.

use crate::counts::{AT, Share, number};
use crate::figures::{Wish, both, mean};
use crate::runs::Bench;
use crate::stream;
use std::path::PathBuf;

pub(crate) fn measure(bench: &Bench) -> Result<(), String> {
    let files = files(bench)?;
    println!("false bulk on lists, a fresh ledger each; {} keys, mean and worst", bench.keys.len());
    println!(
        "{:<34}{:>9}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "", "messages", "at 20", "worst", "/10,000", "worst", "refused", "2 or more"
    );
    for file in files {
        let messages = stream::mbox(&file)?;
        let (counts, refused) = bench.highest(&bench.under_each_key(&messages));
        let number_of =
            |counts: &Vec<Vec<u32>>| -> Vec<f64> { counts.iter().map(|c| number(c, AT) as f64).collect() };
        let of = |figure: &dyn Fn(&[u32]) -> f64| counts.iter().map(|c| figure(c)).collect::<Vec<_>>();
        println!(
            "{:<34}{:>9}{}{}{:>10.1}{:>10.1}",
            file.file_name().unwrap_or_default().to_string_lossy(),
            messages.len(),
            both(&number_of(&counts), Wish::Low, 1),
            both(&of(&|c| Share::counted(c, AT).per_10_000()), Wish::Low, 1),
            mean(&number_of(&refused)),
            mean(&of(&|c| number(c, 2) as f64)),
        );
    }
    Ok(())
}

/// The mboxes, at least one.
pub(crate) fn files(bench: &Bench) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(bench.existing("streams")?).map_err(|e| e.to_string())?;
    let is_mbox = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".mbox") || name.ends_with(".mbox.xz")
    };
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_mbox).collect();
    files.sort();
    if files.is_empty() { Err("there is no .mbox or .mbox.xz in streams".to_owned()) } else { Ok(files) }
}
