// SPDX-License-Identifier: GPL-3.0-or-later
//! The throughput of a signature server, and its needs.
//!
//!     cargo bench --bench server
//!     cargo bench --bench server -- generations
//!
//! The server has one core, the client the other. Batches of 8,192 new signatures, each acknowledged when it is on disk; then
//! single questions over persistent connections; then 20 million signatures, a snapshot of them, memory, and the time of a
//! restart; then a milter that follows. Finally the bytes on the wire at 1,000 reports a second.
//!
//! `generations` takes seven minutes: as many signatures in seven windows of a minute, and the memory for them.

use bulkmark_counts::Settings;
use bulkmark_sync::Parameters;
use bulkmark_sync::wire::{MAX_REPORTS, Reports};
use bulkmark_testing::process::resident;
use bulkmark_testing::random::element;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site};
use bulkmark_types::{FederationKey, Signature};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SIGNATURES: u64 = 20_000_000;

/// Windows of the second form.
const GENERATIONS: u64 = 7;

/// The signatures that the ledgers are sized for.
const CAPACITY: u32 = 20_000_000;

/// The number of connections that report, and that ask.
const REPORTERS: usize = 4;
const ASKERS: usize = 64;

/// The duration of an open-ended measurement.
const WHILE: Duration = Duration::from_secs(10);

fn main() {
    // `cargo test --benches` runs this without `--bench`: then there is nothing to measure.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    pin(std::process::id(), 1);
    let generations = std::env::args().any(|arg| arg == "generations");
    let mut settings = Settings { capacity: CAPACITY.try_into().unwrap(), ..Settings::default() };
    let mut server = Server::new(
        "anonymous-reading = true\n[limits]\nrate = 1000000000\nchecks-per-minute = 4000000000\n",
    );
    server.ledger = format!("capacity = {CAPACITY}");
    if generations {
        // Batches that are under way make a window slightly fuller.
        let capacity = u32::try_from(SIGNATURES / GENERATIONS + 50_000).unwrap();
        settings.capacity = capacity.try_into().unwrap();
        settings.window = Duration::from_secs(60);
        server.ledger = format!("capacity = {capacity}\nwindow = \"1m\"\nretention = \"{GENERATIONS}m\"");
    }
    let token = server.client(&["add", "--own", "bench"]).trim().to_owned();
    let daemon = server.start();
    pin(daemon.pid(), 0);
    let mut bench = Bench {
        server: &server,
        token,
        next: 0,
        parameters: Parameters::new(&settings, &FederationKey::public()),
    };
    if generations {
        return bench.generations(&daemon);
    }

    bench.reports();
    bench.questions();
    bench.fill();
    memory("server", &daemon);
    bench.snapshot();
    let daemon = restart("server", daemon, || server.start());
    memory("server, started again", &daemon);
    let site = milter(&[server.entry("mx", "report")]);
    let (site, _milter) = follow(&server, site);
    bench.bytes(&site);
}

fn pin(pid: u32, core: usize) {
    let pinned = Command::new("taskset").args(["-a", "-cp", &core.to_string(), &pid.to_string()]).output();
    if !pinned.is_ok_and(|output| output.status.success()) {
        println!("could not bind process {pid} to core {core}; the system places it");
    }
}

fn memory(what: &str, daemon: &Daemon) {
    println!("{what}: {} MB resident", resident(daemon) * 1024 / 1_000_000);
}

fn restart(what: &str, daemon: Daemon, start: impl FnOnce() -> Daemon) -> Daemon {
    assert!(daemon.terminate().success());
    let began = Instant::now();
    let daemon = start();
    println!("{what}: serves {:.2} s after it was started again", began.elapsed().as_secs_f64());
    daemon
}

struct Bench<'a> {
    server: &'a Server,
    token: String,
    /// The number of the next new signature.
    next: u64,
    /// The parameters of the ledger's settings.
    parameters: Parameters,
}

/// A persistent connection.
struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    spool: u64,
    batch: u64,
    /// Bytes sent and received.
    sent: usize,
    received: usize,
}

impl Connection {
    fn send(&mut self, head: &str, body: &[u8]) {
        let head = format!("{head}\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        let request = [head.as_bytes(), body].concat();
        self.sent += request.len();
        self.stream.write_all(&request).unwrap();
    }

    /// Reads an answer, which must be a success.
    fn answer(&mut self) -> Vec<u8> {
        let (mut length, mut first) = (0, String::new());
        loop {
            let mut line = String::new();
            self.received += self.reader.read_line(&mut line).unwrap();
            if first.is_empty() {
                first.clone_from(&line);
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).unwrap();
        self.received += length;
        assert!(first.starts_with("HTTP/1.1 200 "), "{first}{}", String::from_utf8_lossy(&body));
        body
    }
}

impl Bench<'_> {
    fn connect(&self, spool: usize) -> Connection {
        let stream = TcpStream::connect(("127.0.0.1", self.server.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        Connection { stream, reader, spool: spool as u64, batch: 0, sent: 0, received: 0 }
    }

    /// Sends so many new signatures, each once.
    fn send_batch(&mut self, connection: &mut Connection, size: usize) {
        let numbers = self.next..self.next + size as u64;
        self.next = numbers.end;
        let reports = numbers.map(|n| (Signature::from_bytes(element(n).to_be_bytes()), 1)).collect();
        connection.batch += 1;
        let body = Reports { spool: connection.spool, number: connection.batch, reports }.encode();
        let (token, parameters) = (&self.token, &self.parameters);
        connection.send(
            &format!(
                "POST /v1/reports HTTP/1.1\r\nAuthorization: Bearer {token}\r\nbulkmark-parameters: {parameters}"
            ),
            &body,
        );
    }

    /// Sends full batches on all connections while `go_on` is true. Returns the number of acknowledged ones.
    fn send_batches(&mut self, spool: usize, mut go_on: impl FnMut(&Self) -> bool) -> u64 {
        let before = self.next;
        let mut connections: Vec<_> = (0..REPORTERS).map(|i| self.connect(spool + i)).collect();
        for connection in &mut connections {
            self.send_batch(connection, MAX_REPORTS);
        }
        while go_on(self) {
            for connection in &mut connections {
                connection.answer();
                self.send_batch(connection, MAX_REPORTS);
            }
        }
        connections.iter_mut().for_each(|connection| drop(connection.answer()));
        self.next - before
    }

    fn reports(&mut self) {
        let began = Instant::now();
        let sent = self.send_batches(10, |_| began.elapsed() < WHILE);
        let rate = sent as f64 / began.elapsed().as_secs_f64();
        println!("batches of {MAX_REPORTS}: {:.0} thousand signatures a second, each on disk", rate / 1e3);
    }

    fn questions(&self) {
        let mut connections: Vec<_> = (0..ASKERS).map(|i| self.connect(i)).collect();
        let (began, mut asked) = (Instant::now(), 0u64);
        while began.elapsed() < WHILE {
            for connection in &mut connections {
                let signature = Signature::from_bytes(element(asked).to_be_bytes());
                connection.send(&format!("GET /v1/check?signature={signature} HTTP/1.1"), b"");
                asked += 1;
            }
            connections.iter_mut().for_each(|connection| drop(connection.answer()));
        }
        let rate = asked as f64 / began.elapsed().as_secs_f64();
        println!("{ASKERS} connections: {:.1} thousand checks a second", rate / 1e3);
    }

    /// Sends a part of the signatures in each of so many windows, while a milter follows.
    fn generations(&mut self, daemon: &Daemon) {
        let mut site = milter(&[self.server.entry("mx", "report")]);
        site.extra += &format!("[ledger]\n{}\n", self.server.ledger);
        let follower = site.start();
        for generation in 1..=GENERATIONS {
            let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            std::thread::sleep(Duration::from_secs(61 - seconds % 60));
            let until = SIGNATURES * generation / GENERATIONS;
            self.send_batches(usize::try_from(20 * generation).unwrap(), |bench| bench.next < until);
        }
        wait_until_even(self.server, &site);
        println!("{:.1} million signatures in {GENERATIONS} windows", self.next as f64 / 1e6);
        memory("server", daemon);
        memory("milter", &follower);
    }

    fn fill(&mut self) {
        let began = Instant::now();
        self.send_batches(20, |bench| bench.next < SIGNATURES);
        let seconds = began.elapsed().as_secs_f64();
        println!("{:.1} million signatures after {seconds:.0} s more", self.next as f64 / 1e6);
    }

    /// Reads a whole chunked answer.
    fn read(&self, path: &str) -> usize {
        let mut stream = TcpStream::connect(("127.0.0.1", self.server.port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let (mut bytes, mut piece) = (0, vec![0; 1 << 20]);
        loop {
            match stream.read(&mut piece).unwrap() {
                0 => return bytes,
                n => bytes += n,
            }
        }
    }

    fn snapshot(&self) {
        let began = Instant::now();
        let bytes = self.read("/v1/snapshot");
        println!("snapshot: {} MB in {:.2} s", bytes / 1_000_000, began.elapsed().as_secs_f64());
    }

    /// Sends a thousand reports a second, in batches of half a second as milters do; this milter follows.
    fn bytes(&mut self, site: &Site) {
        let received = || status(site)["links"][0]["bytes-in"].as_u64().unwrap();
        let mut connection = self.connect(99);
        let before = received();
        let rounds = 2 * usize::try_from(WHILE.as_secs()).unwrap();
        for _ in 0..rounds {
            self.send_batch(&mut connection, 500);
            connection.answer();
            std::thread::sleep(Duration::from_millis(500));
        }
        wait_until_even(self.server, site);
        let reports = (rounds * 500) as f64;
        let (up, down) = (connection.sent as f64 / reports, (received() - before) as f64 / reports);
        println!("1,000 new signatures a second: {up:.1} bytes a signature up, {down:.1} down");
        println!("  (as a list of signatures and counts of 4 bytes: 20.0)");
    }
}

/// Makes a milter and waits until it has all of the server's counts.
fn follow(server: &Server, mut site: Site) -> (Site, Daemon) {
    site.extra += &format!("[ledger]\n{}\n", server.ledger);
    let began = Instant::now();
    let daemon = site.start();
    wait_until_even(server, &site);
    println!("milter: has all counts {:.1} s after it was started", began.elapsed().as_secs_f64());
    memory("milter", &daemon);
    let daemon = restart("milter", daemon, || site.start());
    wait_until_even(server, &site);
    memory("milter, started again", &daemon);
    (site, daemon)
}

fn status(site: &Site) -> serde_json::Value {
    let config = site.config();
    let output = Command::new(bulkmark_testing::program())
        .args(["status", "--json", "--config"])
        .arg(config)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn wait_until_even(server: &Server, site: &Site) {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        let status = status(site);
        let versions = status["versions"].as_object().is_some_and(|versions| !versions.is_empty());
        if versions && status["links"][0]["behind"] == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "{}: {status}", server.url());
        std::thread::sleep(Duration::from_millis(100));
    }
}
