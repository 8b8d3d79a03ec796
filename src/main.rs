// SPDX-License-Identifier: GPL-3.0-or-later
//! The `bulkmark` program: reads the command line and runs one command.

#![forbid(unsafe_code)]

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match bulkmark::command::Cli::parse().run() {
        Ok(code) => code,
        // Whoever read our output has had enough: nothing to say.
        Err(e)
            if e.downcast_ref::<std::io::Error>()
                .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("bulkmark: {e:#}");
            ExitCode::FAILURE
        }
    }
}
