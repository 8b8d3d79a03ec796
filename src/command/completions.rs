// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark completions`

use clap::Command;
use clap_complete::Shell;
use std::io::Write as _;
use std::process::ExitCode;

/// Print what a shell needs to complete this command line.
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(super) struct Args {
    /// The shell.
    shell: Shell,
}

/// Of the whole command line, `command`.
pub(super) fn run(args: &Args, command: &mut Command) -> anyhow::Result<ExitCode> {
    // Not to standard output at once: a reader that went away would be a panic.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, command, "bulkmark", &mut text);
    std::io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}
