// SPDX-License-Identifier: GPL-3.0-or-later
//! More clients than an interface has places: clients that send nothing, or hardly anything, make room for others, and no client is closed
//! in the middle of its message.

use crate::asking::{connect, counts, judge, metrics, rest, site, start};
use bulkmark_testing::letters::letter;
use bulkmark_testing::process::resident;
use bulkmark_testing::{PATIENCE, Site};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Limits under which silent clients must not keep a place from others, however long the timeout.
const FEW: &str = "idle-timeout = \"10m\"\nmax-connections = 10\n";

const LINES: &str = "header\n192.0.2.7\rh\nh\ns@example.org\nu@box.test\n\n";

/// The head of an HTTP request with 30,000 bytes, and the answer once it is read.
const HEAD: &str = "POST /v1/judge HTTP/1.1\r\nHost: x\r\nContent-Type: message/rfc822\r\nContent-Length: 30000\r\n\
                    Expect: 100-continue\r\n\r\n";
const GO_ON: &str = "HTTP/1.1 100 Continue\r\n\r\n";

/// Ten clients send this, and then one byte after the other, while `is_served` runs.
fn drip(site: &Site, name: &str, (beginning, told): (&str, &str), is_served: impl FnOnce()) {
    let streams: Vec<UnixStream> = (0..10).map(|_| connect(&site.path(name))).collect();
    for mut stream in &streams {
        stream.write_all(beginning.as_bytes()).unwrap();
        let mut answer = vec![0; told.len()];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, told.as_bytes());
    }
    let (enough, is_enough) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while is_enough.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                for mut stream in &streams {
                    // Some are closed.
                    let _ = stream.write_all(b"x");
                }
            }
        });
        is_served();
        drop(enough);
    });
}

/// A byte now and then, in the head of a request or in its body, holds no place that another client waits for.
#[test]
fn who_drips_makes_room() {
    let site = site("", FEW, FEW);
    let _daemon = start(&site);
    let by_http = || assert_eq!(judge(&site, "?count=no", &letter(1))["body"]["count"], 0);
    drip(&site, "http.sock", ("POST /v1/judge?helo=", ""), by_http);
    drip(&site, "http.sock", (HEAD, GO_ON), by_http);
    let by_dccifd = || assert_eq!(counts(&metrics(&site, "query", &letter(1))), "Body=0 Fuz1=0 Fuz2=0");
    drip(&site, "dccifd.sock", ("header\n", ""), by_dccifd);
    drip(&site, "dccifd.sock", (&format!("{LINES}Subject: x"), ""), by_dccifd);
}

/// A client that requests a message back and does not read it holds no place either.
#[test]
fn who_takes_no_answer_makes_room() {
    let site = site("", "", FEW);
    let _daemon = start(&site);
    let message = [&letter(1)[..], &b"some more of that text\r\n".repeat(100_000)].concat();
    let streams: Vec<UnixStream> = (0..10)
        .map(|_| {
            let stream = connect(&site.path("dccifd.sock"));
            (&stream).write_all(LINES.replace("header", "body query").as_bytes()).unwrap();
            (&stream).write_all(&message).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            // Its answer has begun.
            (&stream).read_exact(&mut [0; 1]).unwrap();
            stream
        })
        .collect();
    assert_eq!(counts(&metrics(&site, "query", &letter(1))), "Body=0 Fuz1=0 Fuz2=0");
    drop(streams);
}

/// Thirty times as many clients as places, all at once: each waits for its turn, and gets its answer.
#[test]
fn whoever_sends_is_answered() {
    let site = site("", FEW, FEW);
    let daemon = start(&site);
    let silent: Vec<UnixStream> = ["http.sock", "dccifd.sock"]
        .into_iter()
        .cycle()
        .take(40)
        .map(|name| connect(&site.path(name)))
        .collect();
    let by_http = format!(
        "POST /v1/judge?count=no HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: message/rfc822\r\nContent-Length: {}\r\n\r\n",
        letter(1).len()
    );
    let by_dccifd = LINES.replace("header", "header query");
    let requests = [("http.sock", by_http), ("dccifd.sock", by_dccifd)]
        .map(|(name, head)| (name, [head.as_bytes(), &letter(1)].concat()));
    let ask = |(name, request): &(&str, Vec<u8>)| {
        let stream = connect(&site.path(name));
        (&stream).write_all(request).unwrap();
        if *name == "dccifd.sock" {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        stream
    };
    // Each has sent its whole request before it is read, however busy the machine is.
    daemon.signal("STOP");
    let asked: Vec<UnixStream> = requests.iter().cycle().take(300).map(ask).collect();
    daemon.signal("CONT");
    for stream in &asked {
        let answer = rest(stream);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") || answer.starts_with("A\nA\nX-DCC"), "{answer:?}");
    }
    drop(silent);
}

/// Endless recipients do not take endless memory; their message is not judged, and each gets its letter.
#[test]
fn recipients_are_bounded() {
    let site = site("on-failure = \"tempfail\"\n", "", "idle-timeout = \"10m\"\n");
    let daemon = start(&site);
    let before = resident(&daemon);
    let lines =
        |options: &str| format!("header {options}\n192.0.2.7\nh\ns@example.org\n{}\n", "a\n".repeat(130_000));
    let body = b"some text that nobody keeps\n".repeat(30_000);
    let streams: Vec<UnixStream> = ["", "no-reject"]
        .into_iter()
        .cycle()
        .take(20)
        .map(|options| {
            let stream = connect(&site.path("dccifd.sock"));
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            (&stream).write_all(lines(options).as_bytes()).unwrap();
            // More than the system's buffers hold: so all lines before it were read.
            (&stream).write_all(&[b"Subject: x\n\n", &*body].concat()).unwrap();
            stream
        })
        .collect();
    let taken = resident(&daemon).saturating_sub(before);
    assert!(taken < 50_000, "{taken} kB");
    for stream in &streams {
        stream.shutdown(Shutdown::Write).unwrap();
        let answer = rest(stream);
        let mut told = answer.lines();
        // A message that could not be judged must come again, also if bulk must not be refused.
        assert_eq!(told.next(), Some("T"));
        assert_eq!(told.next().map(str::len), Some(130_000));
        assert!(told.next().unwrap().ends_with("; unknown too-many-recipients"), "{answer}");
    }
}
