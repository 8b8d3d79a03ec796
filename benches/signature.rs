// SPDX-License-Identifier: GPL-3.0-or-later
//! Microseconds a message for `mail` + `signature`: all signatures, `body` alone, the additional time for `near`, and SHA-256
//! over the same bytes.
//!
//!     cargo bench --bench signature
//!     BASELINE=other/target/release/deps/signature-0123456789abcdef cargo bench --bench signature
//!
//! `BASELINE` names this benchmark as another version of the program built it (`cargo bench --bench signature --no-run`). Both
//! are processes that wait for orders: in each round both process the same message in turn, so other load on the machine affects
//! both. It prints medians: of times, and of the ratios of the rounds.

use bulkmark_mail::RawMessage;
use bulkmark_signature::{Settings, body, signatures};
use bulkmark_types::FederationKey;
use sha2::{Digest, Sha256};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

/// Rounds of each case; odd, so that the median is one of them.
const ROUNDS: usize = 41;

/// The argument that makes this a process that waits for orders.
const WORKER: &str = "--worker";

fn main() {
    if std::env::args().any(|argument| argument == WORKER) {
        work(&mut std::io::stdin().lock(), &mut std::io::stdout());
        return;
    }
    let mut workers = vec![Worker::start(&std::env::current_exe().expect("a path"))];
    workers.extend(std::env::var_os("BASELINE").map(|path| Worker::start(Path::new(&path))));
    print!(
        "{:<23} {:>8} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9}",
        "message", "bytes", "us, all", "MB/s", "us, body", "us, near", "near/body", "us, SHA"
    );
    let more = if workers.len() > 1 { "  baseline: all, times; near, times" } else { "" };
    println!("{more}");
    for size in [5_000, 50_000, 1_000_000] {
        case(&mut workers, "plain text", &plain(size));
        case(&mut workers, "plain text, base64", &base64(size));
        case(&mut workers, "plain text, quoted-pr.", &quoted_printable(size));
        case(&mut workers, "HTML", &html(size));
    }
    for mut worker in workers {
        drop(worker.orders);
        worker.process.wait().expect("it ends");
    }
}

/// Microseconds of one message: all signatures, `body`, SHA-256.
type Times = [f64; 3];

/// One statistic of some times.
type Read = fn(&Times) -> f64;

fn case(workers: &mut [Worker], name: &str, raw: &[u8]) {
    let repeats = (1_000_000 / raw.len()).max(1);
    workers.iter_mut().for_each(|worker| worker.message(raw));
    let mut rounds: Vec<Vec<Times>> = vec![Vec::new(); workers.len()];
    for round in 0..ROUNDS {
        for i in 0..workers.len() {
            // The first one has colder caches.
            let at = (i + round) % workers.len();
            rounds[at].push(["all", "body", "sha"].map(|what| workers[at].time(what, repeats)));
        }
    }
    let median_of = |times: &[Times], f: Read| median(times.iter().map(f).collect());
    let (all, near): (Read, Read) = (|t| t[0], |t| t[0] - t[1]);
    let [all_us, body_us, near_us, sha_us] =
        [all, |t: &Times| t[1], near, |t: &Times| t[2]].map(|f| median_of(&rounds[0], f));
    print!(
        "{name:<23} {:>8} {all_us:>9.1} {:>7.0} {body_us:>9.1} {near_us:>9.1} {:>9.1} {sha_us:>9.1}",
        raw.len(),
        raw.len() as f64 / all_us,
        near_us / body_us
    );
    if let [new, old] = &rounds[..] {
        let times = |f: Read| median(new.iter().zip(old).map(|(new, old)| f(old) / f(new)).collect());
        let (all_us, near_us) = (median_of(old, all), median_of(old, near));
        print!(" {all_us:>14.1} {:>6.2} {near_us:>9.1} {:>6.2}", times(all), times(near));
    }
    println!();
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// A process that measures one version of the program.
struct Worker {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    fn start(program: &Path) -> Self {
        let mut process = Command::new(program)
            .arg(WORKER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let (orders, answers) =
            (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
        Self { process, orders, answers: BufReader::new(answers) }
    }

    fn message(&mut self, raw: &[u8]) {
        writeln!(self.orders, "message {}", raw.len()).expect("it runs");
        self.orders.write_all(raw).expect("it runs");
    }

    /// The microseconds for this work on the message, averaged over so many times.
    fn time(&mut self, what: &str, repeats: usize) -> f64 {
        writeln!(self.orders, "{what} {repeats}").expect("it runs");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("it runs");
        answer.trim().parse::<f64>().expect("nanoseconds") / 1e3 / repeats as f64
    }
}

/// Executes orders: `message BYTES` followed by these bytes, and `all TIMES`, `body TIMES` or `sha TIMES`, each answered with
/// nanoseconds.
fn work(orders: &mut impl BufRead, answers: &mut impl Write) {
    let (key, settings) = (FederationKey::public(), Settings::default());
    let (mut raw, mut order) = (Vec::new(), String::new());
    while orders.read_line(&mut order).expect("orders") > 0 {
        let (what, number) = order.trim().split_once(' ').expect("two words");
        let number: usize = number.parse().expect("a number");
        if what == "message" {
            raw.resize(number, 0);
            orders.read_exact(&mut raw).expect("a message");
        } else {
            let message = || RawMessage::from_bytes(black_box(&raw));
            let all = || drop(black_box(signatures(&message(), &key, &settings)));
            let body = || _ = black_box(body(&message(), &key, &settings).expect("has information"));
            let sha = || _ = black_box(Sha256::digest(black_box(&raw)));
            let run: &dyn Fn() = match what {
                "all" => &all,
                "body" => &body,
                _ => &sha,
            };
            let start = Instant::now();
            (0..number).for_each(|_| run());
            writeln!(answers, "{}", start.elapsed().as_nanos()).expect("somebody listens");
            answers.flush().expect("somebody listens");
        }
        order.clear();
    }
}

const WORDS: &str = "the quick brown fox jumps over a lazy dog while our newsletter tells of autumn prices, new arrivals \
    and a meeting on Thursday; please answer soon, as seats are few and the café fills early on such days";

/// About `size` bytes of prose in lines of 70 characters.
fn prose(size: usize) -> String {
    let mut text = String::with_capacity(size + 80);
    let mut line = 0;
    for (i, word) in WORDS.split(' ').cycle().enumerate() {
        if text.len() >= size {
            break;
        }
        text.push_str(word);
        if i % 7 == 0 {
            text.push_str(&i.to_string());
        }
        line += word.len() + 1;
        text.push_str(if line > 70 { "\r\n" } else { " " });
        if line > 70 {
            line = 0;
        }
    }
    text
}

const HEAD: &str =
    "From: News <news@example.org>\r\nTo: you@example.net\r\nSubject: prices\r\nMIME-Version: 1.0\r\n";

fn plain(size: usize) -> Vec<u8> {
    format!("{HEAD}Content-Type: text/plain; charset=utf-8\r\n\r\n{}", prose(size)).into_bytes()
}

fn base64(size: usize) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut body = String::new();
    for (i, group) in prose(size * 3 / 4).as_bytes().as_chunks::<3>().0.iter().enumerate() {
        let bits = group.iter().fold(0u32, |bits, &b| bits << 8 | u32::from(b));
        body.extend([18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift & 63) as usize])));
        if i % 19 == 18 {
            body.push_str("\r\n");
        }
    }
    format!(
        "{HEAD}Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{body}\r\n"
    )
    .into_bytes()
}

fn quoted_printable(size: usize) -> Vec<u8> {
    let body = prose(size).replace('=', "=3D").replace('é', "=C3=A9").replace("; ", "; =\r\n");
    format!(
        "{HEAD}Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A newsletter of tables: about half of its bytes are tags and attributes.
fn html(size: usize) -> Vec<u8> {
    let mut body =
        String::from("<html><head><title>News</title><style>td { color: #333 }</style></head><body><table>");
    for (i, line) in prose(size).lines().enumerate() {
        if body.len() >= size {
            break;
        }
        body.push_str(&format!(
            "<tr><td class=\"item\" style=\"padding: 4px\"><a href=\"https://news.example.org/i/{i}?u=1&amp;v=2\">\
             Item {i}</a>\r\n<p>{line} &nbsp;</p></td></tr>\r\n"
        ));
    }
    format!("{HEAD}Content-Type: text/html; charset=utf-8\r\n\r\n{body}</table></body></html>\r\n")
        .into_bytes()
}
