// SPDX-License-Identifier: GPL-3.0-or-later
//! Checks at the Razor interface: in batches, as razor-agents send them, and one by one.

use crate::load::daemon::Daemon;
use crate::load::within;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Clients at a time, each with a connection.
const CLIENTS: usize = 8;

/// The length of a measurement.
const WHILE: Duration = Duration::from_secs(4);

pub(crate) fn run() {
    println!("razor: {CLIENTS} clients check signatures, each waiting for its answers");
    println!(
        "{:<24} {:>9} {:>9} {:>11} {:>8} {:>8}",
        "", "checks", "checks/s", "per CPU-s", "p50 ms", "p99 ms"
    );
    let daemon = Daemon::start("unix", "[interfaces.razor]\nlisten = \"127.0.0.1:0\"\n", 1);
    nominate(&daemon);
    let at = daemon.interfaces.first().expect("interface").clone();
    for batch in [50, 1] {
        let (before, began) = (daemon.cpu(), Instant::now());
        let check = |n| check(&at, batch, n << 32);
        let mut latencies: Vec<Duration> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS as u64).map(|n| scope.spawn(move || check(n))).collect();
            clients.into_iter().flat_map(|client| client.join().expect("client")).collect()
        });
        let (wall, seconds) = (began.elapsed().as_secs_f64(), daemon.cpu() - before);
        let checks = (latencies.len() * batch) as f64;
        let name = if batch == 1 { "one by one".to_owned() } else { format!("in batches of {batch}") };
        println!(
            "{name:<24} {checks:>9} {:>9.0} {:>11.0} {:>8.2} {:>8.2}",
            checks / wall,
            checks / seconds,
            within(&mut latencies, 0.5),
            within(&mut latencies, 0.99)
        );
    }
}

/// Reports a message as spam: without any nomination, the interface looks nothing up.
fn nominate(daemon: &Daemon) {
    let mut child = Command::new(bulkmark_testing::program())
        .args(["report", "add", "--config"])
        .arg(daemon.path("milter.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("report");
    let mail = format!("From: a@example.net\r\n\r\n{}", crate::load::milter::body(0, 2_000));
    child.stdin.take().expect("stdin").write_all(mail.as_bytes()).expect("write");
    assert!(child.wait().expect("report").success());
}

/// Checks for a while; returns the time of each batch.
fn check(at: &str, batch: usize, first: u64) -> Vec<Duration> {
    let stream = TcpStream::connect(at).expect("connect");
    stream.set_nodelay(true).expect("nodelay");
    let mut lines = BufReader::new(stream.try_clone().expect("stream"));
    let (mut stream, mut line, mut next) = (stream, String::new(), first);
    lines.read_line(&mut line).expect("greeting");
    let (began, mut latencies, mut request) = (Instant::now(), Vec::new(), String::new());
    while began.elapsed() < WHILE {
        request.clear();
        for at in 0..batch {
            next += 1;
            let begin = if batch > 1 && at == 0 { "-" } else { "" };
            let which = if next % 2 == 0 { "e=4&ep4=7542-10" } else { "e=8" };
            request += &format!("{begin}a=c&{which}&s={next:027x}\r\n");
        }
        if batch > 1 {
            request += ".\r\n";
        }
        let sent = Instant::now();
        stream.write_all(request.as_bytes()).expect("write");
        for at in 0..batch {
            line.clear();
            lines.read_line(&mut line).expect("answer");
            let begin = if batch > 1 && at == 0 { "-" } else { "" };
            assert_eq!(line.strip_prefix(begin), Some("p=0\r\n"));
        }
        if batch > 1 {
            line.clear();
            lines.read_line(&mut line).expect("end");
            assert_eq!(line, ".\r\n");
        }
        latencies.push(sent.elapsed());
    }
    latencies
}
