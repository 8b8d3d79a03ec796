// SPDX-License-Identifier: GPL-3.0-or-later
//! Microseconds a message for `mail` + `signature`: all signatures, and `body` alone, beside SHA-256 over the same bytes in the
//! same run.
//!
//!     cargo bench --bench signature
//!
//! Each case takes them in turn, and prints the medians of many rounds.

use bulkmark::mail::RawMessage;
use bulkmark::signature::{FederationKey, Settings, body, signatures};
use sha2::{Digest, Sha256};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds of each pair; odd, so that the median is one of them.
const ROUNDS: usize = 41;

fn main() {
    println!(
        "{:<24} {:>9} {:>11} {:>9} {:>11} {:>12}",
        "message", "bytes", "us/message", "all MB/s", "body MB/s", "SHA-256 MB/s"
    );
    for size in [5_000, 50_000, 1_000_000] {
        case("plain text", &plain(size));
        case("plain text, base64", &base64(size));
        case("plain text, quoted-pr.", &quoted_printable(size));
        case("HTML", &html(size));
    }
}

fn case(name: &str, raw: &[u8]) {
    let (key, settings) = (FederationKey::public(), Settings::default());
    let message = || RawMessage::from_bytes(black_box(raw)).expect("within bounds");
    let all = || drop(black_box(signatures(&message(), &key, &settings)));
    let body = || _ = black_box(body(&message(), &key, &settings).expect("has information"));
    let sha = || _ = black_box(Sha256::digest(black_box(raw)));
    let repeats = (1_000_000 / raw.len()).max(1);
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (times, run) in times.iter_mut().zip([&all as &dyn Fn(), &body, &sha]) {
            times.push(time(repeats, run));
        }
    }
    let [all, body, sha] = times.map(|mut times| {
        times.sort();
        times[ROUNDS / 2].as_secs_f64() * 1e6 / repeats as f64
    });
    let rate = |micros: f64| raw.len() as f64 / micros;
    println!(
        "{name:<24} {:>9} {all:>11.1} {:>9.0} {:>11.0} {:>12.0}",
        raw.len(),
        rate(all),
        rate(body),
        rate(sha)
    );
}

fn time(repeats: usize, f: &dyn Fn()) -> Duration {
    let start = Instant::now();
    for _ in 0..repeats {
        f();
    }
    start.elapsed()
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
