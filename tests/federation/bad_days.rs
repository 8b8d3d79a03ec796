// SPDX-License-Identifier: GPL-3.0-or-later
//! Bad days of a federation: another key, another version, an upstream address with another service or none. Each is logged, mail flows
//! meanwhile, and in the end all holders count the same.

use bulkmark_counts::Vector;
use bulkmark_sync::wire::{SNAPSHOT, SnapshotHead, UPDATES, frame};
use bulkmark_testing::http::ask;
use bulkmark_testing::letters::{count, letter, send, wait_for};
use bulkmark_testing::server::{Server, milter, parameters, wait_until_equal};
use bulkmark_testing::standin::{StandIn, answer};
use bulkmark_types::FederationKey;

/// Another service answers at the first server's address. The milter logs the reason, mail flows, and the second server takes over. When
/// the first is back, all holders count the same.
fn something_else_answers(told: &str, answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) {
    let [one, two] = Server::peers("anonymous-reading = true");
    let stand_in = StandIn::new(one.port, answer);
    let _two_runs = two.start();
    let a = milter(&[one.entry("a", "report"), two.entry("a", "report")]);
    let b = milter(&[two.entry("b", "report")]);
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(1), 5);
    assert_eq!(count(&a, &letter(1)), 5, "own reports count at once");
    let line = at_a.log.wait_for(0, &format!("{}: ", one.url()));
    assert!(line.contains(told), "{line}");
    wait_for(&b, &letter(1), 5);
    drop(stand_in);
    let _one_runs = one.start();
    send(&at_a, &letter(1), 3);
    send(&at_b, &letter(1), 2);
    wait_for(&a, &letter(1), 10);
    wait_for(&b, &letter(1), 10);
    wait_until_equal(&one, &two, 1);
}

#[test]
fn an_upstream_that_fails_at_everything() {
    something_else_answers("500 Internal Server Error: out of order", |_| {
        Some(answer("500 Internal Server Error", "", b"out of order\n"))
    });
}

#[test]
fn an_upstream_that_never_answers() {
    something_else_answers("it did not answer in time", |_| None);
}

#[test]
fn an_upstream_that_answers_garbage() {
    something_else_answers("the connection broke: invalid HTTP version parsed", |_| {
        Some(b"\x16\x03\x01 no HTTP at all\r\n\r\n".to_vec())
    });
}

#[test]
fn an_upstream_that_is_another_web_server() {
    something_else_answers("other parameters: protocol is 1 here and not given at the server", |_| {
        Some(answer("200 OK", "", b"<html>It works!</html>"))
    });
}

/// A valid beginning of the answer, with nothing after it.
#[test]
fn an_upstream_whose_snapshot_never_comes() {
    let fields = format!("bulkmark-parameters: {}\r\n", parameters());
    something_else_answers("it sent a snapshot without its first frame", move |_| {
        Some(answer("200 OK", &fields, b"BMSN\x01"))
    });
}

#[test]
fn an_upstream_whose_updates_end_at_once() {
    let fields = format!("bulkmark-parameters: {}\r\n", parameters());
    let head = SnapshotHead { id: 1, rows: 0, vector: Vector::default() };
    let snapshot = [&SNAPSHOT[..], &frame(&head.encode())].concat();
    something_else_answers("its updates ended at once", move |head| {
        Some(answer("200 OK", &fields, if head.contains("/v1/snapshot") { &snapshot } else { UPDATES }))
    });
}

#[test]
fn an_upstream_of_another_version_of_the_protocol() {
    let fields = format!("bulkmark-parameters: {}\r\n", parameters().replace("protocol=1", "protocol=2"));
    something_else_answers("other parameters: protocol is 1 here and 2 at the server", move |_| {
        Some(answer("200 OK", &fields, b""))
    });
}

/// A server that does not compare clocks itself.
#[test]
fn an_upstream_with_another_clock() {
    let fields = format!("bulkmark-parameters: {}\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n", parameters());
    something_else_answers("other clock: the server's is ", move |_| Some(answer("200 OK", &fields, b"")));
}

#[test]
fn an_upstream_whose_bodies_have_another_version() {
    let fields = format!("bulkmark-parameters: {}\r\n", parameters());
    something_else_answers("its format has version 2, expected 1", move |_| {
        Some(answer("200 OK", &fields, b"BMSN\x02 and what that may mean"))
    });
}

#[test]
fn an_upstream_whose_name_is_not_known() {
    let server = Server::new("");
    let _daemon = server.start();
    let unknown = server.entry_by("http://counts.invalid:8721", "a", "report");
    let unknown = unknown.replace(" }", ", plain-http-anywhere = true }");
    let a = milter(&[unknown, server.entry("a2", "report")]);
    let b = milter(&[server.entry("b", "report")]);
    let (at_a, _at_b) = (a.start(), b.start());
    send(&at_a, &letter(2), 5);
    let line = at_a.log.wait_for(0, "http://counts.invalid:8721: ");
    assert!(line.contains("its name, or its proxy's, has no address: ") && !line.contains("/v1/"), "{line}");
    wait_for(&b, &letter(2), 5);
    wait_for(&a, &letter(2), 5);
}

/// A client of another version is refused; the refusal names the parameter and its value, and the server logs the client's name.
#[test]
fn a_client_of_another_version_is_refused() {
    let server = Server::new("");
    let token = server.client(&["add", "--own", "mx"]).trim().to_owned();
    let daemon = server.start();
    let theirs = parameters().replace("protocol=1", "protocol=2");
    let head = |method: &str, path: &str, parameters: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nBulkmark-Parameters: {parameters}"
        )
    };
    let told = "other parameters: protocol is 1 at the server and 2 at the client";
    for (method, path) in [("POST", "/v1/reports"), ("GET", "/v1/updates"), ("GET", "/v1/snapshot")] {
        let answer = ask(server.port, &head(method, path, &theirs), b"");
        assert!(answer.starts_with("HTTP/1.1 409 ") && answer.contains(told), "{path}: {answer}");
    }
    daemon.log.wait_for(0, &format!("client mx is refused: {told}"));
    let told = "not a batch of reports, at byte 4: its format has version 2, expected 1";
    let answer =
        ask(server.port, &head("POST", "/v1/reports", &parameters()), b"BMRP\x02 and what that may mean");
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains(told), "{answer}");
    daemon.log.wait_for(0, &format!("client mx is refused: {told}"));
}

/// A milter and a peer with another federation key: both sides log it, and no count crosses. With the right key and a ledger of their own
/// all count the same.
#[test]
fn another_federation_key_is_refused() {
    let [one, mut two] = Server::peers("anonymous-reading = true");
    let key = two.site.path("key");
    std::fs::write(&key, "00112233445566778899aabbccddeeff\n").unwrap();
    let right = std::mem::take(&mut two.ledger);
    two.ledger = format!("federation-key-file = \"{}\"", key.display());
    let (one_runs, two_runs) = (one.start(), two.start());
    let (mut a, b) = (milter(&[one.entry("a", "report")]), milter(&[one.entry("b", "report")]));
    let right_extra = a.extra.clone();
    a.extra += &format!("[ledger]\n{}\n", two.ledger);
    let (at_a, at_b) = (a.start(), b.start());
    let id = |key: &FederationKey| format!("{:016x}", key.id());
    let (public, other) = (
        id(&FederationKey::public()),
        id(&FederationKey::from_bytes(&std::fs::read(&key).unwrap()).unwrap()),
    );
    let here = |ours: &str, theirs: &str| {
        format!(
            "other parameters: federation-key-id is {ours} at the server and {theirs} at the client: both need the same federation-key-file"
        )
    };
    at_a.log.wait_for(0, &format!("{}: 409 Conflict: {}", one.url(), here(&public, &other)));
    one_runs.log.wait_for(0, &format!("client a is refused: {}", here(&public, &other)));
    two_runs.log.wait_for(0, &format!("{}: 409 Conflict: {}", one.url(), here(&public, &other)));
    one_runs.log.wait_for(0, &format!("client two is refused: {}", here(&public, &other)));
    send(&at_a, &letter(3), 4);
    send(&at_b, &letter(3), 3);
    wait_for(&a, &letter(3), 4);
    wait_for(&b, &letter(3), 3);
    // Another key makes other signatures, so with the right key their ledgers start over automatically.
    assert!(at_a.terminate().success() && two_runs.terminate().success());
    two.ledger = right;
    a.extra = right_extra;
    let (at_a, _two_runs) = (a.start(), two.start());
    send(&at_a, &letter(3), 4);
    wait_for(&a, &letter(3), 7);
    wait_for(&b, &letter(3), 7);
    wait_until_equal(&one, &two, 1);
}
