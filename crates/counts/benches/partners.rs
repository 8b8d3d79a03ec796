// SPDX-License-Identifier: GPL-3.0-or-later
//! The cost of a thousand partners: looking up a signature and taking a batch, on a server with and without them.
//!
//!     cargo bench -p bulkmark-counts --bench partners
//!
//! Seven windows, made for 250,000 signatures, have 32,768 of an own client each, and 250 of each partner. Lookups are of unreported
//! signatures, and batches have 8,192 new ones, on a server with a list of bulk. Both servers take turns; the shortest of 40 rounds is
//! shown.

use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::generations::Generations;
use bulkmark_counts::state::limited::{Limited, Limits};
use bulkmark_counts::state::local::Local;
use bulkmark_counts::state::merged::MergedCounts;
use bulkmark_counts::state::note_queue::NoteQueue;
use bulkmark_counts::state::peer_check::PeerCheck;
use bulkmark_counts::state::receipts::{Receipts, Reporter};
use bulkmark_counts::state::server::Server;
use bulkmark_counts::{Mark, Origin, Settings};
use bulkmark_types::Signature;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const DAY: u64 = 86_400;
const NOW: u64 = 20_000 * DAY + 1000;
const CAPACITY: NonZeroU32 = NonZeroU32::new(250_000).unwrap();
const PARTNERS: u64 = 1000;
const OF_PARTNER: u64 = 250;
const OF_OWN: u64 = 4 * BATCH as u64;
const BATCH: usize = 8192;
const ROUNDS: usize = 40;
const LOOKS: usize = 2 * BATCH;

/// Different signatures, spread as hashes are.
struct Signatures(u128);

impl Signatures {
    fn next(&mut self) -> Signature {
        self.0 += 1;
        let mixed = self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        Signature::from_bytes((mixed ^ mixed >> 61 ^ mixed >> 17).to_le_bytes())
    }

    fn batch(&mut self, len: usize) -> Vec<(Signature, u32)> {
        (0..len).map(|_| (self.next(), 1)).collect()
    }
}

struct Bench {
    server: Server,
    number: u64,
}

impl Bench {
    fn new(partners: u64, signatures: &mut Signatures) -> Self {
        let settings = Settings { capacity: CAPACITY, ..Settings::default() };
        let local = Local::recording(Generations::new(&settings), Origin(1), Mark::default());
        let server = Server {
            counts: Counts::new(local, MergedCounts::new(&settings), 0, &settings),
            cut_at: 0,
            receipts: Receipts::default(),
            limited: Limited::new(&settings),
            note_queue: NoteQueue::default(),
            peer_check: PeerCheck::default(),
            renewed: false,
        };
        let mut bench = Self { server, number: 0 };
        bench.server.list_bulk(10, 7);
        let limits = Limits { influence: 5, quota: 62_500 };
        for now in (0..7).map(|day| NOW - day * DAY) {
            for partner in 0..partners {
                let reports = signatures.batch(usize::try_from(OF_PARTNER).unwrap_or(0));
                bench.take(
                    &format!("partner {partner}"),
                    &reports,
                    Some(limits),
                    now,
                    (partner + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
                );
            }
            for _ in 0..OF_OWN / BATCH as u64 {
                let reports = signatures.batch(BATCH);
                bench.take("own", &reports, None, now, 0);
            }
            bench.settle(now);
        }
        bench
    }

    fn take(
        &mut self,
        client: &str,
        reports: &[(Signature, u32)],
        limits: Option<Limits>,
        now: u64,
        new: u64,
    ) {
        self.number += 1;
        let reporter = Reporter { client: client.to_owned(), spool: 1 };
        let taken = self.server.take_batch(reporter, self.number, reports, limits, now, Origin(new));
        assert!(taken.is_ok(), "{taken:?}");
    }

    /// Cuts updates, and drops the rows for the disk.
    fn settle(&mut self, now: u64) {
        self.server.cut(now);
        drop(std::mem::take(&mut self.server.counts.changes));
    }

    fn look(&self, asked: &[(Signature, u32)]) -> Duration {
        let began = Instant::now();
        let sum: u32 = asked.iter().map(|&(signature, _)| self.server.count(signature, NOW)).sum();
        black_box(sum);
        began.elapsed()
    }

    fn batch(&mut self, reports: &[(Signature, u32)]) -> Duration {
        let began = Instant::now();
        self.take("own", reports, None, NOW, 0);
        self.settle(NOW);
        began.elapsed()
    }
}

/// The shortest time, with the least interference by other processes.
fn least(times: Vec<Duration>) -> f64 {
    times.into_iter().min().unwrap_or_default().as_secs_f64()
}

fn main() {
    // `cargo test --benches` runs this without `--bench`: then there is nothing to measure.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let mut signatures = Signatures(0);
    let mut both = [0, PARTNERS].map(|partners| Bench::new(partners, &mut signatures));
    let (mut looks, mut batches) = ([vec![], vec![]], [vec![], vec![]]);
    for _ in 0..ROUNDS {
        let (asked, reports) = (signatures.batch(LOOKS), signatures.batch(BATCH));
        for (n, bench) in both.iter_mut().enumerate() {
            looks[n].push(bench.look(&asked));
            batches[n].push(bench.batch(&reports));
        }
    }
    let [looks, batches] = [looks, batches].map(|[without, with]| (least(without), least(with)));
    let each = 1e9 / LOOKS as f64;
    let ratio = |(without, with): (f64, f64)| with / without;
    println!(
        "a look: {:.0} ns without partners, {:.0} ns with {PARTNERS}: {:.2}",
        looks.0 * each,
        looks.1 * each,
        ratio(looks)
    );
    println!(
        "a batch: {:.2} ms without partners, {:.2} ms with {PARTNERS}: {:.2}",
        batches.0 * 1e3,
        batches.1 * 1e3,
        ratio(batches)
    );
}
