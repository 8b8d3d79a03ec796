// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark report`

mod add;
mod forget;
mod list;
mod vouch;

use super::to::To;
use std::process::ExitCode;

/// Report messages as spam or as not spam, and show and withdraw reports.
///
/// Asks the running milter over its control socket, which the milter's user and group may use.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(add::Args),
    List(list::Args),
    Forget(forget::Args),
    Vouch(vouch::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Add(which) => add::run(&args.to, which),
        Command::List(which) => list::run(&args.to, which),
        Command::Forget(which) => forget::run(&args.to, which),
        Command::Vouch(which) => vouch::run(&args.to, which),
    }
}
