// SPDX-License-Identifier: GPL-3.0-or-later
//! Garbage, and ten thousand connections or datagrams, at the interfaces for messages and for Pyzor: others are served, and nothing is counted.

use crate::asking::{connect, counts, http, judge, metrics, rest, site, start};
use crate::pyzor::{DIGEST, open, request, socket};
use bulkmark_testing::letters::letter;
use bulkmark_testing::process::resident;
use bulkmark_testing::random::Random;
use bulkmark_testing::{Daemon, PATIENCE, Site};
use std::collections::VecDeque;
use std::io::{ErrorKind, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::time::{Duration, Instant};

/// Kilobytes by which a daemon may grow during many connections, some of which stay open.
pub(crate) const MOST_TAKEN: u64 = 8_000;

const TYPE: &str = "Content-Type: message/rfc822";

/// Opens ten thousand connections to a socket, by turns with nothing and with each of these beginnings, and closes them late.
fn come_often((site, daemon): (&Site, &Daemon), name: &str, beginnings: &[&str], is_served: impl Fn()) {
    is_served();
    let before = resident(daemon);
    let mut silent = VecDeque::new();
    for n in 0..10_000 {
        let stream = connect(&site.path(name));
        if let Some(beginning) = beginnings.get(n % (1 + beginnings.len())) {
            // It may be closed already.
            let _ = (&stream).write_all(beginning.as_bytes());
        }
        silent.push_back(stream);
        // The test has no more descriptors than other programs.
        if silent.len() > 500 {
            silent.pop_front();
        }
        if n % 2000 == 0 {
            is_served();
        }
    }
    is_served();
    let taken = resident(daemon).saturating_sub(before);
    assert!(taken < MOST_TAKEN, "{taken} kB");
    drop(silent);
    is_served();
}

#[test]
fn ten_thousand_connections_by_http() {
    let site = site("", "idle-timeout = \"5s\"\nmax-connections = 20\n", "");
    let daemon = start(&site);
    let half =
        format!("POST /v1/judge HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nContent-Length: 900\r\n\r\nSubject: half");
    let is_served = || assert_eq!(judge(&site, "?count=no", &letter(1))["body"]["count"], 0);
    come_often((&site, &daemon), "http.sock", &["POST /v1/ju", &half], is_served);
}

#[test]
fn ten_thousand_connections_at_dccifd() {
    let site = site("", "", "idle-timeout = \"5s\"\nmax-connections = 20\n");
    let daemon = start(&site);
    let half = "header\n192.0.2.7\nh\ns\nu@box.test\n\nSubject: half";
    let is_served = || assert_eq!(counts(&metrics(&site, "query", &letter(1))), "Body=0 Fuz1=0 Fuz2=0");
    come_often((&site, &daemon), "dccifd.sock", &["header\n192", half], is_served);
}

/// Bytes that are not HTTP, and requests larger than any client's.
#[test]
fn what_is_no_request_by_http() {
    let site = site("", "", "");
    let daemon = start(&site);
    let mut random = Random::new(5);
    let words = [
        "POST ",
        "/v1/judge",
        " HTTP/1.1\r\n",
        "Host: x\r\n",
        "Content-Length: ",
        "Transfer-Encoding: chunked\r\n",
        "\r\n",
        "ffffffffffffffff\r\n",
        "-1",
        "99999999999999999999",
        "0\r\n\r\n",
        TYPE,
        "?rcpt=%",
        "\0",
        "Expect: 100-continue\r\n",
        ":",
    ];
    for n in 0..300 {
        let stream = connect(&site.path("http.sock"));
        let bytes: Vec<u8> = (0..random.below(200))
            .flat_map(|_| match n % 2 {
                0 => vec![u8::try_from(random.below(256)).unwrap()],
                _ => words[random.below(16)].as_bytes().to_vec(),
            })
            .collect();
        let _ = (&stream).write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let answer = rest(&stream);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let long = "x".repeat(300_000);
    let refused = |target: &str, fields: &[&str]| {
        let (status, _) = http(&site, target, &[fields, &[TYPE]].concat(), &letter(1));
        assert!((400..500).contains(&status), "{status}");
    };
    refused(&format!("POST /v1/judge?helo={long}"), &[]);
    refused("POST /v1/judge", &[&format!("Helo: {long}{long}")]);
    refused("POST /v1/judge?from=%ff%fe%00&nothing", &[]);
    let chunked = connect(&site.path("http.sock"));
    let head =
        format!("POST /v1/judge HTTP/1.1\r\nHost: x\r\n{TYPE}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    (&chunked).write_all(head.as_bytes()).unwrap();
    assert!(!rest(&chunked).starts_with("HTTP/1.1 200"));
    // More recipients than any mail server accepts, as many as the longest request holds.
    let many = "rcpt=u&".repeat(5000);
    let answer = judge(&site, &format!("?{many}count=no"), &letter(1));
    assert_eq!(answer["body"]["count"], 0, "{answer}");
    assert!(daemon.terminate().success());
}

/// Whether an answer arrives, however often the system drops packets that come too fast.
fn is_answered(at: SocketAddr, request: &str) -> String {
    let socket = socket("127.0.0.1", at);
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let begun = Instant::now();
    loop {
        socket.send(request.as_bytes()).unwrap();
        let mut answer = [0; 9000];
        match socket.recv(&mut answer) {
            Ok(size) => return String::from_utf8(answer[..size].to_vec()).unwrap(),
            Err(e) => {
                assert!([ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&e.kind()), "{e}");
                assert!(begun.elapsed() < PATIENCE, "no answer came");
            }
        }
    }
}

/// Datagrams of any bytes, of the largest size, and with more digests than any client sends; unknown operations.
#[test]
fn ten_thousand_datagrams() {
    let mut site = Site::new("");
    let (daemon, at) = open(&mut site, "");
    let socket = socket("127.0.0.1", at);
    is_answered(at, &request("check", DIGEST));
    let before = resident(&daemon);
    let mut random = Random::new(3);
    let words = [
        "Op",
        ": ",
        "report",
        "\n",
        "Op-Digest: ",
        DIGEST,
        "PV: 2.1\n",
        "Thread: 1\n",
        "User: ",
        "Sig: ",
        "Time: ",
        "-1",
        "\n\n",
        "99999999999999999999",
        "\0",
        "check",
    ];
    for n in 0..10_000 {
        let bytes: Vec<u8> = match n % 4 {
            0 => (0..random.below(2000)).map(|_| u8::try_from(random.below(256)).unwrap()).collect(),
            1 => (0..random.below(60)).flat_map(|_| words[random.below(16)].bytes()).collect(),
            2 => vec![b'\n'; random.below(60_000)],
            _ => request("check", DIGEST).into_bytes(),
        };
        // The answers are not read, and the system may have no room for more.
        let _ = socket.send(&bytes);
    }
    for (wrong, code) in [
        (request("report", &"0f".repeat(3000)), 400),
        (request("", DIGEST), 403),
        (request(&"x".repeat(4000), DIGEST), 403),
        (request("REPORT", DIGEST), 403),
    ] {
        let answer = is_answered(at, &wrong);
        assert!(answer.starts_with(&format!("Code: {code}\n")), "{answer}");
    }
    let answer = is_answered(at, &request("check", DIGEST));
    assert!(answer.ends_with("\nCount: 0\nWL-Count: 0\n\n"), "{answer}");
    let taken = resident(&daemon).saturating_sub(before);
    assert!(taken < MOST_TAKEN, "{taken} kB");
    assert!(daemon.terminate().success());
}
