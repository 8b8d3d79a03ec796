// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config`

use super::exit::EX_CONFIG;
use super::output::{complain, print};
use crate::config::{self, DEFAULT_PATH};
use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check configuration files.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check a configuration and the files that it names: white lists and key. Exit code 78: it cannot be used.
    Check {
        /// The configuration file.
        #[arg(default_value = DEFAULT_PATH)]
        file: PathBuf,
    },
}

pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let Command::Check { file } = command;
    match config::load(file) {
        Ok(_) => {
            print(format_args!("{}: ok", file.display()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(e) => {
            complain(e);
            Ok(ExitCode::from(EX_CONFIG))
        }
    }
}
