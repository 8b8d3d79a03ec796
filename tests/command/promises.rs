// SPDX-License-Identifier: GPL-3.0-or-later
//! The promises of docs/promises.md for headers, log lines, JSON, commands, configuration, white lists, metrics and the files of the state
//! directory. `tests/data/0.1.0` has all of them as 0.1.0 writes and reads them: this program must still write all members, fields and
//! names of 0.1.0, and read all of its files. Additions are allowed.
//!
//! `WRITE_FIXTURES=1` with one thread makes them again, which is right only until 0.1.0 is released; afterwards a release adds its own directory.

use crate::closed_pipe::all_commands;
use bulkmark::command::Cli;
use bulkmark_testing::clock::Clock;
use bulkmark_testing::letters::letter;
use bulkmark_testing::milter::{Client, Mail};
use bulkmark_testing::server::Server;
use bulkmark_testing::{Daemon, Site, program, repository, text_of};
use clap::CommandFactory as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Uses every mechanism that adds a field, in a rehearsal, so that messages are delivered with a header.
const SETTINGS: &str = "exempt = [\"authenticated\"]\nexempt-networks = [\"198.51.100.0/24\"]\nactions.bulk = \"reject\"\nactions.spam = \"reject\"\n\
    actions.rehearse = true\nrefusals.days = 14\nthresholds.spam = 1\nuser-reports.trust = { new-reporter = 1.0 }\nledger.capacity = 1000\n";

fn fixture(name: &str) -> PathBuf {
    repository().join("tests/data/0.1.0").join(name)
}

fn is_writing() -> bool {
    std::env::var_os("WRITE_FIXTURES").is_some()
}

/// The output of 0.1.0. When fixtures are made, it is the current output.
fn then(name: &str, now: &str) -> String {
    if is_writing() && !now.is_empty() {
        fs::create_dir_all(fixture("")).unwrap();
        fs::write(fixture(name), now).unwrap();
    }
    fs::read_to_string(fixture(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn site() -> Site {
    let mut site = Site::new("");
    site.extra = format!("{SETTINGS}whitelist.files = [{:?}]\n", site.path("whitelist"));
    fs::write(site.path("whitelist"), "sender editor@club.example\n").unwrap();
    site
}

/// Standard output of a command, with `DIR` for the site's directory.
fn run(site: &Site, words: &[&str]) -> String {
    let output = Command::new(program()).args(words).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code <= 1), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().replace(site.directory.path().to_str().unwrap(), "DIR")
}

/// Sends a message of each kind, and returns their headers, each behind the name of its kind.
fn day(site: &Site, daemon: &Daemon) -> String {
    let mut headers = String::new();
    let mut send = |kind: &str, ip: &str, sender: &str, message: &[u8], recipients: usize| {
        let mut client = Client::connect(daemon);
        client.client("client.example.org", ip);
        let recipients = (0..recipients).map(|n| format!("recipient{n}@example.net")).collect();
        let answer = client.message(&Mail { sender: sender.to_owned(), recipients, ..Mail::raw(message) });
        headers += &format!("{kind}: {}\n", answer.header());
    };
    let from = "sender@example.org";
    send("clean", "192.0.2.7", from, &letter(1), 1);
    send("held by messages", "192.0.2.7", from, &letter(2), 20);
    for network in 1..=5 {
        send("copies", &format!("203.0.{network}.7"), from, &letter(1), 4);
    }
    send("would", "192.0.2.7", from, &letter(1), 1);
    send("whitelisted", "192.0.2.7", "editor@club.example", &letter(1), 1);
    send("exempt", "198.51.100.7", from, &letter(1), 1);
    send("no content", "192.0.2.7", from, b"Subject: x\r\n\r\n", 1);
    let message = site.path("spam.eml");
    fs::write(&message, letter(3)).unwrap();
    run(
        site,
        &[
            "report",
            "add",
            "--user",
            "anna",
            "--control",
            &path(site, "control.sock"),
            &path(site, "spam.eml"),
        ],
    );
    send("spam", "192.0.2.7", from, &letter(3), 1);
    headers.replace(site.directory.path().to_str().unwrap(), "DIR")
}

fn path(site: &Site, name: &str) -> String {
    site.path(name).to_str().unwrap().to_owned()
}

/// The fields of a header or a log line: `name=value`, and a name alone.
fn fields<'a>(line: &'a str, separator: &str) -> Vec<(&'a str, &'a str)> {
    line.split(separator).map(|field| field.split_once('=').unwrap_or((field, ""))).collect()
}

/// A member of an older object that this one lacks, or that has another type here; an array's first element stands for all.
fn lacks(now: &Value, then: &Value, at: &str) -> Option<String> {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => then.iter().find_map(|(name, value)| {
            let at = format!("{at}.{name}");
            now.get(name).map_or_else(|| Some(format!("{at} is missing")), |now| lacks(now, value, &at))
        }),
        (Value::Array(now), Value::Array(then)) => lacks(now.first()?, then.first()?, &format!("{at}[0]")),
        (Value::Null, _) | (_, Value::Null) => None,
        _ if std::mem::discriminant(now) == std::mem::discriminant(then) => None,
        _ => Some(format!("{at} was {then} and is {now}")),
    }
}

/// Headers, log lines, JSON, and the files of the state directory, of one day.
#[test]
fn what_0_1_0_wrote_is_written() {
    let site = site();
    let config = path(&site, "milter.toml");
    let daemon = site.start();
    let headers = day(&site, &daemon);
    let message = path(&site, "spam.eml");
    run(&site, &["allow", "--reason", "wanted", "--control", &path(&site, "control.sock"), &message]);
    run(&site, &["pause", "--reason", "complaints", "--control", &path(&site, "control.sock")]);

    let older = then("headers.txt", &headers);
    assert_eq!(older.lines().count(), headers.lines().count());
    for (then, now) in older.lines().zip(headers.lines()) {
        let missing: Vec<_> =
            fields(then, "; ").into_iter().filter(|field| !fields(now, "; ").contains(field)).collect();
        assert!(missing.is_empty(), "{now} lacks {missing:?}");
    }

    let is_of_message = |line: &&String| line.contains(" from=<");
    let lines: Vec<_> = daemon.log.lines().iter().filter(is_of_message).cloned().collect();
    let lines = lines.join("\n").replace(site.directory.path().to_str().unwrap(), "DIR") + "\n";
    let older = then("log.txt", &lines);
    for (then, now) in older.lines().zip(lines.lines()) {
        let names =
            |line| fields(line, " ").into_iter().map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>();
        let missing: Vec<_> = names(then).difference(&names(now)).cloned().collect();
        assert!(missing.is_empty(), "{now} lacks {missing:?}");
    }

    let log = path(&site, "log.txt");
    fs::copy(fixture("log.txt"), &log).unwrap();
    let of_config = ["--config", &config];
    let commands: [(&str, &[&str]); 9] = [
        ("check", &["check", "--json", &message]),
        ("explain", &["explain", "--json", &message]),
        ("signature", &["signature", "--json", &message]),
        ("status", &["status", "--json"]),
        ("refusals", &["refusals", "--json"]),
        ("report-list", &["report", "list", "--json"]),
        ("digest", &["digest", "--json", &log]),
        ("doctor", &["doctor", "--json"]),
        ("config-check", &["config", "check", "--json"]),
    ];
    for (name, words) in commands {
        let words = if name == "digest" { words.to_vec() } else { [words, &of_config[..]].concat() };
        let text = run(&site, &words);
        let now: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}: {text}"));
        let older = then(&format!("{name}.json"), &format!("{now:#}\n"));
        assert_eq!(lacks(&now, &serde_json::from_str(&older).unwrap(), name), None);
    }
    assert!(daemon.terminate().success());
    if is_writing() {
        let _ = fs::remove_dir_all(fixture("state"));
        copy(&site.path("state"), &fixture("state"));
        // A megabyte without content: no message of this day has a correspondent.
        fs::remove_file(fixture("state/correspondents.redb")).unwrap();
        let day = Command::new("date").args(["--utc", "+@%F %T"]).output().unwrap();
        fs::write(fixture("day.txt"), day.stdout).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap().flatten().filter(|file| file.file_type().unwrap().is_file()) {
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// A state directory of 0.1.0: counts, reports, orders, a pause and refusals are still there.
#[test]
fn what_0_1_0_stored_is_read() {
    let mut site = site();
    copy(&fixture("state"), &site.path("state"));
    // Counts and refusals have an age, so the daemon's clock shows that day.
    let Some(_clock) = Clock::of(&mut site, then("day.txt", "").trim()) else { return };
    let daemon = site.start();
    let config = path(&site, "milter.toml");
    let printed = |words: &[&str]| run(&site, &[words, &["--config", &config]].concat());
    let lists = daemon.log.lines().join("\n");
    fs::write(site.path("spam.eml"), letter(3)).unwrap();
    let status: Value = serde_json::from_str(&printed(&["status", "--json"])).unwrap();
    assert!(
        status["ledger"]["slices"][0]["signatures"].as_u64().is_some_and(|n| n > 20),
        "{status:#}\n{lists}"
    );
    assert!(status.to_string().contains("complaints"), "the pause: {status:#}");
    assert!(printed(&["allow", "--list"]).contains("wanted"));
    let reports: Value = serde_json::from_str(&printed(&["report", "list", "--json"])).unwrap();
    let older: Value = serde_json::from_str(&then("report-list.json", "")).unwrap();
    assert_eq!(reports["reporters"][1]["reporter"], older["reporters"][1]["reporter"]);
    assert!(printed(&["refusals", "--since", "36500d"]).contains("sender@example.org"));
}

/// The clients of a server of 0.1.0, with their roles and tokens.
#[test]
fn the_clients_of_0_1_0_are_known() {
    let server = Server::new("");
    let state = server.site.path("state");
    if is_writing() {
        server.client(&["add", "--own", "mx1"]);
        server.client(&["add", "--partner", "partner", "--quota", "1", "--rate", "100"]);
        copy(&state, &fixture("server-state"));
    }
    copy(&fixture("server-state"), &state);
    let now = server.client(&["list", "--json"]);
    let [now, older] =
        [now.clone(), then("clients.json", &now)].map(|text| serde_json::from_str::<Value>(&text).unwrap());
    assert_eq!(lacks(&now, &older, "clients"), None);
    assert!(now.to_string().contains("mx1") && now.to_string().contains("partner"), "{now}");
}

/// Every command and every option of 0.1.0.
#[test]
fn the_command_lines_of_0_1_0_are_taken() {
    let mut now = String::new();
    for name in all_commands() {
        let mut command = Cli::command();
        for word in name.split(' ') {
            command = command.find_subcommand(word).unwrap().clone();
        }
        now += &format!("{name}\n");
        for option in command.get_arguments().filter_map(|argument| argument.get_long()) {
            now += &format!("{name} --{option}\n");
        }
    }
    let names: BTreeSet<_> = now.lines().collect();
    let older = then("commands.txt", &now);
    let gone: Vec<_> = older.lines().filter(|line| !names.contains(line)).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

/// Every key and every form of white-list entry of 0.1.0; a key that was renamed since then causes a warning.
#[test]
fn the_configuration_of_0_1_0_is_taken() {
    for (name, server) in [("milter.toml", false), ("server.toml", true)] {
        then(name, &text_of(&format!("conf/reference/{name}")));
        let mut command = Command::new(program());
        command.args(["config", "check", "--config"]).arg(fixture(name)).args(server.then_some("--server"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let entries = text_of("conf/whitelist.example");
    // Examples are commented out, without a space behind the sign. The files that they include do not exist.
    let entries = entries.lines().filter_map(|line| line.strip_prefix('#'));
    let is_entry = |line: &&str| line.starts_with(char::is_lowercase) && !line.starts_with("include");
    let older = then("whitelist", &(entries.filter(is_entry).collect::<Vec<_>>().join("\n") + "\n"));
    let site = site();
    fs::write(site.path("whitelist"), older).unwrap();
    let output =
        Command::new(program()).args(["config", "check", "--config"]).arg(site.config()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Every metric of 0.1.0, with its type and labels. `tests/page/metrics.rs` compares the page with the program.
#[test]
fn the_metrics_of_0_1_0_are_there() {
    let metrics = |text: &str| -> Vec<(String, BTreeSet<String>, String)> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `bulkmark_")?.split_once("` | "));
        rows.map(|(name, rest)| {
            let (name, labels) = name.trim_end_matches('}').split_once('{').unwrap_or((name, ""));
            (
                name.to_owned(),
                labels.split(',').map(str::to_owned).collect(),
                rest.split(' ').next().unwrap().to_owned(),
            )
        })
        .collect()
    };
    let page = text_of("docs/metrics.md");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `bulkmark_")).collect();
    let shortened: Vec<_> =
        rows.iter().map(|row| row.split(" | ").take(2).collect::<Vec<_>>().join(" | ")).collect();
    let (now, older) = (metrics(&page), then("metrics.txt", &(shortened.join("\n") + "\n")));
    let older = metrics(&older);
    assert!(older.len() > 50, "{}", older.len());
    for (name, labels, kind) in older {
        let found = now.iter().any(|(n, l, k)| *n == name && *k == kind && labels.is_subset(l));
        assert!(found, "bulkmark_{name}{labels:?}, a {kind}, is gone or has lost a label");
    }
}
