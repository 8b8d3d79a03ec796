// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark-study rewritten`

use bulkmark_study::labelled::Labelled;
use bulkmark_study::rewritten::{Curve, False, Mail, Way, plot};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure how far spam can be rewritten before its copies are no longer found.
///
/// Prints the unrelated ham that is taken for copies; then, for each share of replaced words, the shares of copies that are joined
/// and that reach a count of 20. docs/evaluation.md describes the directory and the table.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of labelled mail.
    #[arg(value_name = "DIR")]
    mail: PathBuf,
    /// How many messages are rewritten.
    #[arg(long, value_name = "MESSAGES", default_value_t = 24)]
    bases: usize,
    /// Draw the curves into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mail = Mail::read(&Labelled::read(&args.mail)?, args.bases)?;
    let False { messages, joined, at } = mail.false_bulk();
    println!("{messages} unrelated ham messages: {joined:.1} joined, {at:.1} at 20");
    let curves = Way::ALL.map(|way| mail.curve(way));
    println!("copies of {} texts: joined, and at 20 of those that could be; percent", mail.bases());
    println!("{:<9}{}", "replaced", Way::ALL.map(|way| format!("{:>30}", way.name())).concat());
    for (row, point) in curves[0].points.iter().enumerate() {
        let column = |curve: &Curve| {
            let point = curve.points[row];
            format!("{:>22.1}{:>8.1}", point.joined, point.at)
        };
        println!("{:>6} % {}", point.replaced, curves.each_ref().map(column).concat());
    }
    if let Some(path) = &args.plot {
        plot(&curves, path)?;
    }
    Ok(ExitCode::SUCCESS)
}
