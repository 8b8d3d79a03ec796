// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark fleet`

mod export;
mod import;
#[cfg(feature = "nats")]
mod key;
mod members;
mod setup;
mod status;

use status::no_fleet;
pub(super) use status::{last_step, print_daemon};

use clap::Subcommand;
use std::process::ExitCode;

/// Set up the replicated log of a fleet, fill it, and show its state.
///
/// A fleet has a log in place of servers; see docs/fleet.md.
#[derive(Debug, Subcommand)]
pub(in crate::command) enum Command {
    Setup(setup::Args),
    Import(import::Args),
    Export(export::Args),
    Status(status::Args),
    #[cfg(feature = "nats")]
    Key(key::Args),
}

pub(in crate::command) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Setup(args) => setup::run(args),
        Command::Import(args) => import::run(args),
        Command::Export(args) => export::run(args),
        Command::Status(args) => status::run(args),
        #[cfg(feature = "nats")]
        Command::Key(args) => key::run(args),
    }
}
