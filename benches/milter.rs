// SPDX-License-Identifier: GPL-3.0-or-later
//! The milter daemon under load: messages per CPU second of the daemon, latency at the end of a message, memory.
//!
//!     cargo bench --bench milter [-- MESSAGES]
//!
//! Starts the real program with a fresh ledger and speaks the milter protocol to it as an MTA does: 16 connections of
//! 10 messages each, then new ones; 7 header fields; every body is different. CPU seconds are user + system of the daemon
//! (from /proc). No other program takes part, so the figures are absolute: compare them only on one machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 16;
const MESSAGES_PER_CONNECTION: usize = 10;

/// User and system times in /proc are in hundredths of a second on Linux.
const TICKS: f64 = 100.0;

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
    let daemon = Daemon::start("unix", "strict");
    println!("idle: {:.1} MB resident", daemon.resident());
    load(&daemon, 2_000, 100_000);
    println!("after 100,000 messages: {:.1} MB resident", daemon.resident());
}

fn run(listen: &str, durability: &str, size: usize, messages: usize) {
    let daemon = Daemon::start(listen, durability);
    load(&daemon, size, 2_000);
    let (cpu, start) = (daemon.cpu(), Instant::now());
    let mut latencies = load(&daemon, size, messages);
    let (wall, cpu) = (start.elapsed().as_secs_f64(), daemon.cpu() - cpu);
    latencies.sort();
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    let n = latencies.len() as f64;
    let name = if durability == "relaxed" { format!("{listen}, rel.") } else { listen.to_owned() };
    println!(
        "{name:<10} {size:>7} {n:>9} {:>9.0} {:>10.0} {:>9.2} {:>9.2} {:>9.1}",
        n / wall,
        n / cpu,
        at(0.5),
        at(0.99),
        daemon.resident()
    );
}

/// What durability costs one message: the same connection, one message after the other, and a plain write + fsync to
/// the same disk between them.
fn one_at_a_time(messages: usize) {
    let daemons = [Daemon::start("unix", "strict"), Daemon::start("unix", "relaxed")];
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
        times.sort();
        let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e3;
        println!("one at a time, {name:<14} p50 {:.2} ms, p99 {:.2} ms", at(0.5), at(0.99));
    }
}

/// Sends messages over all connections at once; the time from end of message to answer for each.
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

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// The MTA's side of a connection. Packets are collected until an answer is due, as Postfix does.
struct Session {
    stream: Box<dyn Stream>,
    out: Vec<u8>,
    options: u32,
}

impl Session {
    fn open(address: &str) -> Self {
        let stream: Box<dyn Stream> = if let Some(path) = address.strip_prefix("unix:") {
            Box::new(UnixStream::connect(path).expect("connect"))
        } else {
            Box::new(TcpStream::connect(address.trim_start_matches("inet:")).expect("connect"))
        };
        let mut session = Self { stream, out: Vec::new(), options: 0 };
        session.command(b'O', &[6u32, 0x1FF, 0x1F_FFFF].map(u32::to_be_bytes).concat());
        let (kind, answer) = session.answer();
        assert_eq!(kind, b'O');
        session.options = u32::from_be_bytes(answer[8..12].try_into().expect("options"));
        session.command(b'D', b"Cj\0mx.example.org\0{daemon_name}\0mx\0v\0Postfix\0");
        session.event(b'C', b"mail.example.net\x004\x30\x39192.0.2.10\0", 0x1, 0x1000);
        session.event(b'H', b"mail.example.net\0", 0x2, 0x2000);
        session
    }

    fn message(&mut self, n: usize, size: usize) -> Duration {
        let id = format!("i\x004{n:X}\0");
        self.command(b'D', b"M{mail_addr}\0news@example.net\0{mail_host}\0mx\0{mail_mailer}\0smtp\0");
        self.event(b'M', b"<news@example.net>\0", 0x4, 0x4000);
        self.command(b'D', b"R{rcpt_addr}\0you@example.org\0{rcpt_host}\0mx\0{rcpt_mailer}\0local\0");
        self.event(b'R', b"<you@example.org>\0", 0x8, 0x8000);
        self.command(b'D', format!("T{id}").as_bytes());
        self.event(b'T', b"", 0x200, 0x1_0000);
        let message_id = format!("Message-ID\0<{n}@example.net>\0");
        for header in [
            "Received\0from a by b; Sat, 21 Nov 2026 00:00:00 +0000\0",
            "From\0News <news@example.net>\0",
            "To\0you@example.org\0",
            "Subject\0prices of the week\0",
            "Date\0Sat, 21 Nov 2026 00:00:00 +0000\0",
            &message_id,
            "Content-Type\0text/plain; charset=utf-8\0",
        ] {
            self.command(b'D', format!("L{id}").as_bytes());
            self.event(b'L', header.as_bytes(), 0x20, 0x80);
        }
        self.event(b'N', b"", 0x40, 0x4_0000);
        self.event(b'B', body(n, size).as_bytes(), 0x10, 0x8_0000);
        self.command(b'D', format!("E{id}").as_bytes());
        self.command(b'E', &[]);
        let start = Instant::now();
        loop {
            let (kind, _) = self.answer();
            match kind {
                b'h' => (),
                b'c' => return start.elapsed(),
                other => panic!("unexpected answer {:?}", char::from(other)),
            }
        }
    }

    /// Sends a stage unless it was negotiated away, and takes the answer unless that was.
    fn event(&mut self, kind: u8, payload: &[u8], no: u32, no_reply: u32) {
        if self.options & no == 0 {
            self.command(kind, payload);
            if self.options & no_reply == 0 {
                assert_eq!(self.answer().0, b'c');
            }
        }
    }

    fn command(&mut self, kind: u8, payload: &[u8]) {
        self.out.extend_from_slice(&u32::try_from(payload.len() + 1).expect("small").to_be_bytes());
        self.out.push(kind);
        self.out.extend_from_slice(payload);
    }

    fn send(&mut self) {
        self.stream.write_all(&self.out).expect("write");
        self.out.clear();
    }

    fn answer(&mut self) -> (u8, Vec<u8>) {
        self.send();
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("read");
        let mut packet = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut packet).expect("read");
        (packet[0], packet[1..].to_vec())
    }
}

/// Prose of about `size` bytes that no other message has.
fn body(n: usize, size: usize) -> String {
    let mut text = format!("Dear reader number {n},\r\n\r\n");
    while text.len() < size {
        text.push_str(
            "our prices of this week are lower than those of the last one, see below and answer soon\r\n",
        );
    }
    text
}

struct Daemon {
    child: Child,
    address: String,
    _directory: tempfile::TempDir,
}

impl Daemon {
    fn start(listen: &str, durability: &str) -> Self {
        let directory =
            tempfile::Builder::new().prefix("bulkmark-bench-").tempdir_in(target_dir()).expect("directory");
        let path = |name: &str| directory.path().join(name).display().to_string();
        let listen =
            if listen == "unix" { format!("unix:{}", path("m")) } else { "inet:127.0.0.1:0".to_owned() };
        let config = format!(
            "listen = \"{listen}\"\ncontrol = \"{}\"\nstate-dir = \"{}\"\n[ledger]\ndurability = \"{durability}\"\n\
             [status]\nlisten = \"127.0.0.1:0\"\n[log]\ntarget = \"stderr\"\n",
            path("control"),
            directory.path().display()
        );
        std::fs::write(path("milter.toml"), config).expect("config");
        let mut child = Command::new(env!("CARGO_BIN_EXE_bulkmark"))
            .args(["milter", "--config", &path("milter.toml")])
            .stderr(Stdio::piped())
            .spawn()
            .expect("start");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let ready =
            lines.by_ref().map_while(Result::ok).find(|line| line.contains(" listens on ")).expect("ready");
        std::thread::spawn(move || lines.count());
        let address = ready.rsplit(' ').next().expect("address").to_owned();
        Self { child, address, _directory: directory }
    }

    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("stat");
        let fields: Vec<_> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        [11, 12].iter().map(|&i| fields[i].parse::<f64>().expect("ticks")).sum::<f64>() / TICKS
    }

    fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).expect("kB") / 1024.0
    }
}

/// On the disk of the project, not on a memory file system: a commit must reach a disk.
fn target_dir() -> &'static str {
    env!("CARGO_TARGET_TMPDIR")
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
