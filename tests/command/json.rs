// SPDX-License-Identifier: GPL-3.0-or-later
//! `--json`: every command has it, and prints one object with it.

use crate::closed_pipe::all_commands;
use crate::exit_codes::has;
use bulkmark_testing::server::Server;
use bulkmark_testing::{Site, program};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Commands without `--json`.
const WITHOUT: [(&str, &str); 4] = [
    ("completions", "prints a program of the shell"),
    ("interfaces", "a daemon: log.format is its JSON"),
    ("milter", "a daemon: log.format is its JSON"),
    ("server", "a daemon: log.format is its JSON"),
];

#[test]
fn every_command_has_json() {
    let without: Vec<_> = all_commands().into_iter().filter(|name| !has(name, "json")).collect();
    assert_eq!(
        without,
        WITHOUT.map(|(name, _)| name),
        "another command needs --json, or a reason in WITHOUT"
    );
}

/// The command lines, with a live milter and server, and a site whose milter is stopped.
fn lines(live: &Site, server: &Server, stopped: &Site) -> Vec<String> {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (live, server, config) = (text(&live.config()), text(&server.config()), text(&stopped.config()));
    let plain = text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mail/plain.eml"));
    let (state, new) = (text(&stopped.path("state")), text(&stopped.path("new")));
    let (copy, nkey) = (text(&stopped.path("copy.redb")), text(&stopped.path("fleet.nkey")));
    vec![
        format!("allow --config {live} {plain}"),
        format!("allow --list --config {live}"),
        format!("canary --config {config}"),
        format!("check --config {live} {plain}"),
        format!("client add --own mx1 --config {server}"),
        format!("client set mx1 --rate 9 --config {server}"),
        format!("client rotate mx1 --config {server}"),
        format!("client list --config {server}"),
        format!("client audit --config {server}"),
        format!("client export --config {server}"),
        format!("client remove mx1 --config {server}"),
        format!("config check {config}"),
        format!("config show {config}"),
        format!("correspondents forget --config {live} anna@example.org"),
        format!("digest {plain}"),
        format!("doctor --server --config {server}"),
        format!("doctor --config {live}"),
        format!("explain --config {live} {plain}"),
        format!("fleet key {nkey}"),
        format!("ledger info {state}"),
        format!("ledger verify {state}"),
        format!("ledger diff {state} {copy}"),
        format!("ledger merge {state} {copy} --output {new}"),
        format!("ledger forget --config {live} {plain}"),
        format!("ledger forget --list --config {live}"),
        format!("pause --config {live}"),
        format!("resume --config {live}"),
        format!("refusals --config {live}"),
        format!("report add --config {live} --user anna {plain}"),
        format!("report list --config {live}"),
        format!("report forget --config {live} --all --user anna"),
        format!("report vouch --config {live} --user anna"),
        format!("signature {plain}"),
        format!("status --config {live}"),
        format!("status --server --config {server}"),
        format!("tune {plain}"),
        format!("ledger begin --config {config}"),
    ]
}

/// Runs a command with `--json`, and returns its object.
fn object(line: &str) -> Value {
    let output = Command::new(program()).args(line.split(' ')).arg("--json").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let object: Value = serde_json::from_str(&told).unwrap_or_else(|e| {
        panic!("bulkmark {line}: {e}: {told}{}", String::from_utf8_lossy(&output.stderr))
    });
    assert!(object.is_object(), "bulkmark {line}: {told}");
    object
}

#[test]
fn json_is_one_object() {
    let (live, stopped, server) = (Site::new("[refusals]\ndays = 1\n"), Site::new(""), Server::new(""));
    assert!(stopped.start().terminate().success());
    std::fs::create_dir(stopped.path("new")).unwrap();
    let (_milter, _server) = (live.start(), server.start());
    let copy = stopped.path("copy.redb");
    let backup = format!("ledger backup {} --config {}", copy.display(), live.config().display());
    assert_eq!(object(&backup), serde_json::json!({ "file": copy }));
    let lines = lines(&live, &server, &stopped);
    let objects: Vec<_> = lines.iter().map(|line| object(line)).collect();
    let of = |start: &str| &objects[lines.iter().position(|line| line.starts_with(start)).unwrap()];

    let canary = of("canary");
    let line = std::fs::read_to_string(stopped.path("state/canary")).unwrap();
    assert!(canary["message"].as_str().unwrap().contains(line.trim()), "{canary}");
    assert_eq!(
        (&canary["from"], &canary["to"]),
        (&"postmaster@mx.test".into(), &"postmaster@mx.test".into())
    );
    assert_eq!(of("ledger merge")["file"], stopped.path("new/ledger.redb").to_str().unwrap());
    let begun = of("ledger begin");
    assert!(Path::new(begun["file"].as_str().unwrap()).is_file() && begun["unsent"] == 0, "{begun}");
    let seed = stopped.path("fleet.nkey");
    assert_eq!(of("fleet key")["file"], seed.to_str().unwrap());
    assert!(of("fleet key")["nkey"].as_str().unwrap().starts_with('U') && seed.is_file());
    // The next start begins with empty counts, and there is no ledger before it.
    let again = object(&format!("ledger begin --config {}", stopped.config().display()));
    assert_eq!(again, serde_json::json!({ "file": null, "unsent": 0 }));

    // These need a log of a fleet, or a site that registered; their own tests read their objects.
    let elsewhere = [
        "client approve",
        "client import",
        "fleet export",
        "fleet import",
        "fleet setup",
        "fleet status",
        "join",
        "ledger backup",
    ];
    let is_run = |name: &str| lines.iter().any(|line| line.starts_with(name)) || elsewhere.contains(&name);
    let missing: Vec<_> =
        all_commands().into_iter().filter(|name| has(name, "json") && !is_run(name)).collect();
    assert!(missing.is_empty(), "no test reads the object of {missing:?}");
}
