// SPDX-License-Identifier: GPL-3.0-or-later
//! The table of exit codes in bulkmark(1), over all commands: 2 for an invalid command line, 75 if the daemon does not answer, 78 for an
//! unusable configuration.

use crate::closed_pipe::all_commands;
use bulkmark::command::Cli;
use bulkmark_testing::server::Server;
use bulkmark_testing::{Site, program};
use clap::CommandFactory as _;
use std::process::{Command, Stdio};

/// Exit code and standard error.
fn run(words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program()).args(words).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Whether a command, or one above it, has this option.
pub(crate) fn has(name: &str, option: &str) -> bool {
    let mut command = Cli::command();
    let has = |command: &clap::Command| command.get_arguments().any(|arg| arg.get_long() == Some(option));
    name.split(' ').any(|word| {
        command = command.find_subcommand(word).unwrap().clone();
        has(&command)
    })
}

/// Arguments that a command requires.
fn needed(name: &str) -> &'static [&'static str] {
    match name {
        "allow" => &["--list"],
        "client add" => &["--own", "x"],
        "client set" | "client approve" | "client rotate" | "client remove" => &["x"],
        "correspondents forget" => &["x@example.org"],
        "fleet import" | "fleet export" => &["/nowhere"],
        "join" => &["https://counts.example.org"],
        "ledger backup" => &["/nowhere/copy"],
        "ledger forget" => &["00000000000000000000000000000000"],
        "report forget" => &["--all", "--user", "x"],
        "report vouch" => &["--user", "x"],
        "signature" | "tune" => &["/nowhere"],
        _ => &[],
    }
}

#[test]
fn a_command_line_that_is_not_valid_is_2() {
    for name in all_commands() {
        let words: Vec<_> = name.split(' ').chain(["--no-such-option"]).collect();
        assert_eq!(run(&words).0, Some(2), "{name}");
    }
    for words in [&[][..], &["report"], &["fleet"]] {
        let (code, told) = run(words);
        assert!(code == Some(2) && told.starts_with("bulkmark: a command is missing\n"), "{told}");
    }
    // Monitoring takes 2 for a broken daemon, and 3 for a plugin that cannot be asked.
    for words in [&["doctor", "--nagios", "--bogus"], &["doctor", "--nagios", "--quiet"]] {
        assert_eq!(run(words).0, Some(3), "{words:?}");
    }
    for (words, expected) in [
        (&["refusals", "--since", "yesterday"][..], "expected a time such as 30d or 2h, up to 36500d"),
        (&["pause", "--for", "0s"], "expected a time such as 30d or 2h"),
        (&["client", "set", "x", "--expires", "2020-01-01"], "expected a time such as 30d or 2h"),
        (&["correspondents", "forget", "anna"], "expected an address such as anna@example.org"),
        (&["check", "--recipient", "anna"], "expected an address such as anna@example.org"),
        (&["digest", "--recipient", "example.org"], "or @example.org for a whole domain"),
    ] {
        let (code, told) = run(words);
        assert!(code == Some(2) && told.contains(expected), "{words:?}: {told}");
    }
    let long = "x".repeat(3000);
    let (code, told) = run(&["pause", "--control", "/nowhere/c", "--reason", &long]);
    assert!(
        code == Some(2) && told == "bulkmark: --reason: found 3000 bytes, expected at most 500\n",
        "{told}"
    );
}

#[test]
fn a_configuration_that_cannot_be_used_is_78() {
    let site = Site::new("no-such-key = 1\n");
    let broken = site.config();
    let mut tried = 0;
    for name in all_commands().iter().filter(|name| has(name, "config")) {
        for config in ["/nowhere/milter.toml", broken.to_str().unwrap()] {
            let (code, error) =
                run(&[&name.split(' ').collect::<Vec<_>>(), needed(name), &["--config", config]].concat());
            let told = name == "doctor" || error.starts_with("bulkmark: ");
            assert!(code == Some(78) && told, "{name} --config {config}: {code:?} {error}");
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried}");
    // These need a table that other configurations may lack.
    let (alone, server) = (Site::new(""), Server::new(""));
    for (name, config) in [
        ("fleet status", alone.config()),
        ("fleet import", server.config()),
        ("fleet export", server.config()),
    ] {
        let words =
            [name.split(' ').collect(), needed(name).to_vec(), vec!["--config", config.to_str().unwrap()]];
        let (code, error) = run(&words.concat());
        assert!(code == Some(78) && error.contains(": expected [fleet] "), "{name}: {code:?} {error}");
    }
}

#[test]
fn a_daemon_that_does_not_answer_is_75() {
    let site = Site::new("");
    let config = site.config();
    for name in [
        "status",
        "allow",
        "pause",
        "resume",
        "correspondents forget",
        "report add",
        "report list",
        "report forget",
        "report vouch",
    ] {
        let message = site.path("m.eml");
        std::fs::write(&message, "Subject: s\n\nSome words\n").unwrap();
        let more = if name == "report add" { vec![message.to_str().unwrap()] } else { needed(name).to_vec() };
        let words = [name.split(' ').collect(), more, vec!["--config", config.to_str().unwrap()]].concat();
        let (code, error) = run(&words);
        assert!(code == Some(75) && error.starts_with("bulkmark: "), "{name}: {code:?} {error}");
    }
}

#[test]
fn other_errors_are_2_and_begin_with_the_name() {
    let site = Site::new("[refusals]\ndays = 0\n");
    let config = site.config();
    let config = config.to_str().unwrap();
    for words in [
        &["signature", "/nowhere/a.eml"][..],
        &["check", "--config", config, "/nowhere/a.eml"],
        &["explain", "--config", config, "/nowhere/a.eml"],
        &["canary", "--config", config],
        &["digest", "/nowhere/log"],
        &["ledger", "info", "/nowhere"],
        &["refusals", "--config", config],
        &["ledger", "forget", "--config", config, "/nowhere"],
        &["report", "add", "--config", config, "-"],
        &["tune", "/nowhere"],
        &["fleet", "setup", "--log", "mysql://x", "--clients", "/nowhere"],
        &["--nonsense"],
        &["nonsense"],
        &["refusals", "--config", config, "--since", "x"],
    ] {
        let (code, error) = run(words);
        assert!(code == Some(2) && error.starts_with("bulkmark: "), "{words:?}: {code:?} {error}");
    }
}
