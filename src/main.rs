// SPDX-License-Identifier: GPL-3.0-or-later
//! The `bulkmark` program: reads the command line and runs one command.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match bulkmark::command::Cli::parse().run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("bulkmark: {e:#}");
            ExitCode::FAILURE
        }
    }
}
