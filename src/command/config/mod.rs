// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config`

mod check;
mod show;
mod which;

use super::exit::EX_CONFIG;
use super::output::complain;
use crate::config::ConfigError;
use clap::Subcommand;
use std::process::ExitCode;
use which::Which;

/// Check and show configurations: a file, and over it its pieces in the directory beside it (milter.d, server.d).
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check a configuration, its pieces, and the files that it names.
    ///
    /// Warns of what is valid and cannot work: files that the daemon's user cannot read, entries of white lists that match
    /// nothing, certificates that expire. Exit code 0: it can be used, perhaps with warnings; 78: it cannot be used.
    Check {
        #[command(flatten)]
        which: Which,
        /// Let a warning, too, end with exit code 78.
        #[arg(long)]
        strict: bool,
    },
    /// Print every key with its value, and the file and line that it comes from.
    ///
    /// What is printed is a configuration, too. The running daemon has what was there when it last read its files.
    Show {
        #[command(flatten)]
        which: Which,
        /// Only what is not the default.
        #[arg(long)]
        changed: bool,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let result = match command {
        Command::Check { which, strict } => check::run(which, *strict),
        Command::Show { which, changed, json } => show::run(which, *changed, *json),
    };
    result.or_else(|e| {
        // An error of the configuration speaks for itself; another one is of printing.
        complain(e.downcast::<ConfigError>()?);
        Ok(ExitCode::from(EX_CONFIG))
    })
}
