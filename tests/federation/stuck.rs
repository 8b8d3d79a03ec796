// SPDX-License-Identifier: GPL-3.0-or-later
//! Upstream servers that run but are useless, or redirect elsewhere: another server takes over, and their answers harm nobody.

use bulkmark_counts::{Chain, Mark, Origin, Vector};
use bulkmark_sync::wire::{SNAPSHOT, SnapshotHead, UPDATES, encode_alive, frame};
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::server::{Server, milter, parameters};
use bulkmark_testing::standin::{StandIn, answer, endless};
use bulkmark_testing::{Daemon, Site, program, wait_until};
use std::process::Command;
use std::sync::atomic::Ordering;

fn fields() -> String {
    format!("bulkmark-parameters: {}\r\n", parameters())
}

fn snapshot(rows: u64) -> Vec<u8> {
    let head = SnapshotHead { id: 1, rows, vector: Vector::default() };
    [&SNAPSHOT[..], &frame(&head.encode())].concat()
}

/// The vector of a server that claims to be ahead of all others.
fn ahead() -> Vec<u8> {
    let mut vector = Vector::default();
    vector.set(Origin(7), Mark { version: 9, chain: Chain([1; 16]) });
    frame(&encode_alive(&vector))
}

/// A milter's first upstream is the stand-in; the second, a real server, takes over.
fn another_takes_over(snapshot: Vec<u8>, updates: Vec<u8>) {
    let server = Server::new("");
    let _server_runs = server.start();
    let stand_in = StandIn::new(0, move |head| {
        Some(if head.contains("/v1/snapshot") { snapshot.clone() } else { updates.clone() })
    });
    let stuck = format!("http://127.0.0.1:{}", stand_in.port);
    let a = milter(&[format!("{{ url = \"{stuck}\" }}"), server.entry("a", "report")]);
    let b = milter(&[server.entry("b", "report")]);
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_b, &letter(1), 5);
    wait_for(&a, &letter(1), 5);
    at_a.log.wait_for(0, &format!("{stuck}: it sent only signs of life for 30 s"));
}

#[test]
fn a_snapshot_of_empty_frames() {
    another_takes_over(endless(&fields(), &snapshot(5), &frame(b"")), answer("404 Not Found", "", b""));
}

#[test]
fn updates_of_empty_frames() {
    another_takes_over(answer("200 OK", &fields(), &snapshot(0)), endless(&fields(), UPDATES, &frame(b"")));
}

#[test]
fn updates_that_are_announced_and_never_come() {
    another_takes_over(answer("200 OK", &fields(), &snapshot(0)), endless(&fields(), UPDATES, &ahead()));
}

/// A row that never ends does not count as a snapshot.
#[test]
fn a_row_that_never_ends() {
    let row = [&40_000u32.to_le_bytes()[..], b"a"].concat();
    another_takes_over(
        endless(&fields(), &[snapshot(5), row].concat(), b"a"),
        answer("404 Not Found", "", b""),
    );
}

/// A milter that follows a server, and calls counts stale if they are older than a second.
fn impatient(entry: &str) -> (Site, Daemon) {
    let mut site = milter(&[entry.to_owned()]);
    site.extra += "max-staleness = \"1s\"\n";
    let daemon = site.start();
    (site, daemon)
}

/// Keep-alives do not make counts fresh.
#[test]
fn counts_are_stale_though_the_server_is_alive() {
    let stand_in = StandIn::new(0, |head| {
        Some(match head.contains("/v1/snapshot") {
            true => answer("200 OK", &fields(), &snapshot(0)),
            false => endless(&fields(), &[UPDATES, &ahead()[..]].concat(), &frame(b"")),
        })
    });
    let (_site, daemon) = impatient(&format!("{{ url = \"http://127.0.0.1:{}\" }}", stand_in.port));
    let mut client = session(&daemon);
    wait_until("a stale count", || {
        let answer = client.message(&Mail::raw(&letter(1)));
        if answer.verdict().contains("; stale=") { Ok(()) } else { Err(answer.verdict()) }
    });
}

/// A server without news confirms that, and the counts are fresh again each time.
#[test]
fn counts_are_fresh_while_nothing_happens() {
    let server = Server::new("");
    let _server_runs = server.start();
    let a = milter(&[server.entry("a", "report")]);
    let at_a = a.start();
    send(&at_a, &letter(1), 1);
    let seconds =
        |name: &str| bulkmark_testing::status(&a)[name].as_u64().ok_or_else(|| format!("no {name}"));
    wait_until("a second sign", || {
        // Nothing was reported since the start: without such confirmations the counts would be nearly as old as the daemon.
        let (age, uptime) = (seconds("staleness-seconds")?, seconds("uptime-seconds")?);
        if uptime >= age + 8 { Ok(()) } else { Err(format!("{age} s old after {uptime} s")) }
    });
}

/// A server cannot redirect a milter and its token elsewhere.
#[test]
fn redirects_are_not_followed() {
    let elsewhere = StandIn::new(0, |_| Some(answer("200 OK", &fields(), b"")));
    let to = format!("{}Location: http://127.0.0.1:{}/v1/updates\r\n", fields(), elsewhere.port);
    let stand_in = StandIn::new(0, move |_| Some(answer("307 Temporary Redirect", &to, b"over there")));
    let site = milter(&[format!("{{ url = \"http://127.0.0.1:{}\" }}", stand_in.port)]);
    let daemon = site.start();
    daemon.log.wait_for(0, "307 Temporary Redirect: over there");
    send(&daemon, &letter(1), 1);
    let asked = stand_in.asked.load(Ordering::Relaxed);
    wait_until("more requests", || match stand_in.asked.load(Ordering::Relaxed) {
        now if now > asked + 1 => Ok(()),
        _ => Err("none".to_owned()),
    });
    assert_eq!(elsewhere.asked.load(Ordering::Relaxed), 0);
}

/// A server's answers cannot control a reader's terminal.
#[test]
fn a_server_cannot_write_to_terminals() {
    let said = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r\nall is well\n".repeat(20);
    let stand_in = StandIn::new(0, move |_| Some(answer("500 Internal Server Error", "", said.as_bytes())));
    let url = format!("http://127.0.0.1:{}", stand_in.port);
    let site = milter(&[format!("{{ url = \"{url}\" }}")]);
    let daemon = site.start();
    let line = daemon.log.wait_for(0, "500 Internal Server Error: ");
    let run = |arguments: &[&str]| {
        let config = site.config();
        let output = Command::new(program()).args(arguments).arg("--config").arg(config).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let ledger = Command::new(program()).args(["ledger", "info", &url]).output().unwrap();
    let ledger = String::from_utf8(ledger.stderr).unwrap();
    let texts = [line, run(&["status"]), run(&["status", "--json"]), run(&["doctor"]), ledger];
    for text in texts {
        assert!(text.contains("500 Internal Server Error"), "{text}");
        let harmful = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!text.contains(harmful), "{text:?}");
        let line = text.lines().find(|line| line.contains("500 Internal Server Error"));
        assert!(line.is_some_and(|line| line.len() < 5000), "it is not cut");
    }
}

/// A password in an address is refused, and never shown.
#[test]
fn a_password_in_an_address_is_not_shown() {
    let site = milter(&["{ url = \"https://me:secret@counts.example.org\" }".to_owned()]);
    let daemon = site.spawn();
    let told = daemon.log.wait_for(0, "token-file");
    assert!(told.contains("upstream[0].url: found an address with a user name or password"), "{told}");
    let lines = daemon.log.clone();
    assert_eq!(daemon.wait().code(), Some(78));
    assert!(!lines.lines().iter().any(|line| line.contains("secret")), "{:?}", lines.lines());
    let url = "https://me:secret@counts.example.org";
    let output = Command::new(program()).args(["ledger", "info", url]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("token-file") && !told.contains("secret"), "{told}");
}
