// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark report vouch`

use super::list::Reporter;
use crate::command::milter_args::{MilterArgs, unanswered};
use crate::command::output::{failed, output};
use crate::control;
use anyhow::{anyhow, bail};
use std::io::Write as _;
use std::process::ExitCode;

/// Trust a user as fully as one whose reports others often confirmed, until others contradict them.
///
/// On a new site nobody is trusted, and new users cannot gain trust from each other. Exit code 0: done; 1: the milter has no place for more
/// reporters, or the user is unknown or ambiguous; 75: the milter does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    reporter: Reporter,
}

pub(super) fn run(milter: &MilterArgs, args: &Args) -> anyhow::Result<ExitCode> {
    let Some(reporter) = args.reporter.reporter()? else {
        bail!("expected --user NAME or --reporter HASH, found none")
    };
    let socket = milter.socket()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(control::vouch(&socket, reporter)) {
        Err(e) => Ok(unanswered(&socket, e)),
        Ok(false) => Ok(failed(&anyhow!("the milter has no place for more reporters"), 1)),
        Ok(true) if milter.json => {
            writeln!(output(), "{}", serde_json::json!({ "vouched": true }))?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(true) => {
            writeln!(output(), "this user is trusted in full from now on")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
