// SPDX-License-Identifier: GPL-3.0-or-later
//! The same mail through the milter's socket, through `dccifd`'s, and to a program that reads a request and answers without
//! processing.

use crate::load::daemon::{Daemon, cpu};
use crate::load::milter::{FIELDS, Session, body};
use crate::load::within;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The argument that makes this bench the program without processing.
pub(crate) const ONLY_ANSWERS: &str = "--only-answers";

/// Clients at a time.
const CLIENTS: usize = 16;

/// Messages of a milter's connection; `dccifd` has one for each message.
const OF_CONNECTION: usize = 10;

/// Messages of one turn.
const TURN: usize = 4_000;

/// A client's work for one message.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Milter,
    Dccifd,
    Nothing,
}

/// The order of turns: no contender always follows the same one.
const TURNS: [By; 9] = [
    By::Milter,
    By::Dccifd,
    By::Nothing,
    By::Dccifd,
    By::Milter,
    By::Milter,
    By::Dccifd,
    By::Dccifd,
    By::Milter,
];

pub(crate) fn run() {
    println!("dccifd: {CLIENTS} clients, a recipient and 7 header fields, each body another");
    println!(
        "{:<22} {:>6} {:>9} {:>10} {:>9} {:>8} {:>8}",
        "by", "body", "messages", "msg/CPU-s", "to milter", "p50 ms", "p99 ms"
    );
    for size in [2_000, 10_000] {
        with_bodies(size);
    }
}

fn with_bodies(size: usize) {
    let daemon = Daemon::start("unix", "[interfaces.dccifd]\nlisten = \"unix:@/d\"\n", 1);
    let null = Null::start(&daemon.path("n"));
    let at = |by| match by {
        By::Milter => daemon.address.clone(),
        By::Dccifd => daemon.path("d").display().to_string(),
        By::Nothing => daemon.path("n").display().to_string(),
    };
    for by in [By::Milter, By::Dccifd] {
        bring(by, &at(by), size, 1_000);
    }
    let mut sums = [By::Milter, By::Dccifd, By::Nothing].map(|by| (by, Vec::new(), 0.0));
    for by in TURNS {
        let taken = || if by == By::Nothing { cpu(null.0.id()) } else { daemon.cpu() };
        let before = taken();
        let latencies = bring(by, &at(by), size, TURN);
        let Some((_, all, seconds)) = sums.iter_mut().find(|(of, ..)| *of == by) else { continue };
        all.extend(latencies);
        *seconds += taken() - before;
    }
    let rate = |(_, latencies, seconds): &(By, Vec<Duration>, f64)| latencies.len() as f64 / seconds;
    let of_milter = rate(&sums[0]);
    for sum in &mut sums {
        let rate = rate(sum);
        let (by, latencies, _) = sum;
        let name = match by {
            By::Milter => "milter, unix",
            By::Dccifd => "dccifd, unix",
            By::Nothing => "what only answers",
        };
        println!(
            "{name:<22} {size:>6} {:>9} {rate:>10.0} {:>9.2} {:>8.2} {:>8.2}",
            latencies.len(),
            rate / of_milter,
            within(latencies, 0.5),
            within(latencies, 0.99)
        );
    }
}

/// Has all clients send so many messages together; returns the time from the end of each to its answer.
fn bring(by: By, at: &str, size: usize, messages: usize) -> Vec<Duration> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let end = NEXT.load(Ordering::Relaxed) + messages;
    let next = || Some(NEXT.fetch_add(1, Ordering::Relaxed)).filter(|&n| n < end);
    let client = || {
        let (mut latencies, mut session): (Vec<Duration>, Option<Session>) = (Vec::new(), None);
        while let Some(n) = next() {
            if by != By::Milter {
                latencies.push(ask(at, n, size));
                continue;
            }
            let session = match &mut session {
                Some(session) if latencies.len() % OF_CONNECTION != 0 => session,
                other => {
                    if let Some(mut old) = other.take() {
                        old.command(b'Q', &[]);
                        old.send();
                    }
                    other.insert(Session::open(at))
                }
            };
            latencies.push(session.message(n, size));
        }
        latencies
    };
    let latencies = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("client")).collect()
    });
    NEXT.store(end, Ordering::Relaxed);
    latencies
}

/// Sends a message as DCC's clients do.
fn ask(path: &str, n: usize, size: usize) -> Duration {
    let mut stream = UnixStream::connect(path).expect("connect");
    let mut request =
        "header\n192.0.2.10\rmail.example.net\nmail.example.net\nnews@example.net\nyou@example.org\n\n"
            .to_owned();
    let id = format!("<{n}@example.net>");
    for (name, value) in FIELDS.into_iter().chain([("Message-ID", &*id)]) {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("\r\n{}", body(n, size));
    stream.write_all(request.as_bytes()).expect("write");
    stream.shutdown(Shutdown::Write).expect("end");
    let (began, mut answer) = (Instant::now(), String::new());
    stream.read_to_string(&mut answer).expect("read");
    assert!(answer.starts_with("A\nA\nX-DCC-"), "{answer:?}");
    began.elapsed()
}

/// The process without processing.
struct Null(Child);

impl Null {
    fn start(path: &Path) -> Self {
        let program = std::env::current_exe().expect("program");
        let child = Command::new(program).arg(ONLY_ANSWERS).arg(path).spawn().expect("start");
        while UnixStream::connect(path).is_err() {
            std::thread::yield_now();
        }
        Self(child)
    }
}

impl Drop for Null {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads each request to its end and answers it, forever.
pub(crate) fn only_answer(path: &str) {
    let listener = UnixListener::bind(path).expect("bind");
    let serve = |mut stream: UnixStream| {
        let mut request = Vec::new();
        // A connection without a request only tests whether the program listens.
        if stream.read_to_end(&mut request).is_ok() && !request.is_empty() {
            let _ = stream.write_all(b"A\nA\nX-DCC-null-Metrics: mx.example.org 1; Body=1 Fuz1=1 Fuz2=1\n\n");
        }
    };
    for stream in listener.incoming() {
        let stream = stream.expect("accept");
        std::thread::spawn(move || serve(stream));
    }
}
