// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark report list`

use crate::command::milter_args::{MilterArgs, unanswered};
use crate::command::output::output;
use crate::command::show::time;
use crate::control::{self, MAX_REPORTER, ReporterRef, ReportsAsked};
use anyhow::bail;
use bulkmark_counts::{MailingReport, MailingReports, MailingSummary, Overview, ReporterSummary};
use bulkmark_types::ReporterKind;
use bulkmark_types::visible;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

/// Show the reports of this mail server's users, traps and interfaces by mailing, and each reporter's trust.
///
/// Reporters are shown by a hash, since their names are not stored; with user-reports.log-names the log has the names. Subjects are shown if
/// status.show has "subjects". Exit code 0: done; 1: the reporter or mailing is unknown or ambiguous; 75: the milter does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show reports of the last DAYS days.
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=365))]
    days: u32,
    #[command(flatten)]
    reporter: Reporter,
    /// Show the reporters and reports of the mailing with this id, or the beginning of it.
    #[arg(long, value_name = "ID", conflicts_with_all = ["user", "trap", "reporter"])]
    mailing: Option<String>,
}

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct Reporter {
    /// The user with this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["trap", "reporter"])]
    pub(super) user: Option<OsString>,
    /// The trap with this address, as traps.recipients has it.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "reporter")]
    trap: Option<OsString>,
    /// The reporter with this hash, or the beginning of it.
    #[arg(long, value_name = "HASH")]
    reporter: Option<String>,
}

/// Digits of a hash that are shown.
const SHOWN: usize = 12;

pub(super) fn run(milter: &MilterArgs, args: &Args) -> anyhow::Result<ExitCode> {
    let socket = milter.socket()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(mailing) = &args.mailing {
        return match runtime.block_on(control::mailing_reports(&socket, mailing.clone())) {
            Ok(mailing) if milter.json => print_json(&mailing),
            Ok(mailing) => Ok(print_mailing(&mailing).map(|()| ExitCode::SUCCESS)?),
            Err(e) => Ok(unanswered(&socket, e)),
        };
    }
    let asked = ReportsAsked { reporter: args.reporter.reporter()?, days: args.days };
    match runtime.block_on(control::reports(&socket, asked)) {
        Ok(overview) if milter.json => print_json(&overview),
        Ok(overview) => Ok(print(args, &overview).map(|()| ExitCode::SUCCESS)?),
        Err(e) => Ok(unanswered(&socket, e)),
    }
}

fn print_json(value: &impl serde::Serialize) -> anyhow::Result<ExitCode> {
    writeln!(output(), "{}", serde_json::to_string(value)?)?;
    Ok(ExitCode::SUCCESS)
}

impl Reporter {
    /// Returns the chosen reporter, if there is one.
    pub(super) fn reporter(&self) -> anyhow::Result<Option<ReporterRef>> {
        if let Some(hash) = &self.reporter {
            return Ok(Some(ReporterRef::Hash(hash.clone())));
        }
        let kinds = [(ReporterKind::User, &self.user), (ReporterKind::Trap, &self.trap)];
        let Some((kind, name)) = kinds.iter().find_map(|(kind, name)| Some((kind, name.as_ref()?))) else {
            return Ok(None);
        };
        let name = [kind.prefix().as_bytes(), name.as_bytes()].concat();
        if name.len() > MAX_REPORTER {
            bail!("found a name of {} bytes, expected at most {MAX_REPORTER}", name.len());
        }
        Ok(Some(ReporterRef::Name(name)))
    }
}

/// Returns the beginning of a hash.
fn short(hash: &str) -> &str {
    hash.get(..SHOWN).unwrap_or(hash)
}

fn print_mailing(mailing: &MailingReports) -> io::Result<()> {
    let MailingReports { mailing, subject, first, last, reporters, more_reporters } = mailing;
    let mut output = output();
    writeln!(output, "mailing {mailing}  {}", visible(subject))?;
    writeln!(output, "first report {}, last {}\n", time(*first), time(*last))?;
    if reporters.is_empty() {
        return writeln!(output, "No report of it is stored here.");
    }
    writeln!(output, "{:<SHOWN$}  {:<5} {:>8}  report    since", "reporter", "kind", "weight")?;
    for MailingReport { reporter, kind, spam, weight, window } in reporters {
        let report = if *spam { "spam" } else { "not spam" };
        let kind = kind.to_string();
        writeln!(output, "{}  {kind:<5} {weight:>8}  {report:<8}  {}", short(reporter), time(*window))?;
    }
    if *more_reporters > 0 {
        writeln!(output, "and {more_reporters} others")?;
    }
    Ok(())
}

fn print(args: &Args, overview: &Overview) -> io::Result<()> {
    let Overview { mailings, more_mailings, reporters, more_reporters } = overview;
    let mut output = output();
    if mailings.is_empty() {
        writeln!(output, "No reports in the last {} days.", args.days)?;
    } else {
        writeln!(
            output,
            "{:>8} {:>6} {:>9}  {:<20}  {:<SHOWN$}  subject",
            "weight", "spam", "not spam", "last", "mailing"
        )?;
    }
    for MailingSummary { mailing, subject, last, spam, not_spam, weight, .. } in mailings {
        let mailing = short(mailing);
        let line = format!(
            "{weight:>8} {spam:>6} {not_spam:>9}  {:<20}  {mailing}  {}",
            time(*last).to_string(),
            visible(subject)
        );
        writeln!(output, "{}", line.trim_end())?;
    }
    if *more_mailings > 0 {
        writeln!(output, "and {more_mailings} before these")?;
    }
    if !reporters.is_empty() {
        writeln!(
            output,
            "\n{:<SHOWN$}  {:<5} {:>6} {:>8} {:>6} {:>9}",
            "reporter", "kind", "trust", "weight", "spam", "not spam"
        )?;
    }
    for ReporterSummary { reporter, kind, trust, weight, spam, not_spam } in reporters {
        let (reporter, kind) = (short(reporter), kind.to_string());
        writeln!(output, "{reporter}  {kind:<5} {trust:>6.2} {weight:>8} {spam:>6} {not_spam:>9}")?;
    }
    if *more_reporters > 0 {
        writeln!(output, "and {more_reporters} others")?;
    }
    Ok(())
}
