// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark check`

use super::asker::MessageArgs;
use super::output::{failed, output};
use crate::explain::exempt;
use bulkmark_policy::{Held, Verdict};
use bulkmark_verdict::{Answer, BodyCount, Finding, NearCount, SpamWeight};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Ask how often a message was seen, without counting it.
///
/// Asks the running milter over its control socket; when none is running, reads the ledger itself. Exit code 0: not
/// bulk; 1: bulk, or what people call spam; 2: error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    message: MessageArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let args = &args.message;
    match check(args) {
        Ok(answer) => {
            let mut out = output();
            if args.json {
                writeln!(out, "{}", serde_json::to_string(&answer)?)?;
            } else {
                print_for_people(&mut out, &args.file, &answer)?;
            }
            let unwanted = [Verdict::Bulk, Verdict::Spam].map(|verdict| verdict.to_string());
            let bulk = unwanted.contains(&answer.verdict);
            Ok(ExitCode::from(u8::from(bulk)))
        }
        Err(e) => Ok(failed(&e, 2)),
    }
}

fn check(args: &MessageArgs) -> anyhow::Result<Answer> {
    let (asker, message) = args.read()?;
    let content = asker.read(&message);
    let exempt = exempt(&asker.rules, &asker.envelope).map(Finding::Exempt);
    let (finding, content) = match exempt.or_else(|| Finding::uncounted(&content)) {
        Some(finding) => (finding, content),
        None => {
            let judged = asker.judge(&message, &content)?;
            (judged.finding, judged.content)
        }
    };
    Ok(Answer::of(&asker.rules, &asker.envelope, Some(&content), &finding))
}

fn print_for_people(out: &mut impl Write, file: &Path, answer: &Answer) -> io::Result<()> {
    writeln!(out, "{}: {}", file.display(), answer.verdict)?;
    if let Some(BodyCount { signature, count, threshold }) = &answer.body {
        writeln!(out, "  body signature {signature}: seen {count} times, threshold {threshold}")?;
    }
    if let Some(NearCount { signatures, count, threshold }) = &answer.near {
        let number = signatures.len();
        writeln!(out, "  near, by {number} signatures: seen {count} times, threshold {threshold}")?;
    }
    if let Some(SpamWeight { weight, threshold }) = &answer.spam {
        writeln!(out, "  people call it spam with the weight {weight}, threshold {threshold}")?;
    }
    if let Some(sources) = &answer.sources {
        writeln!(out, "  {}", sources.sentence())?;
    }
    if answer.held == Some(Held::Correspondent.to_string()) {
        writeln!(out, "  {}", Held::Correspondent.why())?;
    }
    if let Some(entry) = &answer.whitelist {
        writeln!(out, "  wanted by the white list entry {entry}")?;
    }
    for missed in &answer.missed {
        writeln!(out, "  {missed}")?;
    }
    if let Some(policy) = &answer.policy {
        let action = answer.action.as_ref().map(|action| format!(": {action}")).unwrap_or_default();
        writeln!(out, "  by the policy {policy}{action}")?;
    }
    if let Some(milder) = &answer.milder {
        writeln!(out, "  only that, since for another recipient the policy {milder} is milder")?;
    }
    if let Some(reason) = &answer.reason {
        writeln!(out, "  {reason}")?;
    }
    Ok(())
}
