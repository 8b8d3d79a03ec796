// SPDX-License-Identifier: GPL-3.0-or-later
//! A full disk at a server and at a milter of a federation: acknowledged reports are kept, others are sent again, and each report is
//! counted once.

use bulkmark_testing::http::ask;
use bulkmark_testing::letters::{count, letter, send, wait_for};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::wait_until;
use std::fs;
use std::path::{Path, PathBuf};

/// Small filters, so that a small disk holds them.
const CAPACITY: &str = "capacity = 20000";

/// Fills the disk completely.
fn fill(directory: &Path) -> PathBuf {
    let filler = directory.join("filler");
    assert!(fs::write(&filler, vec![0x55; 8 << 20]).is_err(), "the disk is not full");
    filler
}

/// A server with a full disk refuses reports, and gives the reason; it still answers questions. Its milters keep their reports until it has
/// space again.
#[test]
fn a_server_with_a_full_disk_refuses_reports_and_answers_the_rest() {
    let mut server = Server::new("");
    server.ledger = CAPACITY.to_owned();
    let state = server.site.path("state");
    let Some(_mount) = Mount::new(&state, "size=6m") else { return };
    let entries = ["a", "b", "late"].map(|name| server.entry(name, "report"));
    let token = fs::read_to_string(server.site.path("a")).unwrap();
    let daemon = server.start();
    let [mut a, mut b, mut late] = entries.map(|entry| milter(&[entry]));
    for site in [&mut a, &mut b, &mut late] {
        site.extra += &format!("[ledger]\n{CAPACITY}\n");
    }
    let (at_a, _at_b) = (a.start(), b.start());
    send(&at_a, &letter(0), 7);
    wait_for(&b, &letter(0), 7);

    let filler = fill(&state);
    // Until the server needs space.
    let mut sent = 0;
    while !daemon.log.lines().iter().any(|line| line.contains("reports are refused")) {
        assert!(sent < 5000, "the ledger needs no space");
        sent += 1;
        send(&at_a, &letter(sent), 1);
    }
    // Another machine does not learn about files and disks.
    let line = at_a.log.wait_for(0, &format!("{}: 503 Service Unavailable: ", server.url()));
    assert!(line.contains("the server's ledger cannot be read or written now"), "{line}");
    let line = daemon.log.wait_for(0, "reports are refused until the ledger can be written again");
    assert!(line.contains("No space left on device"), "{line}");
    for n in 1..4 {
        send(&at_a, &letter(n), 2);
    }
    let bearer = format!("Authorization: Bearer {}", token.trim());
    let get = |path: &str| ask(server.port, &format!("GET {path} HTTP/1.1\r\n{bearer}"), b"");
    for path in ["/v1/status", "/v1/updates", "/v1/snapshot", &check(&a)] {
        let answer = get(path);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }
    assert!(get(&check(&a)).contains("\"count\":7,"), "{}", get(&check(&a)));
    assert!(get("/healthz").starts_with("HTTP/1.1 503 "));
    // A newcomer gets the counts so far.
    let _at_late = late.start();
    wait_for(&late, &letter(0), 7);

    fs::remove_file(&filler).unwrap();
    daemon.log.wait_for(0, "the ledger can be written again");
    wait_until("the server's health", || {
        let answer = get("/healthz");
        if answer.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(answer) }
    });
    let expected = |n: usize| if n == 0 { 7 } else { 1 + 2 * u64::from(n < 4) };
    wait_for(&b, &letter(sent), expected(sent));
    for site in [&a, &b, &late] {
        for n in (0..=sent).filter(|&n| n < 5 || n + 5 > sent || n % 10 == 0) {
            wait_for(site, &letter(n), expected(n));
        }
    }
    assert!(daemon.terminate().success());
}

/// The request path for the count of the first letter.
fn check(site: &bulkmark_testing::Site) -> String {
    let (_, answer) = site.check(&letter(0));
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    format!("/v1/check?signature={}", answer["body"]["signature"].as_str().unwrap())
}

/// A milter with a full disk lets mail pass unjudged. Its earlier reports are still sent in the end, and once.
#[test]
fn a_milter_with_a_full_disk_keeps_its_reports() {
    let mut server = Server::new("");
    server.ledger = CAPACITY.to_owned();
    let [mut a, mut b] = ["a", "b"].map(|name| milter(&[server.entry(name, "report")]));
    for site in [&mut a, &mut b] {
        site.extra += &format!("[ledger]\n{CAPACITY}\n");
    }
    a.config();
    let state = a.path("state");
    let Some(_mount) = Mount::new(&state, "size=6m") else { return };
    // Without its server all counted reports wait on the disk.
    let at_a = a.start();
    send(&at_a, &letter(0), 7);
    let filler = fill(&state);
    let mut client = session(&at_a);
    let mut counted = 1;
    while client.message(&Mail::raw(&letter(counted))).count().is_some() {
        counted += 1;
        assert!(counted < 5000, "the ledger needs no space");
    }
    let line = at_a.log.wait_for(0, "messages pass unjudged until the ledger can be written again");
    assert!(line.contains("No space left on device"), "{line}");
    let answer = client.message(&Mail::raw(&letter(0)));
    assert_eq!((answer.count(), &*answer.reply), (None, "c"), "mail flows");
    // Known counts can still be read.
    assert_eq!(count(&a, &letter(0)), 7);
    let (daemon, _at_b) = (server.start(), b.start());

    fs::remove_file(&filler).unwrap();
    wait_until("the milter", || match client.message(&Mail::raw(&letter(counted))).count() {
        Some(_) => Ok(()),
        None => Err("it does not count".to_owned()),
    });
    at_a.log.wait_for(0, "the ledger can be written again");
    send(&at_a, &letter(0), 3);
    for site in [&a, &b] {
        wait_for(site, &letter(0), 10);
        for n in (1..counted).filter(|&n| n < 5 || n + 5 > counted || n % 10 == 0) {
            wait_for(site, &letter(n), 1);
        }
        // Unjudged messages are not counted, so only the last one is.
        wait_for(site, &letter(counted), 1);
    }
    assert!(daemon.terminate().success());
}
