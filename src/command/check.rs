// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark check`

use super::asker::{Asker, MessageArgs};
use super::from_where::FromWhere;
use super::output::{failed, output};
use super::proofs::Missed;
use crate::policy::{Held, Verdict};
use crate::verdict::{Content, Counted, Exempt, Finding};
use serde::Serialize;
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

/// What is printed.
#[derive(Serialize)]
struct Answer {
    verdict: String,
    /// What the milter would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    /// The policy that decides, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// The one of another recipient for whose sake less is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    milder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    near: Option<NearCount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spam: Option<SpamWeight>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whitelist: Option<String>,
    /// Entries of the white list that nearly match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missed: Vec<Missed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sources: Option<FromWhere>,
    /// Why it is only marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct Count {
    signature: String,
    count: u32,
    threshold: u32,
}

/// How much people call it spam.
#[derive(Serialize)]
struct SpamWeight {
    weight: String,
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
    let mut content = Content::claiming(&message, &asker.rules, asker.envelope.sender.as_deref());
    let uncounted = |verdict: Verdict, reason: String| Answer {
        verdict: verdict.to_string(),
        action: None,
        policy: None,
        milder: None,
        body: None,
        near: None,
        spam: None,
        whitelist: None,
        missed: Vec::new(),
        sources: None,
        held: None,
        reason: Some(reason),
    };
    let exempt = asker.exempt().map(Finding::Exempt);
    let finding = match exempt.or_else(|| Finding::uncounted(&content)) {
        Some(finding) => finding,
        None => {
            let judged = asker.judge(&content, &message)?;
            let (finding, proven) = (judged.finding, judged.content);
            content = proven;
            finding
        }
    };
    Ok(match finding {
        Finding::Exempt(reason) if reason != Exempt::LowInformation => {
            let policy = (reason == Exempt::Policy).then(|| policy_of(&asker)).flatten();
            Answer { policy, ..uncounted(Verdict::Exempt, reason.to_string()) }
        }
        Finding::Canary(_) => uncounted(Verdict::Bulk, "canary".to_owned()),
        Finding::Exempt(reason) => {
            let why = content.signatures.body.err().map(|low| low.to_string());
            uncounted(Verdict::Exempt, why.unwrap_or_else(|| reason.to_string()))
        }
        Finding::Unknown(reason, _) => uncounted(Verdict::Unknown, reason.to_string()),
        Finding::Counted(counted) => answer(&asker, &content, &counted),
    })
}

/// The policy by which nobody's copy is judged.
fn policy_of(asker: &Asker) -> Option<String> {
    let by = asker.rules.parties(&asker.envelope).first()?.by;
    asker.rules.name(by).map(str::to_owned)
}

fn answer(asker: &Asker, content: &Content, counted: &Counted) -> Answer {
    let Counted { counts, signature, decision, .. } = counted;
    let thresholds = asker.rules.terms(decision.by).thresholds;
    let name = |by| asker.rules.name(by).map(str::to_owned);
    let body = signature.zip(counts.body).map(|(signature, count)| Count {
        signature: signature.to_string(),
        count,
        threshold: thresholds.body.get(),
    });
    let spam = counts
        .spam
        .filter(|spam| spam.units() > 0)
        .map(|spam| SpamWeight { weight: spam.to_string(), threshold: thresholds.spam.get() });
    let near = counts.near.map(|count| NearCount {
        signatures: content.signatures.near.reported().map(|signature| signature.to_string()).collect(),
        count,
        threshold: thresholds.near.get(),
    });
    let whitelist = decision.whitelist.as_ref().map(ToString::to_string);
    let sources = FromWhere::of(asker, decision);
    let missed = if whitelist.is_none() { Missed::all(asker, content) } else { Vec::new() };
    Answer {
        verdict: decision.verdict.to_string(),
        action: Some(decision.action.to_string()),
        policy: name(decision.by),
        milder: decision.milder.and_then(name),
        body,
        near,
        spam,
        whitelist,
        missed,
        sources,
        held: decision.held.map(|held| held.to_string()),
        reason: None,
    }
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
