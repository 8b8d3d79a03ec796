// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark report`

mod add;
mod forget;
mod list;
mod vouch;

use super::milter_args::MilterArgs;
use std::process::ExitCode;

/// Report messages as spam or as not spam, and show and withdraw reports.
///
/// Asks the running milter over its control socket, which the milter's user and group may use.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    milter: MilterArgs,
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
        Command::Add(command) => add::run(&args.milter, command),
        Command::List(command) => list::run(&args.milter, command),
        Command::Forget(command) => forget::run(&args.milter, command),
        Command::Vouch(command) => vouch::run(&args.milter, command),
    }
}
