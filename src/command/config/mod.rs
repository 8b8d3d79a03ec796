// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config`

mod check;
mod show;
mod which;

use clap::Subcommand;
use std::process::ExitCode;
use which::Which;

/// Check and show configurations: a file, and the pieces that are laid over it from the directory beside it (milter.d, interfaces.d,
/// server.d); see bulkmark.toml(5).
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check a configuration, its pieces, and the files that it names.
    ///
    /// Warns of valid settings that cannot work: files that the daemon's user cannot read, entries of white lists that match
    /// nothing, certificates that expire, and others. An error or warning has file, line, column and key, the value found, and the
    /// value expected. Exit code 0: it can be used, perhaps with warnings; 78: it cannot be used.
    Check {
        #[command(flatten)]
        which: Which,
        /// Exit with 78 for a warning, too.
        #[arg(long)]
        strict: bool,
        /// Print one JSON object. An error is on standard error as without this.
        #[arg(long)]
        json: bool,
    },
    /// Print every key with its value, and the file and line that it comes from.
    ///
    /// The output is a configuration, too. The running daemon has the values that were there when it last read its files. Exit code
    /// 78: the configuration cannot be used.
    Show {
        #[command(flatten)]
        which: Which,
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
        Command::Check { which, strict, json } => check::run(which, *strict, *json),
        Command::Show { which, changed, json } => show::run(which, *changed, *json),
    }
}
