// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark explain`

use super::asker::{Asker, MessageArgs};
use super::output::{output, print, shown};
use super::show::time;
use super::signature::read_message;
use crate::judging::{Counted, Explained, Explanation, UserReports};
use bulkmark_mail::RawMessage;
use bulkmark_policy::{Verdict, Weight};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Explain why a message is bulk or not.
///
/// Prints every signature of the message, the content that it was made from, how often and when it was seen, and the resulting verdict. Counts
/// nothing. Asks the running milter as `bulkmark check` does. Exit code 0: done; 2: error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    message: MessageArgs,
    /// The message; "-" is standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let asker = args.message.asker()?;
    let explanation = explain(&asker, &read_message(&args.file)?)?;
    if args.message.json {
        print(serde_json::to_string(&explanation)?)?;
    } else {
        write!(output(), "{}: {}", shown(&args.file), as_text(&explanation))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(asker: &Asker, message: &RawMessage) -> anyhow::Result<Explanation> {
    let judged = asker.judge(message, &asker.read(message))?;
    let basis = (&asker.rules, &asker.envelope);
    let shares = asker.shares(&judged.signatures(basis.0, basis.1), judged.may_ask)?;
    Ok(Explanation::new(basis, message, &judged, shares))
}

fn as_text(explanation: &Explanation) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(text, "{}, since {}", explanation.verdict, explanation.because);
    if let Some(policy) = &explanation.policy {
        let _ = writeln!(text, "by the policy {policy}");
    }
    for sentence in explanation.circumstances.sentences() {
        let _ = writeln!(text, "{sentence}");
    }
    if let Some(Counted { body, near }) = explanation.earlier {
        let [body, near] = [body, near].map(Option::unwrap_or_default);
        let _ =
            writeln!(text, "counted under the old federation key, and included: body {body}, near {near}");
    }
    for statement in &explanation.authentication {
        let _ = writeln!(text, "{statement}");
    }
    let mut kind = |name: &str, all: &[&Explained]| {
        for explained in all {
            let _ = writeln!(text, "\n{name} {}: {}", explained.signature, times(explained.count));
            let _ = writeln!(text, "  {}", explained.made_of);
            for (place, shares) in [("here", &explained.seen.own), ("by others", &explained.seen.others)] {
                for share in shares {
                    let _ = writeln!(text, "  window of {}: {} {place}", time(share.window), share.count);
                }
            }
            if explained.seen.waiting > 0 {
                let _ = writeln!(text, "  waiting for a server: {}", explained.seen.waiting);
            }
            if let Some(asked) = explained.seen.asked {
                let _ = writeln!(text, "  the server counts {asked} in all");
            }
            text.push_str(&letters_text(explained));
        }
    };
    kind("body", &explanation.body.iter().collect::<Vec<_>>());
    kind("near", &explanation.near.iter().collect::<Vec<_>>());
    if let Some(user_reports) = &explanation.user_reports {
        text.push_str(&user_reports_text(user_reports));
    }
    if explanation.verdict != Verdict::Exempt.to_string() {
        text.push_str(
            "\nParts of its envelope that are not given (--ip, --sender, --recipient, --login, --listener) are unknown here; white lists and \
             policies may depend on them.\n",
        );
    }
    text
}

/// Describes the number of letters in which it was found, and whether it is therefore a block.
fn letters_text(explained: &Explained) -> String {
    let mut text = String::new();
    if explained.strays > 0 {
        let _ = writeln!(text, "  of these below new text: {}", explained.strays);
    }
    if explained.unsure > 0 {
        let Explained { unsure, by_sender, .. } = explained;
        let _ = writeln!(text, "  of these perhaps below new text: {unsure}, from this sender: {by_sender}");
    }
    if !explained.counts {
        text.push_str("  so it does not count\n");
    }
    text
}

/// Describes the number and times of user reports, without reporters.
fn user_reports_text(user_reports: &UserReports) -> String {
    let mut text = format!("\nusers report it as spam, with the weight {}\n", user_reports.weight);
    for (name, shares) in [("nominated", &user_reports.nominated), ("revoked", &user_reports.revoked)] {
        let weight = |units: u32| Weight::of_units(units);
        for (place, shares) in [("here", &shares.own), ("by others", &shares.others)] {
            for share in shares {
                let _ =
                    writeln!(text, "  {name} from {}: {} {place}", time(share.window), weight(share.count));
            }
        }
        if shares.waiting > 0 {
            let _ = writeln!(text, "  {name}, waiting for a server: {}", weight(shares.waiting));
        }
        if shares.reporters > 0 {
            let _ = writeln!(
                text,
                "  {name} by users here: {}, in all {}",
                shares.reporters,
                weight(shares.said)
            );
        }
    }
    text
}

fn times(count: u32) -> String {
    match count {
        0 => "never seen".to_owned(),
        1 => "seen once".to_owned(),
        n => format!("seen {n} times"),
    }
}
