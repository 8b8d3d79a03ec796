// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark reports`

use super::output::{failed, output};
use super::show::time;
use crate::config::{self, DEFAULT_PATH};
use crate::control::{self, MAX_REPORTER, ReportsAsked, Whose};
use anyhow::bail;
use bulkmark_counts::{Overview, SaidBy, SaidOf, SpokenBy, SpokenOf, TakenBack};
use bulkmark_types::ReporterKind;
use bulkmark_types::visible;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show the reports of this mail server's users, traps and doors by mailing, and each reporter's trust.
///
/// Asks the running milter over its control socket. Reporters are shown by a hash of their names, since no more is kept;
/// people.log-names has the log name them. Subjects are shown if status.subjects is true. Exit code 0: done; 1: no reporter or
/// mailing fits, or several do; 75: the milter does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Show reports of so many days.
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=365))]
    days: u32,
    /// Only reports of this user.
    #[arg(long, value_name = "NAME", global = true, conflicts_with_all = ["trap", "reporter"])]
    user: Option<OsString>,
    /// Only reports of this trap.
    #[arg(long, value_name = "ADDRESS", global = true, conflicts_with = "reporter")]
    trap: Option<OsString>,
    /// Only reports of the reporter whose hash begins so.
    #[arg(long, value_name = "HASH", global = true)]
    reporter: Option<String>,
    /// Show the reporters of the mailing whose id begins so, and their reports.
    #[arg(long, value_name = "ID", conflicts_with_all = ["user", "trap", "reporter"])]
    mailing: Option<String>,
    /// The milter's configuration, which names the control socket.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH, global = true)]
    config: PathBuf,
    /// The control socket. No configuration is read then.
    #[arg(long, value_name = "SOCKET", global = true)]
    control: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Withdraw all reports of one user, trap or other reporter, with their counts. The reporter's trust starts over.
    Forget,
    /// Trust a user as much as one whom others confirmed often, until others contradict the user's reports.
    ///
    /// On a new site nobody is trusted, and new users cannot gain trust from each other.
    Vouch,
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
    let whose = whose(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = ReportsAsked { whose: whose.clone(), days: args.days };
    let told = match (&args.command, &args.mailing) {
        (Some(_), Some(_)) => bail!("--mailing: this is done for one reporter, whatever the mailing"),
        (Some(command), None) => {
            let Some(whose) = whose else {
                bail!("--user NAME, --trap ADDRESS or --reporter HASH is missing: which reporter?")
            };
            match command {
                Command::Forget => {
                    runtime.block_on(control::forget_reports(&socket, whose)).map(Told::Forgotten)
                }
                Command::Vouch => runtime.block_on(control::vouch(&socket, whose)).map(Told::Vouched),
            }
        }
        (None, Some(mailing)) => {
            runtime.block_on(control::spoken_of(&socket, mailing.clone())).map(Told::Spoken)
        }
        (None, None) => runtime.block_on(control::reports(&socket, asked)).map(Told::Overview),
    };
    match told {
        Ok(told) if args.json => writeln!(output(), "{}", told.json()?)?,
        Ok(Told::Overview(overview)) => print(args, &overview)?,
        Ok(Told::Spoken(spoken)) => print_spoken(&spoken)?,
        Ok(Told::Forgotten(TakenBack { signatures: 0, left: 0 })) => {
            writeln!(output(), "nothing to take back: it said nothing that counts; it is a newcomer")?;
        }
        Ok(Told::Forgotten(TakenBack { signatures, left })) => {
            writeln!(
                output(),
                "taken back: what it said of {signatures} signatures; it is a newcomer again"
            )?;
            if left > 0 {
                writeln!(
                    output(),
                    "what it said of {left} others cannot be taken back, and leaves with its window"
                )?;
            }
        }
        Ok(Told::Vouched(true)) => writeln!(output(), "this user is trusted in full from now on")?,
        Ok(Told::Vouched(false)) => bail!("the milter knows as many reporters as it has places for"),
        // Who is meant by that is for whoever asks to say.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => return Err(e.into()),
        Err(e) => {
            let silent = format!("no daemon answers at {}", socket.display());
            return Ok(failed(&anyhow::Error::new(e).context(silent), TRY_AGAIN));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the milter told.
enum Told {
    Overview(Overview),
    Spoken(SpokenOf),
    Forgotten(TakenBack),
    Vouched(bool),
}

impl Told {
    fn json(&self) -> serde_json::Result<String> {
        match self {
            Self::Overview(overview) => serde_json::to_string(overview),
            Self::Spoken(spoken) => serde_json::to_string(spoken),
            Self::Vouched(vouched) => serde_json::to_string(&serde_json::json!({ "vouched": vouched })),
            Self::Forgotten(TakenBack { signatures, left }) => {
                serde_json::to_string(&serde_json::json!({ "taken-back": signatures, "left": left }))
            }
        }
    }
}

/// The reporter that is meant, if one is.
fn whose(args: &Args) -> anyhow::Result<Option<Whose>> {
    if let Some(hash) = &args.reporter {
        return Ok(Some(Whose::Hash(hash.clone())));
    }
    let kinds = [(ReporterKind::User, &args.user), (ReporterKind::Trap, &args.trap)];
    let Some((kind, name)) = kinds.iter().find_map(|(kind, name)| Some((kind, name.as_ref()?))) else {
        return Ok(None);
    };
    let name = [kind.prefix().as_bytes(), name.as_bytes()].concat();
    if name.len() > MAX_REPORTER {
        bail!("found a name of {} bytes, expected at most {MAX_REPORTER}", name.len());
    }
    Ok(Some(Whose::Name(name)))
}

/// The beginning of a hash.
fn short(hash: &str) -> &str {
    hash.get(..SHOWN).unwrap_or(hash)
}

fn print_spoken(spoken: &SpokenOf) -> io::Result<()> {
    let SpokenOf { mailing, subject, first, last, reporters, more_reporters } = spoken;
    let mut output = output();
    writeln!(output, "mailing {mailing}  {}", visible(subject))?;
    writeln!(output, "first spoken of {}, last {}\n", time(*first), time(*last))?;
    if reporters.is_empty() {
        return writeln!(output, "Nothing stands of what was said of it here.");
    }
    writeln!(output, "{:<SHOWN$}  {:<5} {:>8}  said      since", "reporter", "kind", "weight")?;
    for SpokenBy { reporter, kind, spam, weight, window } in reporters {
        let said = if *spam { "spam" } else { "not spam" };
        let kind = kind.to_string();
        writeln!(output, "{}  {kind:<5} {weight:>8}  {said:<8}  {}", short(reporter), time(*window))?;
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
        writeln!(output, "Nothing was said in the last {} days.", args.days)?;
    } else {
        writeln!(
            output,
            "{:>8} {:>6} {:>9}  {:<20}  {:<SHOWN$}  subject",
            "weight", "spam", "not spam", "last", "mailing"
        )?;
    }
    for SaidOf { mailing, subject, last, spam, not_spam, weight, .. } in mailings {
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
    for SaidBy { reporter, kind, trust, weight, spam, not_spam } in reporters {
        let (reporter, kind) = (short(reporter), kind.to_string());
        writeln!(output, "{reporter}  {kind:<5} {trust:>6.2} {weight:>8} {spam:>6} {not_spam:>9}")?;
    }
    if *more_reporters > 0 {
        writeln!(output, "and {more_reporters} others")?;
    }
    Ok(())
}
