// SPDX-License-Identifier: GPL-3.0-or-later
//! The milter daemon under load: messages per CPU second of the daemon, latency at the end of a message, memory.
//!
//!     cargo bench --bench milter [-- MESSAGES]
//!     BASELINE=other/target/release/bulkmark cargo bench --bench milter
//!
//! Starts the real program with a fresh ledger and sends it mail by the milter protocol as an MTA does: 16 connections of 10
//! messages each, then new ones; 7 header fields; every body is different. CPU seconds are user + system of the daemon (from
//! /proc). No other program takes part, so the figures are absolute: compare them only on one machine.
//!
//! The last lines are ratios of messages per CPU second, which do not depend on the machine's other work: of the daemon to a C filter that does
//! nothing (this needs a C compiler and libmilter, by apt: `gcc libmilter-dev`), and to another version of the program, `BASELINE`.

mod load;

use load::daemon::{Daemon, target_dir};
use load::milter::Session;
use load::within;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 16;
const MESSAGES_PER_CONNECTION: usize = 10;

/// Rounds of a comparison; odd, so that the median is one of them.
const ROUNDS: usize = 11;

/// The configuration for comparisons, without waiting for the disk.
const RELAXED: &str = "[ledger]\ndurability = \"relaxed\"\n";

fn main() {
    let messages = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(50_000);
    println!(
        "{:<10} {:>7} {:>9} {:>9} {:>10} {:>9} {:>9} {:>9}",
        "socket", "body", "messages", "msg/s", "msg/CPU-s", "p50 ms", "p99 ms", "RSS MB"
    );
    for (listen, durability) in [("unix", "strict"), ("inet", "strict"), ("unix", "relaxed")] {
        for size in [2_000, 10_000] {
            run(listen, durability, size, messages);
        }
    }
    one_at_a_time(messages / 10);
    let daemon = start("unix", "strict");
    println!("idle: {:.1} MB resident", daemon.resident());
    load(&daemon, 2_000, 100_000);
    println!("after 100,000 messages: {:.1} MB resident", daemon.resident());
    match Daemon::null_milter() {
        Ok(nothing) => compare("a C filter that does nothing", &nothing, messages),
        Err(why) => println!("ratios to a C filter: skipped, {why}"),
    }
    if let Some(program) = std::env::var_os("BASELINE") {
        compare("BASELINE", &Daemon::start_by(Path::new(&program), "unix", RELAXED, 0), messages);
    }
}

/// Prints the ratio of messages per CPU second to another daemon: the median of rounds, in which both take turns.
fn compare(name: &str, other: &Daemon, messages: usize) {
    let ours = start("unix", "relaxed");
    let cost = |daemon: &Daemon, size| {
        let before = daemon.cpu();
        load(daemon, size, messages / ROUNDS);
        daemon.cpu() - before
    };
    for size in [2_000, 10_000] {
        let mut ratios: Vec<f64> = (0..ROUNDS).map(|_| cost(other, size) / cost(&ours, size)).collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "{size} bytes, to {name}: {:.2} (of {ROUNDS} rounds: {:.2} to {:.2})",
            ratios[ROUNDS / 2],
            ratios[0],
            ratios[ROUNDS - 1]
        );
    }
}

fn start(listen: &str, durability: &str) -> Daemon {
    Daemon::start(listen, &format!("[ledger]\ndurability = \"{durability}\"\n"), 0)
}

fn run(listen: &str, durability: &str, size: usize, messages: usize) {
    let daemon = start(listen, durability);
    load(&daemon, size, 2_000);
    let (cpu, start) = (daemon.cpu(), Instant::now());
    let mut latencies = load(&daemon, size, messages);
    let (wall, cpu) = (start.elapsed().as_secs_f64(), daemon.cpu() - cpu);
    let n = latencies.len() as f64;
    let name = if durability == "relaxed" { format!("{listen}, rel.") } else { listen.to_owned() };
    println!(
        "{name:<10} {size:>7} {n:>9} {:>9.0} {:>10.0} {:>9.2} {:>9.2} {:>9.1}",
        n / wall,
        n / cpu,
        within(&mut latencies, 0.5),
        within(&mut latencies, 0.99),
        daemon.resident()
    );
}

/// The cost of durability for one message: the same connection, one message after the other, and a plain write + fsync to the
/// same disk between them.
fn one_at_a_time(messages: usize) {
    let daemons = ["strict", "relaxed"].map(|durability| start("unix", durability));
    let mut file = tempfile::tempfile_in(target_dir()).expect("file");
    let mut sessions = daemons.each_ref().map(|daemon| Session::open(&daemon.address));
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for n in 0..messages {
        for (times, session) in times.iter_mut().zip(&mut sessions) {
            times.push(session.message(n, 2_000));
        }
        let start = Instant::now();
        file.write_all(&[0; 4096]).expect("write");
        file.sync_data().expect("sync");
        times[2].push(start.elapsed());
    }
    for (name, times) in ["strict", "relaxed", "write + fsync"].iter().zip(&mut times) {
        let (half, most) = (within(times, 0.5), within(times, 0.99));
        println!("one at a time, {name:<14} p50 {half:.2} ms, p99 {most:.2} ms");
    }
}

/// Sends messages over all connections at once; returns the time from end of message to answer for each.
fn load(daemon: &Daemon, size: usize, messages: usize) -> Vec<Duration> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let end = NEXT.load(Ordering::Relaxed) + messages;
    let client = || {
        let mut latencies = Vec::new();
        loop {
            let mut session = Session::open(&daemon.address);
            for _ in 0..MESSAGES_PER_CONNECTION {
                let n = NEXT.fetch_add(1, Ordering::Relaxed);
                if n >= end {
                    return latencies;
                }
                latencies.push(session.message(n, size));
            }
            session.command(b'Q', &[]);
            session.send();
        }
    };
    let latencies = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(client)).collect();
        threads.into_iter().flat_map(|t| t.join().expect("client")).collect()
    });
    NEXT.store(end, Ordering::Relaxed);
    latencies
}
