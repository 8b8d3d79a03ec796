// SPDX-License-Identifier: GPL-3.0-or-later
//! A reader that stops early, as in `bulkmark explain letter.eml | head -1`: every command ends silently, as a program ended by SIGPIPE.

use bulkmark::command::Cli;
use bulkmark_testing::Site;
use bulkmark_testing::server::Server;
use clap::CommandFactory as _;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a command. If `output` or `error` is false, that end is closed.
fn run(args: &[&str], output: bool, error: bool) -> Output {
    let stdio = |open: bool| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        if open { Stdio::piped() } else { writer.into() }
    };
    let mut command = Command::new(bulkmark_testing::program());
    command.args(args).stdin(Stdio::null()).stdout(stdio(output)).stderr(stdio(error));
    command.output().unwrap()
}

/// All commands, with the names above them: `ledger info`.
pub(crate) fn all_commands() -> BTreeSet<String> {
    let mut waiting = vec![(String::new(), Cli::command())];
    let mut all = BTreeSet::new();
    while let Some((name, command)) = waiting.pop() {
        if !command.has_subcommands() {
            all.insert(name.clone());
        }
        let below = command.get_subcommands().map(|c| (format!("{name} {}", c.get_name()), c.clone()));
        waiting.extend(below.map(|(name, command)| (name.trim().to_owned(), command)));
    }
    all
}

/// The commands that print JSON, too, in both forms.
fn of_json(config: &str, of_server: &str, of_live: &str, state: &str, plain: &str) -> Vec<String> {
    vec![
        format!("check --config {config} {plain}"),
        format!("check --json --config {config} {plain}"),
        format!("client list --json --config {of_server}"),
        format!("config check --json {config}"),
        format!("digest --json {plain}"),
        format!("doctor --server --json --config {of_server}"),
        format!("explain --config {config} {plain}"),
        format!("explain --json --config {config} {plain}"),
        format!("ledger verify --json {state}"),
        format!("report add --json --config {of_live} --user anna {plain}"),
        format!("signature {plain}"),
        format!("signature --json {plain}"),
        format!("status --server --json --config {of_server}"),
        format!("tune {plain}"),
        format!("tune --json {plain}"),
    ]
}

#[test]
fn every_command_ends_without_a_word() {
    let (site, other, server) = (Site::new(""), Site::new(""), Server::new(""));
    for site in [&site, &other] {
        assert!(site.start().terminate().success());
    }
    let live = Site::new("[refusals]\ndays = 1\n");
    let (served, serves) = (server.start(), live.start());
    let of_live = live.config().to_str().unwrap().to_owned();
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mail/plain.eml");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (config, of_server) = (text(&site.config()), text(&server.config()));
    let (state, others) = (text(&site.path("state")), text(&other.path("state")));
    let (new, plain) = (text(&site.path("new")), text(&plain));
    let (copy, of_other) = (text(&site.path("copy.redb")), text(&other.config()));
    let nkey = text(&site.path("fleet.nkey"));
    std::fs::create_dir(&new).unwrap();
    let mut lines = vec![
        format!("allow --list --config {of_live}"),
        format!("canary --config {config} --to a@example.org"),
        format!("client add --own mx1 --config {of_server}"),
        format!("client audit --config {of_server}"),
        format!("client export --config {of_server}"),
        format!("client list --config {of_server}"),
        format!("client rotate mx1 --config {of_server}"),
        "completions bash".to_owned(),
        format!("correspondents forget --config {of_live} anna@example.org"),
        format!("config check {config}"),
        format!("config show {config}"),
        format!("digest {plain}"),
        format!("doctor --nagios --server --config {of_server}"),
        format!("doctor --server --config {of_server}"),
        format!("fleet key {nkey}"),
        format!("ledger forget --config {of_live} {plain}"),
        format!("ledger info {state}"),
        format!("ledger verify {state}"),
        format!("ledger diff {state} {state}"),
        format!("ledger merge {state} {others} --output {new}"),
        format!("ledger backup --config {config} {copy}"),
        format!("ledger begin --config {of_other}"),
        format!("pause --config {of_live}"),
        format!("refusals --config {of_live}"),
        format!("resume --config {of_live}"),
        format!("report add --config {of_live} --user anna {plain}"),
        format!("report list --config {of_live}"),
        format!("report forget --config {of_live} --all --user anna"),
        format!("report vouch --config {of_live} --user anna"),
        format!("status --server --config {of_server}"),
    ];
    lines.extend(of_json(&config, &of_server, &of_live, &state, &plain));
    for line in &lines {
        let output = run(&line.split(' ').collect::<Vec<_>>(), false, true);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*error), (Some(141), ""), "bulkmark {line}");
    }
    every_one_is_tried(&lines);
    drop((served, serves));
}

fn every_one_is_tried(lines: &[String]) {
    let is_run = |name: &String| lines.iter().any(|line| line.replace("--json ", "").starts_with(name));
    // Commands of a fleet need a log, and others a site that registered, or clients of another server; they write by the same code.
    let silent = [
        "client approve",
        "client import",
        "join",
        "client remove",
        "client set",
        "fleet setup",
        "fleet status",
        "fleet import",
        "fleet export",
        "milter",
        "interfaces",
        "server",
    ];
    let missing: Vec<_> =
        all_commands().into_iter().filter(|name| !is_run(name) && !silent.contains(&&**name)).collect();
    assert!(missing.is_empty(), "nobody tried {missing:?} with a closed pipe");
}

/// A command with a closed error output ends as with an open one.
#[test]
fn complaints_to_nobody_are_no_panic() {
    let server = Server::new("");
    let of_server = server.config();
    let config = ["--config", of_server.to_str().unwrap()];
    for (args, code) in [
        (&["check", "/nowhere/a.eml"][..], 78),
        (&["client", config[0], config[1], "add", "mx1"], 2),
        (&["client", config[0], "/nowhere/server.toml", "list"], 78),
        (&["canary", "--config", "/nowhere/milter.toml", "--to", "a@example.org"], 78),
        (&["config", "check", "/nowhere/milter.toml"], 78),
        (&["interfaces", "--config", "/nowhere/interfaces.toml"], 78),
        (&["explain", "/nowhere/a.eml"], 78),
        (&["ledger", "info", "/nowhere"], 2),
        (&["milter", "--config", "/nowhere/milter.toml"], 78),
        (&["server", "--config", "/nowhere/server.toml"], 78),
        (&["signature", "/nowhere/a.eml"], 2),
        (&["status", "--config", "/nowhere/milter.toml"], 78),
        (&["tune", "/nowhere"], 2),
        (&["nonsense"], 2),
    ] {
        assert_eq!(run(args, true, false).status.code(), Some(code), "{args:?}");
    }
}
