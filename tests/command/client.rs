// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark client`: kinds of clients and their limits.

use bulkmark_testing::program;
use bulkmark_testing::server::Server;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// A new client needs an explicit kind, and counts of an own client cannot be removed with it.
#[test]
fn what_a_client_is_must_be_said() {
    let server = Server::new("");
    let run = |args: &[&str]| server.try_client(args);
    let refused = run(&["add", "mx"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("add --own mx") && text.contains("add --partner mx"), "{text}");
    assert!(run(&["add", "--own", "mx"]).status.success());
    let refused = run(&["remove", "--with-counts", "mx"]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains("cannot be told apart"), "{text}");
    assert!(run(&["remove", "mx"]).status.success());
    assert!(run(&["add", "--role", "read", "reader"]).status.success());
}

/// A full disk under standard output: the client is there, and the error names what failed, and how to get a token.
#[test]
fn a_token_that_cannot_be_written_is_not_the_last_one() {
    let server = Server::new("");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(program());
    command.args(["client", "add", "--own", "mx", "--config"]).arg(server.config()).stdout(full);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.starts_with("bulkmark: mx is added, but its output is lost; bulkmark client rotate mx "),
        "{text}"
    );
    assert!(text.contains("cannot write to standard output: No space left on device"), "{text}");
    assert!(server.client(&["list"]).contains("mx "));
}

/// A client is made once for all servers: its token, and a newer one, is valid at each server that got the list.
#[test]
fn clients_are_made_once_for_all_servers() {
    let (one, two) = (Server::new(""), Server::new(""));
    one.client(&["add", "--partner", "mx1", "--quota", "1/8"]);
    one.client(&["add", "--role", "peer", "two"]);
    two.client(&["add", "--own", "mx9"]);
    let import = |text: &str| {
        let mut child = Command::new(program())
            .args(["client", "import", "--json", "--config"])
            .arg(two.config())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let changed = |number: usize| format!("{{\"changed\":{number}}}\n");
    let exported = one.client(&["export"]);
    assert!(!exported.contains("bulkmark_"), "no token is in it: {exported}");
    assert_eq!([import(&exported), import(&exported)], [changed(1), changed(0)]);
    one.client(&["rotate", "mx1"]);
    assert_eq!(import(&one.client(&["export"])), changed(1));
    let names = |server: &Server| {
        let list = server.client(&["list"]);
        list.lines().skip(1).map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&two), ["mx9", "mx1"], "a peer is no client of another server");
    assert!(two.client(&["list"]).contains("12.5%"));
    assert_eq!(import("{}"), "");
}

/// A limit that only partners have makes a client a partner, at adding or changing it, with the defaults for the other limits.
#[test]
fn a_limit_of_partners_makes_a_partner() {
    let server = Server::new("");
    let shown = |arguments: &[&str]| {
        server.client(arguments);
        let list = server.client(&["list"]);
        let line = list.lines().nth(1).unwrap();
        line.split_whitespace().skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shown(&["add", "--quota", "1/8", "mx"]), ["partner", "5", "12.5%", "1000"]);
    assert_eq!(shown(&["set", "--own", "--rate", "70", "mx"]), ["own", "-", "-", "70"]);
    assert_eq!(shown(&["set", "--quota", "1/4", "mx"]), ["partner", "5", "25%", "70"]);
    assert_eq!(shown(&["set", "--max-influence", "3", "mx"]), ["partner", "3", "25%", "70"]);
    server.client(&["remove", "mx"]);
    assert_eq!(shown(&["add", "--own", "mx"]), ["own", "-", "-", "-"]);
    assert_eq!(shown(&["set", "--max-influence", "3", "mx"]), ["partner", "3", "6.25%", "1000"]);
}
