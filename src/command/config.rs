// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config`

use super::exit::EX_CONFIG;
use crate::config::{self, DEFAULT_PATH};
use crate::policy;
use clap::Subcommand;
use std::io::Write;
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
        Ok(checked) => {
            let config::MilterFile { actions, authentication, .. } = &checked.file;
            for warning in policy::warnings(&checked.whitelist, actions, authentication) {
                eprintln!("warning: {warning}");
            }
            writeln!(std::io::stdout(), "{}: ok", file.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(e) => {
            eprintln!("{e}");
            Ok(ExitCode::from(EX_CONFIG))
        }
    }
}
