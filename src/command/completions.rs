// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark completions`

use super::output::output;
use clap_complete::Shell;
use std::io::Write as _;
use std::process::ExitCode;

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(super) struct Args {
    /// The shell.
    shell: Shell,
}

pub(super) fn run(args: &Args, program: &mut clap::Command) -> anyhow::Result<ExitCode> {
    // Not directly to standard output, since a failed write would panic.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, program, "bulkmark", &mut text);
    output().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}
