// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config`

mod check;
mod file_args;
mod show;

use clap::Subcommand;
use file_args::FileArgs;
use std::process::ExitCode;

/// Check and show configurations: a file, and its pieces from the directory beside it (milter.d, interfaces.d, server.d); see bulkmark.toml(5).
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check a configuration, its pieces, and the files that it names.
    ///
    /// Warns of valid settings that cannot work: files that the daemon's user cannot read, entries of white lists that match
    /// nothing, certificates that expire, and others. An error or warning has file, line, column and key, the value found, and the
    /// value expected. Exit code 0: it can be used, perhaps with warnings; 78: it cannot be used, or the daemon will not start for
    /// another reason, such as a missing directory.
    Check {
        #[command(flatten)]
        file: FileArgs,
        /// Exit with 78 for a warning, too.
        #[arg(long)]
        strict: bool,
        /// Print one JSON object. Errors are printed on standard error, as without this option.
        #[arg(long)]
        json: bool,
    },
    /// Print every key with its value, and the file and line that sets it.
    ///
    /// The output is a valid configuration. The running daemon has the values of its last start or reload. Exit code 78: the configuration
    /// cannot be used.
    Show {
        #[command(flatten)]
        file: FileArgs,
        /// Only keys whose value is not the default.
        #[arg(long)]
        changed: bool,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check { file, strict, json } => check::run(file, *strict, *json),
        Command::Show { file, changed, json } => show::run(file, *changed, *json),
    }
}
