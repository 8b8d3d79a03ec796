// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark-study near`

use bulkmark_signature::near::Scheme;
use bulkmark_study::labelled::Labelled;
use bulkmark_study::near::{Found, HARD, Mail, Variant, variants};
use std::path::PathBuf;
use std::process::ExitCode;

/// Try other schemes of near signatures on labelled mail.
///
/// Prints the means of eight keys: unrelated ham that is joined, then shares in percent of campaigns' messages, of whole
/// campaigns, and of replicas by the mutations that change most of the text. docs/evaluation.md describes the directory and
/// the table.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of labelled mail.
    #[arg(value_name = "DIR")]
    mail: PathBuf,
    /// Number of messages from which replicas are made, if the directory has a mutate.py.
    #[arg(long, value_name = "MESSAGES", default_value_t = 40)]
    mutate: usize,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let labelled = Labelled::read(&args.mail)?;
    let work = tempfile::tempdir()?;
    let mail = Mail::read(&labelled, &labelled.replicas(args.mutate, work.path())?)?;
    let hard = HARD.map(|name| format!("{name:>13}")).concat();
    println!(
        "{:<34} {:>6} {:>10} {:>6} {hard}",
        "slots, agreeing; passage; last", "ham", "campaigns", "whole"
    );
    for variant in variants() {
        println!("{}", row(&variant, &mail.find(&variant)));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(Variant { what, scheme, agreeing }: &Variant, found: &Found) -> String {
    let Scheme { slots, probes, run, runs, gap, window, last, .. } = scheme;
    let name =
        format!("{slots}x{probes}, {agreeing}; {runs} of {run}, {gap}+{window}; {last}/{}", Scheme::FULL);
    let Found { ham, campaigns, whole, hard } = found;
    let hard = hard.map(|share| format!("{share:>13.1}")).concat();
    format!("{name:<34} {ham:>6.1} {campaigns:>10.1} {whole:>6.1} {hard}  {what}")
}
