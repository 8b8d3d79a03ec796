// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark-study revocation`

use bulkmark_study::revocation::{Form, Law, Measured, measure};
use std::process::ExitCode;

/// Compare the paper's pair of Bloom filters for nominations and revocations with counting filters.
///
/// Prints for each form: memory; strange signatures that are shown as spam; revoked ones that still are, and others that are
/// no longer; and revoked ones that are spam again after another nomination. docs/filter.md explains the table.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Signatures that are nominated.
    #[arg(long, value_name = "SIGNATURES", default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(100..=100_000_000))]
    elements: u32,
    /// Percentage of the signatures with three nominations that one person revokes.
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    revoked: u32,
    /// Strange signatures that are asked for.
    #[arg(long, value_name = "SIGNATURES", default_value_t = 10_000_000)]
    strange: u32,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    table(args, Law::Three, "nominated by three people each", &Form::ALL)?;
    println!();
    let of_ledger = &Form::ALL[3..];
    table(args, Law::Pareto, "nominated by n or more with the chance n^-1.5", of_ledger)?;
    Ok(ExitCode::SUCCESS)
}

fn table(args: &Args, law: Law, what: &str, forms: &[Form]) -> anyhow::Result<()> {
    println!("{} signatures, {what}; {} % of those with three revoked by one", args.elements, args.revoked);
    println!(
        "{:<28}{:>9}{:>24}{:>14}{:>13}{:>12}",
        "", "MB", "false spam of strange", "kept, %", "lost, %", "again, %"
    );
    for &form in forms {
        let Measured { memory, false_spam: (shown, strange), kept, lost, again } =
            measure(form, law, args.elements, args.revoked, args.strange)?;
        let false_spam = format!("{shown} of {strange}");
        let megabytes = memory as f64 / 1e6;
        println!("{:<28}{megabytes:>9.1}{false_spam:>24}{kept:>14.4}{lost:>13.4}{again:>12.4}", form.name());
    }
    Ok(())
}
