// SPDX-License-Identifier: GPL-3.0-or-later
//! Rows 1 to 3: the effect of limited clients on counts of mail that they never saw.

use super::cells::{blocks, orders, signature};
use super::client::{self, Http};
use super::{Outcome, Scale};
use bulkmark_filter::{CELLS_AT_CAPACITY, CELLS_PER_ELEMENT, Probe};
use bulkmark_testing::clock::Clock;
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::random::{Random, element};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, program, wait_until};
use std::process::Command;
use std::time::Instant;

/// The default of `thresholds.body`.
const THRESHOLD: u32 = 20;

/// The share of a server's capacity that a partner may use in a window, and the number of windows that count.
const QUOTA: f64 = 1.0 / 16.0;
const WINDOWS: f64 = 7.0;

/// A server, the milter of another member that follows it, and the client by which this member reports.
struct Federation {
    server: Server,
    site: Site,
    running: [Daemon; 2],
    own: Http,
    capacity: u32,
}

impl Federation {
    fn new(capacity: u32) -> Self {
        let mut server = Server::new("");
        server.ledger = format!("capacity = {capacity}");
        let token = client::own(&server, "member");
        let file = server.site.path("token");
        std::fs::write(&file, &token).unwrap();
        let entry = format!("{{ url = \"{}\", token-file = \"{}\" }}", server.url(), file.display());
        let mut site = milter(&[entry]);
        site.extra += &format!("[ledger]\n{}\n", server.ledger);
        let running = [server.start(), site.start()];
        let own = Http::new(server.port, &token);
        Self { server, site, running, own, capacity }
    }

    /// A partner with this limit, or with the default ones, and a high rate.
    fn partner(&self, name: &str, limit: Option<u32>) -> Http {
        let limit = limit.map(|limit| limit.to_string());
        let mut limits = vec!["--rate", "1000000"];
        limits.extend(limit.iter().flat_map(|limit| ["--max-influence", limit.as_str()]));
        Http::new(self.server.port, &client::partner(&self.server, name, &limits))
    }

    /// Waits until the milter has everything that the server counted before this.
    fn settle(&mut self, number: u64) {
        let file = self.site.path("marker.eml");
        std::fs::write(&file, letter(&mut Random::new(number << 32))).unwrap();
        let output = Command::new(program()).arg("signature").arg(&file).output().unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        let line = line.lines().find(|line| line.contains("\tbody\t")).unwrap();
        let marker = u128::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap();
        assert_eq!(self.own.report(&[marker], 100).status, 200);
        wait_until("the milter's counts", || {
            let (_, answer) = self.site.check(&std::fs::read(&file).unwrap());
            let value: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
            let log = || self.running.each_ref().map(|daemon| daemon.log.lines().join("\n")).join("\n");
            if value["body"]["count"].as_u64() >= Some(100) { Ok(()) } else { Err(answer + &log()) }
        });
    }

    /// The share of new letters, all different, that the milter takes for bulk.
    fn bulk(&self, letters: u32, seed: u64) -> f64 {
        let (mut session, mut random) = (session(&self.running[1]), Random::new(seed));
        let is_bulk =
            |_: &u32| session.message(&Mail::raw(&letter(&mut random))).header().starts_with("bulk");
        f64::from(u32::try_from((0..letters).filter(is_bulk).count()).unwrap()) / f64::from(letters)
    }

    /// Waits until no new letter is bulk.
    fn wait_until_none_is_bulk(&self, letters: u32, mut seed: u64) {
        wait_until("no bulk", || {
            seed += 1;
            match self.bulk(letters, seed) {
                0.0 => Ok(()),
                share => Err(format!("{:.1} %", 100.0 * share)),
            }
        });
    }
}

/// The default capacity, or a smaller one.
const fn capacity(scale: Scale) -> u32 {
    match scale {
        Scale::Small => 20_000,
        Scale::Full => 1_000_000,
    }
}

/// A letter of random words.
fn letter(random: &mut Random) -> Vec<u8> {
    let words: Vec<_> = (0..40).map(|_| format!("{:x}", random.next() >> 24)).collect();
    format!("Subject: a letter\r\n\r\n{}\r\n", words.join(" ")).into_bytes()
}

/// Signatures that together cover all cells of these blocks, block by block; and signatures that have each of these cells three times among
/// the three cells that count beyond 15. They are drawn at random, so that they look normal to a filter of another shape.
fn covering(blocks: usize, covered: usize) -> (Vec<u128>, Vec<u128>) {
    let mut random = Random::new(7);
    let mut places: Vec<usize> = (0..blocks).collect();
    shuffle(&mut random, &mut places);
    let drawn: Vec<[u8; 128]> = (0..covered).map(|_| shuffled(&mut random, cells())).collect();
    let (mut all, mut beyond) = (Vec::new(), Vec::new());
    for (i, cells) in drawn.iter().enumerate() {
        let next = (i + 1) % covered;
        let signature = |a, b| signature(blocks, [(places[i], a), (places[next], b)]);
        let (first, second) = (&cells.as_chunks::<4>().0[..16], &drawn[next].as_chunks::<4>().0[16..]);
        all.extend(first.iter().zip(second).map(|(&a, &b)| signature(a, b)));
        // In the first block of a signature, every fourth cell does not count beyond 15.
        let rest: Vec<u8> = first.iter().map(|cells| cells[3]).chain(cells[64..].iter().copied()).collect();
        for _ in 0..3 {
            let rest = shuffled(&mut random, <[u8; 80]>::try_from(&*rest).unwrap());
            for three in rest.chunks(3) {
                let [a, b, c] = [0, 1, 2].map(|i| *three.get(i).unwrap_or(&three[0]));
                let other = shuffled(&mut random, drawn[next]);
                beyond.push(signature([a, b, c, other[9]], [other[0], other[1], other[2], other[3]]));
            }
        }
    }
    (all, beyond)
}

fn cells() -> [u8; 128] {
    std::array::from_fn(|cell| cell as u8)
}

fn shuffled<const N: usize>(random: &mut Random, mut cells: [u8; N]) -> [u8; N] {
    shuffle(random, &mut cells);
    cells
}

fn shuffle<T>(random: &mut Random, all: &mut [T]) {
    for i in (1..all.len()).rev() {
        all.swap(i, random.below(i + 1));
    }
}

/// Conspiring partners cover the same blocks, as many as their quota allows.
fn conspire(capacity: u32, partners: u32, limit: Option<u32>) -> Outcome {
    let mut federation = Federation::new(capacity);
    let blocks = blocks(federation.capacity);
    // As many as leave the first slice below its capacity, including reports that are refused and repeated.
    let covered = blocks.min(federation.capacity as usize * 85 / 100 / 16);
    let (cells, beyond) = covering(blocks, covered);
    let letters = 500;
    let clean = federation.bulk(letters, 1);
    let names: Vec<_> = (1..=partners).map(|n| format!("partner{n}")).collect();
    let times = limit.unwrap_or(5);
    let (began, mut taken, mut refused) = (Instant::now(), 0, None);
    let mut https: Vec<_> = names.iter().map(|name| federation.partner(name, limit)).collect();
    let mut done = vec![0; https.len()];
    for (http, done) in https.iter_mut().zip(&mut done) {
        let refusal;
        (*done, refusal) = http.report_all(&cells, times);
        refused = refused.or(refusal);
    }
    for (http, done) in https.iter_mut().zip(done) {
        taken += done + http.report_all(&beyond[..done / 16 * beyond.len() / covered], times).0;
    }
    let time = began.elapsed().as_secs_f64();
    federation.settle(1);
    let bulk = federation.bulk(letters, 2);
    names.iter().for_each(|name| client::remove(&federation.server, name));
    federation.settle(2);
    federation.wait_until_none_is_bulk(letters, 3);
    let until =
        refused.map(|answer| format!(", then {} {}", answer.status, answer.error)).unwrap_or_default();
    let limit = limit.map_or_else(|| "the default limit".to_owned(), |limit| format!("the limit {limit}"));
    Outcome::new(
        format!("{partners} client(s) with {limit} cover blocks: {taken} signatures in {time:.0} s{until}"),
        format!(
            "{:.1} % of new innocent mail is bulk at a member, {:.1} % before, none after removal",
            100.0 * bulk,
            100.0 * clean
        ),
        bulk <= reckoned(partners, times),
    )
}

/// The predicted most that these partners can make bulk (crates/study/docs/partners.md), as a share of all new mail.
fn reckoned(partners: u32, limit: u32) -> f64 {
    let needed = (THRESHOLD - 1).div_ceil(limit);
    if partners < needed {
        return 0.0;
    }
    let covered = CELLS_PER_ELEMENT as f64 * QUOTA / CELLS_AT_CAPACITY;
    WINDOWS * f64::from(partners) / f64::from(needed) * covered * covered
}

pub(crate) fn cover(scale: Scale) -> Outcome {
    conspire(capacity(scale), 1, Some(19))
}

/// Uses a smaller ledger, since the effect depends on shares of it.
pub(crate) fn cover_together(_: Scale) -> Outcome {
    conspire(100_000, 4, None)
}

/// Signatures with the same cells in another order.
pub(crate) fn permute(scale: Scale) -> Outcome {
    let federation = Federation::new(capacity(scale));
    let blocks = blocks(federation.capacity);
    let mut partner = federation.partner("partner", Some(5));
    let mut member = Http::new(federation.server.port, &client::own(&federation.server, "reader"));
    let (mut highest, mut tried) = (0, 0);
    for victim in (0..20).map(element) {
        let probe = Probe::new(victim, blocks);
        let [first, second] = probe.cells.map(orders);
        let same: Vec<_> = first
            .iter()
            // The cells that count beyond 15 stay the same.
            .filter(|cells| cells[3] == probe.cells[0][3])
            .flat_map(|&a| second.iter().map(move |&b| [a, b]))
            .map(|[a, b]| signature(blocks, [(probe.blocks[0], a), (probe.blocks[1], b)]))
            .collect();
        tried = same.len();
        partner.report_all(&same, 5);
        highest = highest.max(member.count(victim));
    }
    Outcome::new(
        format!("a client with the limit 5 reports {tried} signatures with the cells of one that it aims at"),
        format!("it counts up to {highest}"),
        highest <= 5,
    )
}

/// The same signature on seven days.
pub(crate) fn wait_for_windows(_: Scale) -> Outcome {
    let mut server = Server::new("");
    let Some(clock) = Clock::of(&mut server.site, "+0") else {
        return Outcome::skipped("there is no faketime here");
    };
    let token = client::partner(&server, "partner", &["--max-influence", "5"]);
    let reader = client::own(&server, "reader");
    let _daemon = server.start();
    let mut counts = Vec::new();
    for day in 0..7 {
        clock.set(&format!("+{day}d"));
        Http::new(server.port, &token).report(&[element(1)], 5);
        counts.push(Http::new(server.port, &reader).count(element(1)));
    }
    let told: Vec<_> = counts.iter().map(u32::to_string).collect();
    Outcome::new(
        "a client with the limit 5 reports one signature on seven days",
        format!("it counts {}", told.join(", ")),
        counts.iter().all(|&count| count <= 5),
    )
}
