// SPDX-License-Identifier: GPL-3.0-or-later
//! Reports of users: `bulkmark report`.

use super::{Site, first_message, program};
use serde_json::Value;
use std::io::{ErrorKind, Write as _};
use std::process::{Command, Output, Stdio};

/// The command for a message on standard input, to this site's milter: `report add`, or the one that the first argument names.
pub fn command(site: &Site, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    let (verb, arguments) = verb("add", arguments);
    command
        .args(["report", verb, "--json", "--control"])
        .arg(site.path("control.sock"))
        .args(arguments)
        .args((verb == "forget").then_some("-"));
    command
}

/// Returns the first argument if it is `forget`, or else this one; and the rest.
fn verb<'a>(usual: &'a str, arguments: &'a [&'a str]) -> (&'a str, &'a [&'a str]) {
    match arguments {
        [verb @ ("forget" | "vouch"), rest @ ..] => (verb, rest),
        rest => (usual, rest),
    }
}

/// Runs a command with this message on its standard input.
pub fn run(command: &mut Command, message: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It need not have read a message that it refuses.
    let written = child.stdin.take().unwrap().write_all(message);
    assert!(written.is_ok() || written.is_err_and(|e| e.kind() == ErrorKind::BrokenPipe));
    child.wait_with_output().unwrap()
}

/// A milter's answer to a report.
#[track_caller]
pub fn report(site: &Site, arguments: &[&str], message: &[u8]) -> Value {
    let output = run(&mut command(site, arguments), message);
    first_message(&output.stdout)
}

/// A report whose signatures are all new for this user, or all withdrawn.
#[track_caller]
pub fn assert_counted(answer: &Value, field: &str) {
    let signatures = answer["signatures"].as_u64().unwrap();
    assert!(signatures > 3, "{answer}");
    assert_eq!(answer[field], signatures, "{answer}");
}

/// The output of `bulkmark report list`, or of `report forget --all`.
#[track_caller]
pub fn listed(site: &Site, arguments: &[&str]) -> Value {
    let mut command = Command::new(program());
    let (verb, arguments) = verb("list", arguments);
    command.args(["report", verb, "--json", "--control"]).arg(site.path("control.sock")).args(arguments);
    command.args((verb == "forget").then_some("--all"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The summed weight of the users who report a message as spam.
pub fn weight(site: &Site, message: &[u8]) -> Option<String> {
    let (_, answer) = site.check(message);
    let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"));
    answer["spam"]["weight"].as_str().map(str::to_owned)
}
