// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark digest`
//!
//! `source` reads the journal or log files, `line` one line of them; `day` sums them up, with the `names` of senders and clients; `print`
//! formats it as text, `json` as an object, and `send` sends a mail.

mod day;
mod json;
mod line;
mod names;
mod print;
mod send;
mod source;

use super::output::output;
use crate::net::own_name;
use bulkmark_types::plain;
use day::Day;
use print::Limit;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Summarize a day: mailings, refusals, senders for the white list, mail that was not judged, outages.
///
/// Reads yesterday's journal, or the named log files, which may be compressed by gzip(1). It counts the lines in the log: with messages =
/// "not-clean" in [log], there are none of clean messages. Identical copies are one mailing; near-replicas are those that the log names, or,
/// without a status page, one for each sender domain and client. Lines for the white list are proposed for bulk that no user reports as spam, if the client's verified name belongs to the sender's
/// domain; only people know whether the mail is wanted.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Log files; "-" is standard input [default: the journal]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only this day, such as 2026-11-22 [default: yesterday of the journal, all of files]
    #[arg(long, value_name = "DATE", value_parser = source::date)]
    day: Option<String>,
    /// Only messages to this recipient; "@example.org" is a whole domain. The log names the first five recipients of a message.
    #[arg(long, value_name = "ADDRESS", value_parser = super::values::mailbox_or_domain)]
    recipient: Option<String>,
    /// The unit whose journal is read.
    #[arg(long, value_name = "UNIT", default_value = "bulkmark-milter", conflicts_with = "files")]
    unit: String,
    /// Send the summary by mail, with sendmail(1), instead of printing it.
    #[arg(long, value_name = "ADDRESS", value_parser = super::canary::address)]
    mail: Option<String>,
    /// The most lines of each list.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print one JSON object.
    #[arg(long, conflicts_with = "mail")]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut day = Day::new(args.recipient.clone());
    let date = args.day.as_deref();
    if args.files.is_empty() {
        source::journal(&args.unit, date, &mut day)?;
    }
    for path in &args.files {
        source::file(path, date, &mut day)?;
    }
    let host = own_name("");
    let host = Some(&*host).filter(|host| !host.is_empty()).unwrap_or("this machine");
    let title = title(args, &day);
    if args.json {
        writeln!(output(), "{}", json::object(&day, host, &title, Limit(args.limit)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = print::text(&day, host, &title, Limit(args.limit));
    match &args.mail {
        Some(to) => send::send(to, &print::subject(&day, host, &title), &text)?,
        None => output().write_all(text.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the period of the summary, and whose mail it is about.
fn title(args: &Args, day: &Day) -> String {
    let about =
        args.recipient.as_deref().map_or_else(String::new, |to| format!(", mail to {}", plain(to, "")));
    period(args, day) + &about
}

fn period(args: &Args, day: &Day) -> String {
    let (first, last) = (&day.all.first.date, &day.all.last.date);
    match &args.day {
        Some(date) => date.clone(),
        None if last.is_empty() && args.files.is_empty() => "yesterday".to_owned(),
        None if last.is_empty() => "all that is in the log".to_owned(),
        None if first == last || first.is_empty() => last.clone(),
        None => format!("{first} to {last}"),
    }
}
