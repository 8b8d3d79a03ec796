// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark report forget`

use super::add::{Kind, send};
use super::list::Reporter;
use crate::command::milter_args::{MilterArgs, unanswered};
use crate::command::output::output;
use crate::command::show::some;
use crate::control;
use anyhow::bail;
use bulkmark_counts::Withdrawal;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Withdraw a user's reports of messages, or all reports of one reporter.
///
/// With --all, the reporter's trust starts over. Exit code 0: done; 1: some were refused, or the reporter is unknown or ambiguous; 75: the
/// milter does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    reporter: Reporter,
    /// Withdraw all reports of the reporter that --user, --trap or --reporter names, with their counts.
    #[arg(long, conflicts_with = "files")]
    all: bool,
    /// Withdraw the user's reports of these: messages, mboxes and Maildirs; "-" is standard input.
    #[arg(value_name = "FILE", required_unless_present = "all", conflicts_with_all = ["trap", "reporter"])]
    files: Vec<PathBuf>,
}

pub(super) fn run(milter: &MilterArgs, args: &Args) -> anyhow::Result<ExitCode> {
    if !args.all {
        let kind = Kind { not_spam: false, force: false, lenient: false, forget: true };
        return send(milter, args.reporter.user.as_ref(), kind, &args.files);
    }
    let Some(reporter) = args.reporter.reporter()? else {
        bail!("--all: expected --user NAME, --trap ADDRESS or --reporter HASH beside it, found none")
    };
    let socket = milter.socket()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let Withdrawal { signatures, left } = match runtime.block_on(control::forget_reports(&socket, reporter)) {
        Ok(withdrawn) => withdrawn,
        Err(e) => return Ok(unanswered(&socket, e)),
    };
    let mut out = output();
    if milter.json {
        writeln!(out, "{}", serde_json::json!({ "taken-back": signatures, "left": left }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if signatures == 0 && left == 0 {
        writeln!(out, "nothing to withdraw: no report of this reporter counts; its trust starts over")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(
        out,
        "reports withdrawn, of {}; the reporter's trust starts over",
        some(signatures, "signature")
    )?;
    if left > 0 {
        writeln!(
            out,
            "reports of {} cannot be withdrawn, and expire with their window",
            some(left, "other signature")
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
