// SPDX-License-Identifier: GPL-3.0-or-later
//! Clients that ask for more than their share: they cost the server little, and others do not wait for them.

use bulkmark_counts::Vector;
use bulkmark_sync::wire::{MAX_REPORTS, Reports};
use bulkmark_sync::{Link, Remote, Upstream};
use bulkmark_testing::authority::{Authority, https, tls_server};
use bulkmark_testing::http::{ask, connect};
use bulkmark_testing::process::resident;
use bulkmark_testing::random::element;
use bulkmark_testing::server::{Server, parameters};
use bulkmark_testing::{Daemon, wait_until};
use bulkmark_types::Signature;
use serde_json::json;
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Readers that do not read their answers.
const READERS: usize = 300;

/// The number of streams that a client may have.
const EACH: usize = 30;

/// Kilobytes that may wait in a stream, and its other memory.
const WAITING: u64 = 64;
const BESIDE: u64 = 64;

/// The minimum time for which a connection may be silent if no other connection needs its place.
const DEADLINE: Duration = Duration::from_secs(5);

fn by(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// A new client's token.
fn token(server: &Server, name: &str, role: &str) -> String {
    server.client(&["add", "--own", name, "--role", role]).trim().to_owned()
}

/// Reports `batches` batches of new signatures.
fn fill(server: &Server, token: &str, batches: u64) {
    for number in 1..=batches {
        let first = number * MAX_REPORTS as u64;
        let numbers = first..first + MAX_REPORTS as u64;
        let reports = numbers.map(|n| (Signature::from_bytes(element(n).to_be_bytes()), 1)).collect();
        let body = Reports { spool: 1, number, reports }.encode();
        let answer = ask(server.port, &format!("POST /v1/reports HTTP/1.1\r\n{}", by(token)), &body);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

/// Requests an endless answer over a connection with small buffers. Returns the first line of the answer.
fn begin(port: u16, path: &str, token: &str) -> (TcpStream, String) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&SocketAddr::from(([127, 0, 0, 1], port)).into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(bulkmark_testing::PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{}\r\n\r\n", by(token)).unwrap();
    let (mut line, mut byte) = (String::new(), [0]);
    while !line.ends_with("\r\n") && stream.read(&mut byte).unwrap() == 1 {
        line.push(char::from(byte[0]));
    }
    (stream, line)
}

/// The value of a metric.
fn metric(server: &Server, token: &str, name: &str) -> u64 {
    let text = ask(server.port, &format!("GET /metrics HTTP/1.1\r\n{}", by(token)), b"");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {text}")).trim().parse().unwrap()
}

/// A client that asks for updates or snapshots and does not read them costs the server some kilobytes, and is disconnected after a while;
/// then the server's memory is as before.
#[test]
fn readers_who_do_not_read_cost_little() {
    let server = Server::new("");
    let [mx, metrics] =
        [("mx", "report"), ("prometheus", "metrics")].map(|(name, role)| token(&server, name, role));
    let slow: Vec<_> = (0..READERS / EACH).map(|n| token(&server, &format!("slow{n}"), "read")).collect();
    let daemon = server.start();
    fill(&server, &mx, 40);
    // A server writes its cells when it stops, so there is a snapshot.
    assert!(daemon.terminate().success());
    let daemon = server.start();
    // Allocates the memory that all readers share beforehand.
    for path in ["updates", "snapshot"] {
        let all = ask(server.port, &format!("GET /v1/{path} HTTP/1.1\r\n{}", by(&mx)), b"");
        assert!(all.len() > 1 << 20, "{} bytes of {path}", all.len());
    }
    let before = resident(&daemon);
    let streams: Vec<_> = (0..READERS)
        .map(|n| {
            let path = if n % 2 == 0 { "/v1/updates?wait=3600" } else { "/v1/snapshot" };
            let (stream, line) = begin(server.port, path, &slow[n / EACH]);
            assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
            stream
        })
        .collect();
    let most = before + READERS as u64 * (WAITING + BESIDE) + 32 * 1024;
    wait_until("the streams", || {
        let now = resident(&daemon);
        assert!(now < most, "the server has {now} kB instead of {before} kB");
        match metric(&server, &metrics, "bulkmark_streams") {
            0 => Ok(()),
            open => Err(format!("{open} are open")),
        }
    });
    assert_eq!(metric(&server, &metrics, "bulkmark_streams_stalled_total"), READERS as u64);
    wait_until("the connections", || match metric(&server, &metrics, "bulkmark_connections") {
        1 => Ok(()),
        open => Err(format!("{open} are open")),
    });
    let after = resident(&daemon);
    println!("{before} kB, {after} kB afterwards");
    assert!(after < before + 32 * 1024, "{after} kB instead of {before} kB");
    drop(streams);
    let (_, line) = begin(server.port, "/v1/updates", &slow[0]);
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
}

/// The same for the orders of all sites, which are one document for all readers.
#[test]
fn readers_of_orders_who_do_not_read_cost_little() {
    let server = Server::new("");
    let [mx, slow, metrics] = [("mx", "report"), ("slow", "read"), ("prometheus", "metrics")]
        .map(|(name, role)| token(&server, name, role));
    let daemon = server.start();
    let signatures = |n: usize| (0..100).map(|i| format!("{:032x}", 100 * n + i)).collect::<Vec<_>>();
    let order = |n: usize| json!({ "signatures": signatures(n), "since": 1, "by": "x", "reason": "y" });
    let orders = json!({ "machine": "1", "allowed": (0..200).map(order).collect::<Vec<_>>() }).to_string();
    let post = format!("POST /v1/orders HTTP/1.1\r\nbulkmark-parameters: {}\r\n{}", parameters(), by(&mx));
    let taken = ask(server.port, &post, orders.as_bytes());
    assert!(taken.starts_with("HTTP/1.1 204 "), "{taken}");
    let all = || ask(server.port, &format!("GET /v1/orders HTTP/1.1\r\n{}", by(&slow)), b"").len();
    assert!(all() > 500_000);
    let most = resident(&daemon) + EACH as u64 * (WAITING + BESIDE) + 8 * 1024;
    let streams: Vec<_> = (0..EACH)
        .map(|_| {
            let (stream, line) = begin(server.port, "/v1/orders", &slow);
            assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
            stream
        })
        .collect();
    gone_within(&server, &daemon, &metrics, most);
    assert_eq!(metric(&server, &metrics, "bulkmark_streams_stalled_total"), EACH as u64);
    drop(streams);
    assert!(all() > 500_000);
}

/// Waits until the server has no connection but the one that asks, and never more than so many kilobytes.
fn gone_within(server: &Server, daemon: &Daemon, metrics: &str, most: u64) {
    wait_until("the connections", || {
        let now = resident(daemon);
        assert!(now < most, "the server has {now} kB, expected {most} kB at most");
        match metric(server, metrics, "bulkmark_connections") {
            1 => Ok(()),
            open => Err(format!("{open} are open")),
        }
    });
}

/// Strangers whose requests never end cost some kilobytes each, and not the hundreds that hyper would keep.
#[test]
fn heads_without_an_end_cost_little() {
    let server = Server::new("");
    let metrics = token(&server, "prometheus", "metrics");
    let daemon = server.start();
    let most = resident(&daemon) + 200 * WAITING + 8 * 1024;
    let strangers: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = connect(server.port);
            stream.set_write_timeout(Some(bulkmark_testing::PATIENCE)).unwrap();
            // The server closes the connection meanwhile.
            let _ = stream
                .write_all(format!("GET /v1/updates HTTP/1.1\r\nX: {}", "y".repeat(300_000)).as_bytes());
            stream
        })
        .collect();
    gone_within(&server, &daemon, &metrics, most);
    drop(strangers);
}

/// A reader's version vectors of made-up origins stay in memory only in part.
#[test]
fn made_up_vectors_cost_little() {
    let server = Server::new("");
    let [reader, metrics] =
        [("reader", "read"), ("prometheus", "metrics")].map(|(name, role)| token(&server, name, role));
    let daemon = server.start();
    let most = resident(&daemon) + 32 * 1024 + EACH as u64 * 1024;
    let vector = |stream: usize| {
        let origins = (0..65_536u64).map(|n| format!("{:016x}:1:{n:032x}", n << 8 | stream as u64));
        origins.collect::<Vec<_>>().join(",")
    };
    let streams: Vec<_> = (0..EACH)
        .map(|n| {
            let body = vector(n);
            let mut stream = connect(server.port);
            let head = format!("POST /v1/updates?wait=3600 HTTP/1.1\r\nHost: x\r\n{}", by(&reader));
            write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"HTTP/1.1 200");
            stream
        })
        .collect();
    assert_eq!(metric(&server, &metrics, "bulkmark_streams"), EACH as u64);
    let now = resident(&daemon);
    assert!(now < most, "the server has {now} kB, expected {most} kB at most");
    drop(streams);
}

/// One client has a limited number of streams, which leaves the streams of others untouched.
#[test]
fn a_client_has_only_so_many_streams() {
    let server = Server::new("anonymous-reading = true");
    let [greedy, other] = ["greedy", "other"].map(|name| token(&server, name, "report"));
    let daemon = server.start();
    let open = |token: &str| begin(server.port, "/v1/updates?wait=3600", token);
    let mut streams: Vec<_> = (0..32).map(|_| open(&greedy)).collect();
    assert!(streams.iter().all(|(_, line)| line.starts_with("HTTP/1.1 200 ")));
    let head = format!("GET /v1/updates HTTP/1.1\r\n{}", by(&greedy));
    let refused = ask(server.port, &head, b"");
    assert!(
        refused.starts_with("HTTP/1.1 429 ") && refused.contains("bulkmark-error: too-many"),
        "{refused}"
    );
    daemon
        .log
        .wait_for(0, "client greedy is refused: this client or address has as many streams as it may have");
    let snapshot = ask(server.port, &head.replace("updates", "snapshot"), b"");
    assert!(snapshot.starts_with("HTTP/1.1 429 "), "{snapshot}");
    // From the same address: another client, and one without a token.
    assert!(open(&other).1.starts_with("HTTP/1.1 200 "));
    assert!(ask(server.port, "GET /v1/updates HTTP/1.1\r\nX: y", b"").starts_with("HTTP/1.1 200 "));
    fill(&server, &greedy, 1);
    streams.pop();
    wait_until("a free place", || {
        let (_, line) = open(&greedy);
        if line.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(line) }
    });
}

/// However few connections are allowed, one client leaves some of them to others.
#[test]
fn a_client_does_not_take_all_connections() {
    let server = Server::new("[limits]\nmax-connections = 40");
    let [greedy, other] = ["greedy", "other"].map(|name| token(&server, name, "report"));
    let _daemon = server.start();
    let open = |token: &str| begin(server.port, "/v1/updates?wait=3600", token);
    let streams: Vec<_> = (0..60).map(|_| open(&greedy)).collect();
    assert!(open(&other).1.starts_with("HTTP/1.1 200 "));
    let has = streams.iter().filter(|(_, line)| line.starts_with("HTTP/1.1 200 ")).count();
    let refused = streams.iter().filter(|(_, line)| line.starts_with("HTTP/1.1 429 ")).count();
    assert_eq!((has, refused), (10, 50));
}

/// A client that asks question after question must wait; others need not.
#[test]
fn checks_have_a_rate_of_their_own() {
    let server = Server::new("anonymous-reading = true");
    let [curious, other] = ["curious", "other"].map(|name| token(&server, name, "report"));
    let _daemon = server.start();
    let check = |n: u64, field: &str| {
        let signature = Signature::from_bytes(element(n).to_be_bytes());
        ask(server.port, &format!("GET /v1/check?signature={signature} HTTP/1.1\r\n{field}"), b"")
    };
    for field in [by(&curious), "X: y".to_owned()] {
        let answered = (0..10_000).take_while(|&n| check(n, &field).starts_with("HTTP/1.1 200 ")).count();
        // As many as one burst allows, and two a second.
        assert!((120..1000).contains(&answered), "{answered} of four digits");
        let refused = check(0, &field);
        assert!(
            refused.starts_with("HTTP/1.1 429 ") && refused.contains("bulkmark-error: rate"),
            "{refused}"
        );
    }
    assert!(check(0, &by(&other)).starts_with("HTTP/1.1 200 "));
    fill(&server, &curious, 1);
}

/// Silent connections make room for active ones: nobody waits for their deadline.
#[tokio::test]
async fn silent_connections_make_room() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = Authority::new("ours");
    let mut server = tls_server();
    server.extra = format!("{}[limits]\nmax-connections = 100\n", server.extra);
    authority.certify(&server, "127.0.0.1", false);
    let entry = authority.entry(&server, &https(&server), "mx");
    let _daemon = server.start();
    let file = |key: &str| Some(entry.split(key).nth(1)?.split('"').nth(1)?.into());
    let upstream = Upstream {
        url: https(&server),
        token_file: file("token-file"),
        ca_file: file("ca-file"),
        plain_http_anywhere: false,
    };
    let remote = Remote::new(&upstream, None, Arc::new(Link::new(&upstream.url))).unwrap();
    // If a busy machine delays an attempt until a silent connection's deadline, it proves nothing and is repeated.
    let silent = loop {
        let began = Instant::now();
        let silent: Vec<_> = (0..150).map(|_| connect(server.port)).collect();
        remote.status().await.unwrap();
        remote.updates(&Vector::default(), Duration::ZERO).await.unwrap();
        let is_open = |stream: &TcpStream| {
            stream.set_nonblocking(true).unwrap();
            let mut stream = stream;
            stream.read(&mut [0]).map_err(|e| e.kind()) == Err(ErrorKind::WouldBlock)
        };
        let open: Vec<_> = (0..silent.len()).filter(|&n| is_open(&silent[n])).collect();
        if began.elapsed() < DEADLINE {
            // An address may have 50. Each connection above that closes one, and those that the server has already looked at go first: on a
            // busy machine it may look at a later connection first.
            assert!(open.len() >= 40, "only {open:?} of 150 were not closed");
            break silent;
        }
    };
    for mut stream in &silent[..40] {
        stream.set_nonblocking(false).unwrap();
        assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "it is told something");
    }
}
