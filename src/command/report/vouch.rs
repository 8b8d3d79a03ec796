// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark report vouch`

use super::list::Reporter;
use crate::command::output::{failed, output};
use crate::command::to::{To, unanswered};
use crate::control;
use anyhow::{anyhow, bail};
use std::io::Write as _;
use std::process::ExitCode;

/// Trust a user as much as one whom others confirmed often, until others contradict the user's reports.
///
/// On a new site nobody is trusted, and new users cannot gain trust from each other. Exit code 0: done; 1: the milter knows as many
/// reporters as it has places for, or none fits; 75: the milter does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    reporter: Reporter,
}

pub(super) fn run(to: &To, args: &Args) -> anyhow::Result<ExitCode> {
    let Some(reporter) = args.reporter.reporter()? else {
        bail!("expected --user NAME or --reporter HASH, found none")
    };
    let socket = to.socket()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(control::vouch(&socket, reporter)) {
        Err(e) => Ok(unanswered(&socket, e)),
        Ok(false) => Ok(failed(&anyhow!("the milter knows as many reporters as it has places for"), 1)),
        Ok(true) if to.json => {
            writeln!(output(), "{}", serde_json::json!({ "vouched": true }))?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(true) => {
            writeln!(output(), "this user is trusted in full from now on")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
