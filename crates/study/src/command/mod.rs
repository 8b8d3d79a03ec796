// SPDX-License-Identifier: GPL-3.0-or-later
//! The command line: one file per study.

mod corpus;
mod fleet;
mod format;
mod layouts;
mod near;
mod paper;
mod partners;
mod revocation;
mod rewritten;
mod trust;
mod young;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Studies of bulkmark's filters.
#[derive(Debug, Parser)]
#[command(name = "bulkmark-study", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Fleet(fleet::Args),
    Paper(paper::Args),
    Partners(partners::Args),
    Layouts(layouts::Args),
    Near(near::Args),
    Revocation(revocation::Args),
    Rewritten(rewritten::Args),
    Trust(trust::Args),
    Young(young::Args),
}

impl Cli {
    /// Runs the study; errors that end it belong on standard error.
    ///
    /// # Errors
    /// Any error that ended the study.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Fleet(args) => fleet::run(&args),
            Command::Paper(args) => paper::run(&args),
            Command::Partners(args) => partners::run(&args),
            Command::Layouts(args) => layouts::run(&args),
            Command::Near(args) => near::run(&args),
            Command::Revocation(args) => revocation::run(&args),
            Command::Rewritten(args) => rewritten::run(&args),
            Command::Trust(args) => trust::run(&args),
            Command::Young(args) => young::run(&args),
        }
    }
}
