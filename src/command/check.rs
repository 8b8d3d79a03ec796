// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark check`

use super::signature::read_message;
use crate::config::{self, Checked, DEFAULT_PATH};
use crate::control;
use crate::ledger;
use crate::mail::Fields;
use crate::policy::{Action, Decision, Facts, Verdict, decide};
use crate::signature::{self, LowInformation, Signature};
use anyhow::Context;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Ask how often a message was seen, without counting it.
///
/// Asks the running milter over its control socket; when none is running, reads the ledger itself. Exit code 0: not
/// bulk; 1: bulk; 2: error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The milter's configuration.
    #[arg(long, default_value = DEFAULT_PATH)]
    config: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The message; "-" is standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
}

/// What is printed.
#[derive(Serialize)]
struct Answer {
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whitelist: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct Count {
    signature: String,
    count: u32,
    threshold: u32,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match check(args) {
        Ok(answer) => {
            let mut out = io::stdout().lock();
            if args.json {
                writeln!(out, "{}", serde_json::to_string(&answer)?)?;
            } else {
                print_for_people(&mut out, &args.file, &answer)?;
            }
            let bulk = answer.verdict == Verdict::Bulk.to_string();
            Ok(ExitCode::from(u8::from(bulk)))
        }
        Err(e) => {
            eprintln!("bulkmark: {e:#}");
            Ok(ExitCode::from(2))
        }
    }
}

fn check(args: &Args) -> anyhow::Result<Answer> {
    let checked = config::load(&args.config)?;
    let message = read_message(&args.file)?;
    match signature::body(&message, &checked.key, &checked.file.signature) {
        Ok(signature) => {
            let count = count(&checked, signature)?;
            Ok(judged(&checked, &message.fields(), signature, count))
        }
        Err(reason @ LowInformation { .. }) => Ok(Answer {
            verdict: Verdict::Exempt.to_string(),
            body: None,
            whitelist: None,
            reason: Some(reason.to_string()),
        }),
    }
}

/// Only what the message itself says can be held against the white list: no client, no envelope.
fn judged(checked: &Checked, fields: &Fields, signature: Signature, count: u32) -> Answer {
    let facts = Facts {
        client_ip: None,
        client_host: None,
        sender: None,
        recipients: &[],
        from: &fields.from,
        list_id: fields.list_id.as_deref(),
        signature: Some(signature),
    };
    let thresholds = &checked.file.thresholds;
    let Decision { verdict, whitelist, .. } =
        decide(count, thresholds, Action::Mark, &checked.whitelist, &facts);
    Answer {
        verdict: verdict.to_string(),
        body: Some(Count { signature: signature.to_string(), count, threshold: thresholds.body.get() }),
        whitelist: whitelist.map(|entry| entry.to_string()),
        reason: None,
    }
}

fn count(checked: &Checked, signature: Signature) -> anyhow::Result<u32> {
    let file = &checked.file;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(control::count(&file.control, signature)) {
        Ok(count) => Ok(count),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
            ledger::read(&file.state_dir, &file.ledger, &checked.key, signature, now)
                .with_context(|| format!("no milter answers at {} ({e})", file.control.display()))
        }
        Err(e) => Err(e).with_context(|| format!("the milter at {} does not answer", file.control.display())),
    }
}

fn print_for_people(out: &mut impl Write, file: &Path, answer: &Answer) -> io::Result<()> {
    writeln!(out, "{}: {}", file.display(), answer.verdict)?;
    if let Some(Count { signature, count, threshold }) = &answer.body {
        writeln!(out, "  body signature {signature}: seen {count} times, threshold {threshold}")?;
    }
    if let Some(entry) = &answer.whitelist {
        writeln!(out, "  wanted by the white list entry {entry}")?;
    }
    if let Some(reason) = &answer.reason {
        writeln!(out, "  {reason}")?;
    }
    Ok(())
}
