// SPDX-License-Identifier: GPL-3.0-or-later
//! How many copies are found, and how many unrelated messages are taken for copies: by the milter, over its socket.
//!
//!     make evaluate CORPUS=DIR [MUTATE=40]
//!
//! docs/evaluation.md says what DIR must hold, and what is measured. One fresh milter sees all messages in order; its header
//! tells the counts by `body` and by `near` signatures. Pyzor's digest is taken of the same messages where `PYZOR` names a
//! Python that has it.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../crates/study/src/labelled.rs"]
#[allow(unreachable_pub, reason = "it is a part of the studies, too")]
mod labelled;

use common::milter::{Client, Mail};
use common::{Daemon, Site};
use labelled::{Labelled, Replicas};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Messages on one connection.
const SESSION: usize = 50;

/// Of each way of counting, the count of one message; the last one is Pyzor's.
type Counts = [u32; 4];

const WAYS: [&str; 4] = ["body", "near", "both", "Pyzor"];

fn main() {
    let Some(corpus) = std::env::var_os("CORPUS").map(PathBuf::from) else {
        println!("evaluate: skipped, no CORPUS is given; see docs/evaluation.md");
        return;
    };
    let mutate = std::env::var("MUTATE").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    let corpus = Labelled::read(&corpus).unwrap();
    let work = tempfile::tempdir().unwrap();
    let Replicas { names, files: replicas } = corpus.replicas(mutate, work.path()).unwrap();

    let mut all: Vec<PathBuf> =
        corpus.ham.iter().chain(corpus.campaigns.iter().flatten()).chain(&corpus.alone).cloned().collect();
    all.extend(replicas.iter().flatten().cloned());
    let digests = Pyzor::start().map(|pyzor| pyzor.digests(&all));
    let site = Site::new("exempt-loopback = false\n[ledger]\ndurability = \"relaxed\"\n");
    let daemon = site.start();
    let mut counter = Counter { daemon: &daemon, client: None, sent: 0, digests, pyzor: HashMap::new() };

    println!("{:<34} {:>8} {}", "", "messages", WAYS.map(|way| format!("{way:>8}")).concat());
    let ham: Vec<Counts> = corpus.ham.iter().map(|file| counter.count(file)).collect();
    row("unrelated ham, counted 2 or more", ham.len(), number(&ham, 2));
    row("unrelated ham, counted 5 or more", ham.len(), number(&ham, 5));
    let campaigns: Vec<Vec<Counts>> =
        corpus.campaigns.iter().map(|files| files.iter().map(|file| counter.count(file)).collect()).collect();
    let later: Vec<Counts> = campaigns.iter().flat_map(|counts| &counts[1..]).copied().collect();
    row("campaigns beyond the first, joined", later.len(), share(&later));
    let whole: Vec<Counts> = campaigns.iter().map(|counts| least(&counts[1..])).collect();
    row("whole campaigns", whole.len(), share(&whole));
    let alone: Vec<Counts> = corpus.alone.iter().map(|file| counter.count(file)).collect();
    row("other spam, counted 2 or more", alone.len(), number(&alone, 2));
    for (name, files) in names.iter().zip(&replicas) {
        let counts: Vec<Counts> = files.iter().map(|file| counter.count(file)).collect();
        row(&format!("  {name}"), counts.len(), share(&counts));
    }
}

fn row(name: &str, messages: usize, values: [String; 4]) {
    println!("{name:<34} {messages:>8} {}", values.map(|value| format!("{value:>8}")).concat());
}

fn number(counts: &[Counts], least: u32) -> [String; 4] {
    std::array::from_fn(|way| counts.iter().filter(|counts| counts[way] >= least).count().to_string())
}

/// The share of those that were seen before, in percent.
fn share(counts: &[Counts]) -> [String; 4] {
    std::array::from_fn(|way| {
        let joined = counts.iter().filter(|counts| counts[way] >= 2).count();
        format!("{:.1} %", 100.0 * joined as f64 / counts.len().max(1) as f64)
    })
}

/// The lowest count of each way.
fn least(counts: &[Counts]) -> Counts {
    std::array::from_fn(|way| counts.iter().map(|counts| counts[way]).min().unwrap_or(0))
}

struct Counter<'a> {
    daemon: &'a Daemon,
    client: Option<Client>,
    sent: usize,
    digests: Option<HashMap<PathBuf, String>>,
    pyzor: HashMap<String, u32>,
}

impl Counter<'_> {
    fn count(&mut self, file: &Path) -> Counts {
        if self.sent.is_multiple_of(SESSION) {
            self.client = None;
        }
        self.sent += 1;
        let client = self.client.get_or_insert_with(|| {
            let mut client = Client::connect(self.daemon);
            client.client("client.test", "192.0.2.7");
            client
        });
        let raw = std::fs::read(file).unwrap();
        let mut mail = Mail::raw(&with_crlf(&raw));
        mail.sender = format!("sender{}@example.net", self.sent);
        mail.recipients = vec![format!("reader{}@example.org", self.sent)];
        let answer = client.message(&mail);
        let header: String = answer.added.first().map(|(_, value)| value.clone()).unwrap_or_default();
        let field = |name: &str| {
            let value = header.split("; ").find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        let (body, near): (u32, u32) = (field("body"), field("near"));
        let digest =
            self.digests.as_ref().and_then(|digests| digests.get(file)).filter(|digest| !digest.is_empty());
        let pyzor = digest.map_or(0, |digest| {
            let count = self.pyzor.entry(digest.clone()).or_default();
            *count += 1;
            *count
        });
        [body, near, body.max(near), pyzor]
    }
}

/// As it goes over the wire; a line of an mbox in front is no part of a message.
fn with_crlf(raw: &[u8]) -> Vec<u8> {
    let raw =
        if raw.starts_with(b"From ") { raw.splitn(2, |&b| b == b'\n').nth(1).unwrap_or(b"") } else { raw };
    let mut out = Vec::with_capacity(raw.len() + raw.len() / 30);
    for (i, &b) in raw.iter().enumerate() {
        if b == b'\n' && (i == 0 || raw[i - 1] != b'\r') {
            out.push(b'\r');
        }
        out.push(b);
    }
    out
}

struct Pyzor(PathBuf);

impl Pyzor {
    fn start() -> Option<Self> {
        let python = std::env::var_os("PYZOR").map(PathBuf::from)?;
        Some(Self(python))
    }

    fn digests(&self, files: &[PathBuf]) -> HashMap<PathBuf, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/evaluate/pyzor_digests.py");
        let mut python =
            Command::new(&self.0).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = python.stdin.take().unwrap();
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let writer = std::thread::spawn(move || {
            for name in names {
                writeln!(input, "{name}").unwrap();
            }
        });
        let lines = BufReader::new(python.stdout.take().unwrap()).lines().map_while(Result::ok);
        let digests = files.iter().cloned().zip(lines).collect();
        writer.join().unwrap();
        assert!(python.wait().unwrap().success(), "pyzor_digests.py failed");
        digests
    }
}
