// SPDX-License-Identifier: GPL-3.0-or-later
//! Clients that send a server invalid requests: it answers with the error, and serves the others.

use bulkmark_sync::wire::Reports;
use bulkmark_testing::http::{answer, ask, connect};
use bulkmark_testing::server::{Server, parameters};
use bulkmark_types::Signature;
use std::io::Write;

/// The number of idle connections: as many as this process and the server may open, ten thousand at most.
fn idle_connections() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let files: usize = files.split_whitespace().next().unwrap().parse().unwrap_or(usize::MAX);
    files.saturating_sub(500).min(10_000)
}

/// A server, and the token of one of its clients.
fn server() -> (Server, bulkmark_testing::Daemon, String) {
    let server = Server::new("");
    let token = server.client(&["add", "--own", "mx"]).trim().to_owned();
    let daemon = server.start();
    (server, daemon, token)
}

fn post(server: &Server, token: &str, body: &[u8]) -> String {
    let parameters = parameters();
    let head = format!(
        "POST /v1/reports HTTP/1.1\r\nAuthorization: Bearer {token}\r\nbulkmark-parameters: {parameters}"
    );
    ask(server.port, &head, body)
}

fn batch(spool: u64, number: u64, times: u32) -> Vec<u8> {
    let reports = (0..50).map(|n| (Signature::from_bytes([n; 16]), times)).collect();
    Reports { spool, number, reports }.encode()
}

fn count(server: &Server, token: &str, n: u8) -> String {
    let signature = Signature::from_bytes([n; 16]);
    let head = format!("GET /v1/check?signature={signature} HTTP/1.1\r\nAuthorization: Bearer {token}");
    ask(server.port, &head, b"")
}

#[test]
fn bodies_that_are_none_are_refused_and_counted_by_nobody() {
    let (server, _daemon, token) = server();
    let good = batch(1, 1, 3);
    assert!(post(&server, &token, &good).starts_with("HTTP/1.1 200 "));
    for at in [0, 4, 8, 20, 21, 100, good.len() - 1] {
        let mut flipped = batch(1, 2, 3);
        flipped[at] ^= 0x40;
        let answer = post(&server, &token, &flipped);
        assert!(answer.starts_with("HTTP/1.1 400 "), "byte {at}: {answer}");
        assert!(answer.contains("not a batch of reports, at byte "), "byte {at}: {answer}");
        let answer = post(&server, &token, &good[..at]);
        assert!(answer.starts_with("HTTP/1.1 400 "), "cut at {at}: {answer}");
    }
    let answer = post(&server, &token, &vec![0; 1 << 20]);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // The same batch again gets the same answer; a batch with a lower number is refused.
    assert!(post(&server, &token, &batch(1, 5, 3)).starts_with("HTTP/1.1 200 "));
    assert!(post(&server, &token, &batch(1, 5, 3)).starts_with("HTTP/1.1 200 "));
    let answer = post(&server, &token, &batch(1, 4, 3));
    assert!(answer.starts_with("HTTP/1.1 409 "), "{answer}");
    assert!(answer.contains("batch 4 came after batch 5 of the same spool"), "{answer}");
    let answer = count(&server, &token, 7);
    assert!(answer.contains("\"count\":6,"), "{answer}");
}

#[test]
fn tokens_are_guessed_for_a_while_only() {
    let (server, _daemon, token) = server();
    let guess = |token: &str| count(&server, token, 1);
    for _ in 0..10 {
        assert!(guess("guess").starts_with("HTTP/1.1 401 "));
    }
    let answer = guess("guess");
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    assert!(answer.contains("try again in a minute"), "{answer}");
    // A client with a valid token from the same address does not have to wait.
    assert!(guess(&token).starts_with("HTTP/1.1 200 "));
    assert!(guess("guess").starts_with("HTTP/1.1 429 "));
}

#[test]
fn nonsense_is_answered() {
    let (server, _daemon, token) = server();
    let bearer = format!("Authorization: Bearer {token}");
    for (request, status) in [
        (format!("GET /v1/updates?since=nonsense HTTP/1.1\r\n{bearer}"), 400),
        (format!("GET /v1/updates?wait=-1 HTTP/1.1\r\n{bearer}"), 400),
        (format!("GET /v1/check?signature=1 HTTP/1.1\r\n{bearer}"), 400),
        (format!("GET /v1/check HTTP/1.1\r\n{bearer}"), 400),
        (format!("GET /v1/snapshot?id=7 HTTP/1.1\r\n{bearer}"), 410),
        ("GET /v1/status HTTP/1.1".to_owned(), 401),
        ("GET /nowhere HTTP/1.1".to_owned(), 404),
        ("DELETE /v1/reports HTTP/1.1".to_owned(), 405),
        (format!("GET /v1/check?signature={} HTTP/1.1", "a".repeat(100_000)), 431),
        (format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(1_000_000)), 431),
        ("NONSENSE".to_owned(), 400),
    ] {
        let answer = ask(server.port, &request, b"");
        let short = &request[..request.len().min(60)];
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{short}: {answer}");
    }
}

/// Thousands of silent connections, and one that sends its request byte by byte, delay nobody; the server closes them.
#[test]
fn the_idle_and_the_slow_hold_up_nobody() {
    let (server, _daemon, token) = server();
    let connections = idle_connections();
    println!("{connections} idle connections");
    let idle: Vec<_> = (0..connections).map(|_| connect(server.port)).collect();
    let slow = connect(server.port);
    (&slow).write_all(b"GET /healthz HTTP/1.1\r\nX").unwrap();
    assert!(post(&server, &token, &batch(1, 1, 3)).starts_with("HTTP/1.1 200 "));
    assert!(count(&server, &token, 7).contains("\"count\":3,"));
    for stream in idle.iter().step_by(connections / 10).chain([&slow]) {
        let answer = answer(stream);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
}
