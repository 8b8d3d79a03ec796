// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark check`

use super::asker::{Asker, MessageArgs};
use super::output::{EX_ERROR, Messages, failed, output, shown};
use super::show::some;
use super::signature::read_message;
use crate::judging::exempt;
use bulkmark_mail::RawMessage;
use bulkmark_policy::Verdict;
use bulkmark_verdict::{Answer, BodyCount, Finding, NearCount, SpamWeight};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show how often messages were seen, without counting them.
///
/// Asks the running milter over its control socket, which the milter's user and group may use. If no milter is running, reads the ledger itself:
/// then the user must be able to write to it, and no milter can be started meanwhile. Exit code 0: not bulk; 1: at least one message is bulk or
/// spam; 2: a message cannot be read, or another error.
///
/// The options name the client and the envelope. Policies and white-list entries that depend on other facts do not match. The milter counts a
/// message before it judges it, so the next copy of this message shows a count that is higher by one for each of its recipients (counting.per in
/// bulkmark.toml(5)).
///
/// With --json it prints an object with messages, a list of objects with file, verdict and, if they are known, action, policy, milder (the
/// policy of another recipient that allows less), body (signature, count, threshold), near (signatures, count, threshold), spam (weight,
/// threshold), whitelist (file and line), missed (entries that nearly match), sources of bulk (others, the client's network, how often that
/// network sent it as own, min-sources, and whether it is held back), held (why it is only marked), would (the action that is only rehearsed),
/// rehearsal (why) and reason.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    message: MessageArgs,
    /// Messages, one per file; "-" is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let asker = args.message.asker()?;
    let mut json = args.message.json.then(Messages::begin).transpose()?;
    let mut code = 0;
    for file in &args.files {
        let answer = match read_message(file).and_then(|message| check(&asker, &message)) {
            Ok(answer) => answer,
            Err(e) => {
                failed(&e, EX_ERROR);
                code = EX_ERROR;
                continue;
            }
        };
        match &mut json {
            Some(json) => json.add(&shown(file), &answer)?,
            None => print_text(&mut output(), file, &answer)?,
        }
        let is_unwanted =
            [Verdict::Bulk, Verdict::Spam].iter().any(|verdict| verdict.to_string() == answer.verdict);
        code = code.max(u8::from(is_unwanted));
    }
    json.map_or(Ok(()), Messages::end)?;
    Ok(ExitCode::from(code))
}

fn check(asker: &Asker, message: &RawMessage) -> anyhow::Result<Answer> {
    let content = asker.read(message);
    let exempt = exempt(&asker.rules, &asker.envelope).map(Finding::Exempt);
    let (finding, content) = match exempt.or_else(|| Finding::uncounted(&content)) {
        Some(finding) => (finding, content),
        None => {
            let judged = asker.judge(message, &content)?;
            (judged.finding, judged.content)
        }
    };
    Ok(Answer::of(&asker.rules, &asker.envelope, Some(&content), &finding))
}

fn print_text(out: &mut impl Write, file: &Path, answer: &Answer) -> io::Result<()> {
    writeln!(out, "{}: {}", shown(file), answer.verdict)?;
    if let Some(BodyCount { signature, count, threshold }) = &answer.body {
        writeln!(out, "  body signature {signature}: seen {}, threshold {threshold}", some(count, "time"))?;
    }
    if let Some(NearCount { signatures, count, threshold }) = &answer.near {
        let number = some(signatures.len(), "signature");
        writeln!(out, "  near, by {number}: seen {}, threshold {threshold}", some(count, "time"))?;
    }
    if let Some(SpamWeight { weight, threshold }) = &answer.spam {
        writeln!(out, "  users report it as spam with the weight {weight}, threshold {threshold}")?;
    }
    if let Some(entry) = &answer.circumstances.whitelist {
        writeln!(out, "  wanted by the white list entry {entry}")?;
    }
    if let Some(policy) = &answer.policy {
        let action = answer.action.as_ref().map(|action| format!(": {action}")).unwrap_or_default();
        writeln!(out, "  by the policy {policy}{action}")?;
    }
    for sentence in answer.circumstances.sentences() {
        writeln!(out, "  {sentence}")?;
    }
    if let Some(reason) = &answer.reason {
        writeln!(out, "  {reason}")?;
    }
    Ok(())
}
