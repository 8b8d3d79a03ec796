// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark check`

use super::asker::{Asker, MessageArgs};
use super::from_where::FromWhere;
use super::proofs::Missed;
use crate::policy::Verdict;
use crate::verdict::{Content, Counted, Finding};
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Ask how often a message was seen, without counting it.
///
/// Asks the running milter over its control socket; when none is running, reads the ledger itself. Exit code 0: not
/// bulk; 1: bulk; 2: error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    message: MessageArgs,
}

/// What is printed.
#[derive(Serialize)]
struct Answer {
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    near: Option<NearCount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whitelist: Option<String>,
    /// Entries of the white list that nearly match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missed: Vec<Missed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<FromWhere>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct Count {
    signature: String,
    count: u32,
    threshold: u32,
}

#[derive(Serialize)]
struct NearCount {
    /// Those that the message would report.
    signatures: Vec<String>,
    count: u32,
    threshold: u32,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let args = &args.message;
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

fn check(args: &MessageArgs) -> anyhow::Result<Answer> {
    let (asker, message) = args.read()?;
    let content = Content::of(&message, &asker.rules);
    let uncounted = |verdict: Verdict, reason: String| Answer {
        verdict: verdict.to_string(),
        body: None,
        near: None,
        whitelist: None,
        missed: Vec::new(),
        sources: None,
        reason: Some(reason),
    };
    let finding = match Finding::uncounted(&content) {
        Some(finding) => finding,
        None => asker.judge(&content)?.0,
    };
    Ok(match finding {
        Finding::Canary(_) => uncounted(Verdict::Bulk, "canary".to_owned()),
        Finding::Exempt(reason) => {
            let why = content.signatures.body.err().map(|low| low.to_string());
            uncounted(Verdict::Exempt, why.unwrap_or_else(|| reason.to_string()))
        }
        Finding::Unknown(reason, _) => uncounted(Verdict::Unknown, reason.to_string()),
        Finding::Counted(counted) => answer(&asker, &content, &counted),
    })
}

fn answer(asker: &Asker, content: &Content, counted: &Counted) -> Answer {
    let thresholds = &asker.rules.thresholds;
    let Counted { counts, signature, decision, .. } = counted;
    let body = signature.zip(counts.body).map(|(signature, count)| Count {
        signature: signature.to_string(),
        count,
        threshold: thresholds.body.get(),
    });
    let near = counts.near.map(|count| NearCount {
        signatures: content.signatures.near.reported().map(|signature| signature.to_string()).collect(),
        count,
        threshold: thresholds.near.get(),
    });
    let whitelist = decision.whitelist.as_ref().map(ToString::to_string);
    let sources = FromWhere::of(asker, decision);
    let missed = if whitelist.is_none() { Missed::all(asker, content) } else { Vec::new() };
    Answer { verdict: decision.verdict.to_string(), body, near, whitelist, missed, sources, reason: None }
}

fn print_for_people(out: &mut impl Write, file: &Path, answer: &Answer) -> io::Result<()> {
    writeln!(out, "{}: {}", file.display(), answer.verdict)?;
    if let Some(Count { signature, count, threshold }) = &answer.body {
        writeln!(out, "  body signature {signature}: seen {count} times, threshold {threshold}")?;
    }
    if let Some(NearCount { signatures, count, threshold }) = &answer.near {
        let number = signatures.len();
        writeln!(out, "  near, by {number} signatures: seen {count} times, threshold {threshold}")?;
    }
    if let Some(sources) = &answer.sources {
        writeln!(out, "  {}", sources.sentence())?;
    }
    if let Some(entry) = &answer.whitelist {
        writeln!(out, "  wanted by the white list entry {entry}")?;
    }
    for missed in &answer.missed {
        writeln!(out, "  {missed}")?;
    }
    if let Some(reason) = &answer.reason {
        writeln!(out, "  {reason}")?;
    }
    Ok(())
}
