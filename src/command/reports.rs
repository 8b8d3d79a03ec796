// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark reports`

use super::output::{failed, output};
use super::show::time;
use crate::config::{self, DEFAULT_PATH};
use crate::control::{self, MAX_REPORTER, ReportsAsked};
use crate::ledger::{Overview, SaidBy, SaidOf};
use crate::text::visible;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show what users and traps of this mail server said, by mailing, and who is trusted how much; take all back that one said.
///
/// Asks the running milter over its control socket. Reporters are told by a hash of their names, since no more is kept. Subjects are
/// told where status.subjects is true. Exit code 0: it was told, or taken back; 75: the milter does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Of what was said in the last days.
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=365))]
    days: u32,
    /// Only what this user said.
    #[arg(long, value_name = "NAME", global = true, conflicts_with = "trap")]
    user: Option<OsString>,
    /// Only what this trap said.
    #[arg(long, value_name = "ADDRESS", global = true)]
    trap: Option<OsString>,
    /// The milter's configuration, which names the control socket.
    #[arg(long, default_value = DEFAULT_PATH, global = true)]
    config: PathBuf,
    /// The control socket; then no configuration is read.
    #[arg(long, value_name = "SOCKET", global = true)]
    control: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Take all back that this user or trap said, with its counts; it is a newcomer again.
    Forget,
}

/// `EX_TEMPFAIL` of sysexits(3).
const TRY_AGAIN: u8 = 75;

/// Digits of a hash that are shown.
const SHOWN: usize = 12;

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = match &args.control {
        Some(socket) => socket.clone(),
        None => config::load_parts(&args.config)?.file.control,
    };
    let name = name(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let silent = || format!("no daemon answers at {}", socket.display());
    if matches!(args.command, Some(Command::Forget)) {
        let Some(name) = name else { bail!("--user NAME or --trap ADDRESS is missing: whose reports?") };
        let forgotten = runtime.block_on(control::forget_reports(&socket, name)).with_context(silent);
        return match forgotten {
            Ok(signatures) if args.json => {
                writeln!(output(), "{}", serde_json::json!({ "taken-back": signatures }))?;
                Ok(ExitCode::SUCCESS)
            }
            Ok(0) => {
                writeln!(output(), "nothing to take back: it said nothing that counts; it is a newcomer")?;
                Ok(ExitCode::SUCCESS)
            }
            Ok(signatures) => {
                writeln!(
                    output(),
                    "taken back: what it said of {signatures} signatures; it is a newcomer again"
                )?;
                Ok(ExitCode::SUCCESS)
            }
            Err(e) => Ok(failed(&e, TRY_AGAIN)),
        };
    }
    let asked = ReportsAsked { name, days: args.days };
    match runtime.block_on(control::reports(&socket, asked)).with_context(silent) {
        Ok(overview) if args.json => writeln!(output(), "{}", serde_json::to_string(&overview)?)?,
        Ok(overview) => print(args, &overview)?,
        Err(e) => return Ok(failed(&e, TRY_AGAIN)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of the reporter that is meant, behind what it is.
fn name(args: &Args) -> anyhow::Result<Option<Vec<u8>>> {
    let kinds = [("user:", &args.user), ("trap:", &args.trap)];
    let Some((kind, name)) = kinds.iter().find_map(|(kind, name)| Some((kind, name.as_ref()?))) else {
        return Ok(None);
    };
    let name = [kind.as_bytes(), name.as_bytes()].concat();
    if name.len() > MAX_REPORTER {
        bail!("found a name of {} bytes, expected at most {MAX_REPORTER}", name.len());
    }
    Ok(Some(name))
}

fn print(args: &Args, overview: &Overview) -> io::Result<()> {
    let Overview { mailings, more_mailings, reporters, more_reporters } = overview;
    let mut output = output();
    if mailings.is_empty() {
        writeln!(output, "Nothing was said in the last {} days.", args.days)?;
    } else {
        writeln!(
            output,
            "{:>8} {:>6} {:>9}  {:<20}  {:<SHOWN$}  subject",
            "weight", "spam", "not spam", "last", "mailing"
        )?;
    }
    for SaidOf { mailing, subject, last, spam, not_spam, weight, .. } in mailings {
        let mailing = mailing.get(..SHOWN).unwrap_or(mailing);
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
            "\n{:<SHOWN$}  {:>6} {:>8} {:>6} {:>9}",
            "reporter", "trust", "weight", "spam", "not spam"
        )?;
    }
    for SaidBy { reporter, trust, weight, spam, not_spam } in reporters {
        let reporter = reporter.get(..SHOWN).unwrap_or(reporter);
        writeln!(output, "{reporter}  {trust:>6.2} {weight:>8} {spam:>6} {not_spam:>9}")?;
    }
    if *more_reporters > 0 {
        writeln!(output, "and {more_reporters} others")?;
    }
    Ok(())
}
