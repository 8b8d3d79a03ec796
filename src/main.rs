// SPDX-License-Identifier: GPL-3.0-or-later
//! The `bulkmark` program: reads the command line and runs one command.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = bulkmark::command::Cli::try_parse().unwrap_or_else(|e| bulkmark::command::misused(&e));
    match cli.run() {
        Ok(code) => code,
        Err(e) => bulkmark::command::failed(&e, 2),
    }
}
