// SPDX-License-Identifier: GPL-3.0-or-later
//! Rows 6, 8 and 9: clients of a server that keep it busy at others' cost.

use super::client::{self, BATCH, Http, connect};
use super::flood::{mb, memory};
use super::{Outcome, Scale};
use bulkmark_testing::Daemon;
use bulkmark_testing::random::element;
use bulkmark_testing::server::Server;
use socket2::{Domain, Socket, Type};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The most bytes that a server may grow by for readers.
const MOST_MEMORY: u64 = 64 << 20;

/// The longest time that another client may wait for an answer.
const SHORT: Duration = Duration::from_secs(2);

/// The duration of the measurement.
const TIME: Duration = Duration::from_secs(20);

/// A server with updates of a million signatures and `connections` places.
fn server(connections: usize) -> (Server, Daemon, Http) {
    let mut server = Server::new(&format!("[limits]\nmax-connections = {connections}"));
    "interval = \"1s\"".clone_into(&mut server.sync);
    let mut own = Http::from(server.port, &client::own(&server, "other"), "127.0.0.2");
    let daemon = server.start();
    for batch in 0..1_000_000 / BATCH as u64 {
        let signatures: Vec<_> = (batch * BATCH as u64..).take(BATCH).map(element).collect();
        assert_eq!(own.report(&signatures, 1).status, 200);
    }
    (server, daemon, own)
}

/// A stream of all updates that nobody reads, over a socket with small buffers.
fn stream(port: u16, token: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&SocketAddr::from(([127, 0, 0, 1], port)).into()).unwrap();
    let mut stream = TcpStream::from(socket);
    let head = "GET /v1/updates?since=&wait=3600 HTTP/1.1\r\nHost: x\r\n";
    stream.write_all(format!("{head}Authorization: Bearer {token}\r\n\r\n").as_bytes()).unwrap();
    stream
}

/// The longest wait of another client from another address, and whether it got all answers.
fn longest_wait(other: &mut Http) -> (Duration, bool) {
    let (began, mut longest, mut answered) = (Instant::now(), Duration::ZERO, true);
    while began.elapsed() < TIME && answered {
        let asked = Instant::now();
        answered = other.ask_anew("GET /v1/status", "", b"").is_some_and(|answer| answer.status == 200);
        longest = longest.max(asked.elapsed());
        std::thread::sleep(Duration::from_millis(50));
    }
    (longest, answered)
}

pub(crate) fn never_read(_: Scale) -> Outcome {
    let (server, daemon, mut other) = server(16_384);
    let token = client::own(&server, "reader");
    let before = memory(&daemon, "VmRSS");
    let readers: Vec<_> = (0..300).map(|_| stream(server.port, &token)).collect();
    let (began, mut highest) = (Instant::now(), 0);
    while began.elapsed() < TIME / 2 {
        highest = highest.max(memory(&daemon, "VmRSS"));
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(readers);
    std::thread::sleep(TIME / 4);
    let left = memory(&daemon, "VmRSS").saturating_sub(before);
    assert_eq!(other.report(&[1], 1).status, 200);
    let grown = highest.saturating_sub(before);
    Outcome::new(
        "300 readers of /v1/updates who do not read",
        format!("the server grows by {}, and has {} of it when they are gone", mb(grown), mb(left)),
        grown <= MOST_MEMORY,
    )
}

pub(crate) fn many_streams(_: Scale) -> Outcome {
    let (server, _daemon, mut other) = server(50);
    let token = client::own(&server, "reader");
    let _streams: Vec<_> = (0..50).map(|_| stream(server.port, &token)).collect();
    waited("50 streams of one client, where 50 connections are allowed", &mut other)
}

pub(crate) fn silent_connections(_: Scale) -> Outcome {
    let (server, _daemon, mut other) = server(150);
    let _silent: Vec<_> = (0..150).map(|_| connect(server.port, "127.0.0.1")).collect();
    waited("150 silent connections of one address, where 150 are allowed", &mut other)
}

fn waited(tried: &str, other: &mut Http) -> Outcome {
    let (longest, answered) = longest_wait(other);
    let end = if answered { "all its questions are answered" } else { "then gets no answer" };
    Outcome::new(
        tried,
        format!("another client waits {:.1} s at most, and {end}", longest.as_secs_f64()),
        longest <= SHORT && answered,
    )
}

pub(crate) fn wrong_tokens(_: Scale) -> Outcome {
    let server = Server::new("");
    let right = client::own(&server, "mx");
    let _daemon = server.start();
    let ask = |token: &str| Http::new(server.port, token).ask("GET /v1/status", "", b"");
    let statuses: Vec<_> = (0..30).map(|n| ask(&format!("bulkmark_{n:064x}")).status).collect();
    let answer = ask(&right);
    let wait = statuses.iter().filter(|&&status| status == 429).count();
    Outcome::new(
        format!("30 wrong tokens from an address, of which {wait} were made to wait"),
        format!("the right token from there gets {} {}", answer.status, answer.error),
        answer.status == 200 && wait > 0,
    )
}
