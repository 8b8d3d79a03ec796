// SPDX-License-Identifier: GPL-3.0-or-later
//! The `bulkmark-study` program: reads the command line and runs one study.

#![forbid(unsafe_code)]

mod command;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match command::Cli::parse().run() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("bulkmark-study: {e:#}");
            ExitCode::FAILURE
        }
    }
}
