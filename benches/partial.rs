// SPDX-License-Identifier: GPL-3.0-or-later
//! The needs of a milter with a partial copy, compared with a full one.
//!
//!     cargo bench --bench partial
//!     cargo bench --bench partial -- 20 10        # a twentieth of the traffic for the memory, a tenth for the bytes: the default
//!
//! Real ledgers on disk: a server, and a holder of each kind that applies its updates. The traffic is Pareto(1), that is, one signature
//! in x is seen x times or more, of 20 million different signatures a day, for seven days; here a part of it. First the memory for
//! seven windows; then the bytes of five minutes in the middle of a day, by the second.

use bulkmark_counts::{
    BulkAssembly, BulkMark, Durability, Federation, LocalCopy, Note, Reporter, Role, Settings, Update,
    Vector, mark_of,
};
use bulkmark_ledger::{Ledger, now};
use bulkmark_testing::random::{Random, element};
use bulkmark_types::{FederationKey, Signature};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tempfile::TempDir;

/// Different signatures of a day, of which a part is counted here.
const A_DAY: u64 = 20_000_000;

const DAYS: u64 = 7;
const DAY: u64 = 86_400;

/// The largest mailing.
const MOST: f64 = 1e6;

/// The count from which bulk is sent: half of the usual threshold.
const BOUND: u32 = 10;

/// Reports in a batch.
const BATCH: usize = 8192;

/// Bytes of an empty window.
const EMPTY: u64 = 1024 * 32;

/// Bytes of a frame without its content.
const FRAME: usize = 8;

fn main() {
    let mut arguments = std::env::args().skip(1);
    if !arguments.any(|argument| argument == "--bench") {
        return;
    }
    let mut parts = std::env::args().filter_map(|argument| argument.parse().ok());
    let (part, of_bytes) = (parts.next().unwrap_or(20), parts.next().unwrap_or(10));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(memory(A_DAY / part, part));
    runtime.block_on(bytes(A_DAY / of_bytes));
}

/// A server and its two holders.
struct Three {
    server: Ledger,
    full: Ledger,
    partial: Ledger,
    batch: u64,
    /// The holders' positions: they receive nothing twice.
    known: (Vector, BulkMark),
    /// Bytes sent to each kind of holder.
    told: [usize; 2],
    _directories: [TempDir; 3],
}

fn uniform(random: &mut Random) -> f64 {
    ((random.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
}

fn signature(number: u64) -> Signature {
    Signature::from_bytes(element(number).to_be_bytes())
}

impl Three {
    async fn new(capacity: u64) -> Self {
        let directories = std::array::from_fn(|_| tempfile::tempdir().unwrap());
        let federation = Federation { sync_interval: Duration::from_millis(1), ..Federation::default() };
        let settings = Settings {
            capacity: u32::try_from(capacity).unwrap().try_into().unwrap(),
            durability: Durability::Relaxed,
            federation,
            ..Settings::default()
        };
        let open = |directory: &TempDir, role, hold| {
            let mut settings = settings.clone();
            settings.federation.copy = hold;
            Ledger::open(directory.path(), role, &settings, &FederationKey::public()).unwrap()
        };
        let [a, b, c] = &directories;
        let server = open(a, Role::Server, LocalCopy::Full);
        let (full, partial) =
            (open(b, Role::Cache, LocalCopy::Full), open(c, Role::Cache, LocalCopy::Partial));
        let mark = server.list_bulk(BOUND).await.unwrap();
        partial.adopt_bulk(BulkAssembly::new(&settings, mark, Vec::new())).await.unwrap();
        Self {
            server,
            full,
            partial,
            batch: 0,
            known: (Vector::new(), mark),
            told: [0; 2],
            _directories: directories,
        }
    }

    async fn report(&mut self, reports: Vec<(Signature, u32)>, at: u64) {
        self.batch += 1;
        let reporter = Reporter { client: "bench".to_owned(), spool: 1 };
        self.server.take_batch(reporter, self.batch, reports, None, at).await.unwrap().unwrap();
    }

    /// Both holders receive all updates.
    async fn follow(&mut self) {
        loop {
            let ours = self.server.vector();
            let updates = self.server.reader().unwrap().updates(&ours, &self.known.0, 1 << 20).unwrap();
            if updates.is_empty() {
                break;
            }
            for bytes in updates {
                self.told[0] += bytes.len() + FRAME;
                let (origin, mark) = mark_of(&bytes).unwrap();
                self.known.0.set(origin, mark);
                let update = Update::decode(&bytes).unwrap();
                self.full.apply(update, bytes, now()).await.unwrap().unwrap();
            }
        }
        loop {
            let (ours, theirs) = (self.server.bulk(), self.known.1);
            let notes = self.server.reader().unwrap().notes(ours, theirs, 1 << 20).unwrap().unwrap();
            if notes.is_empty() {
                break;
            }
            for (number, bytes) in notes {
                self.told[1] += bytes.len() + 1 + FRAME;
                self.known.1 = self.known.1.after(number, &bytes);
                let note = Note::decode(&bytes).unwrap();
                self.partial.take_note(theirs.list, note, bytes, now()).await.unwrap().unwrap();
            }
        }
    }

    /// The same until nothing more is under way.
    async fn follow_to_the_end(&mut self) {
        // Data that waits for the next update comes with the next request.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        self.server.status(None).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        self.follow().await;
    }
}

/// Counts each signature once with all its reports: the order does not matter for the memory.
async fn memory(signatures: u64, part: u64) {
    let (mut three, mut random) = (Three::new(signatures).await, Random::new(1));
    let (today, mut reports) = (now(), 0u64);
    for day in 0..DAYS {
        let at = today - (DAYS - 1 - day) * DAY;
        let first = day * signatures;
        for from in (first..first + signatures).step_by(BATCH) {
            let numbers = from..(from + BATCH as u64).min(first + signatures);
            let batch: Vec<_> = numbers
                .map(|number| (signature(number), (1.0 / uniform(&mut random)).min(MOST) as u32))
                .collect();
            reports += batch.iter().map(|&(_, times)| u64::from(times)).sum::<u64>();
            three.report(batch, at).await;
            three.follow().await;
        }
    }
    three.follow_to_the_end().await;
    let full: usize = three.full.status(None).await.unwrap().slices.iter().map(|slice| slice.memory).sum();
    let partial = three.partial.status(None).await.unwrap().bulk.unwrap();
    println!("{DAYS} windows of {signatures} signatures, {reports} reports in all:");
    let entries = partial.signatures;
    println!(
        "  held of bulk: {entries} signatures, {:.1} % of all",
        100.0 * entries as f64 / (DAYS * signatures) as f64
    );
    let mb = |bytes: usize| bytes as f64 / 1e6;
    println!(
        "  all {:.1} MB, bulk {:.1} MB: 1/{:.1}",
        mb(full),
        mb(partial.memory),
        full as f64 / partial.memory as f64
    );
    // The size of an empty window does not grow with the traffic.
    let fixed = (DAYS * EMPTY) as f64 / 1e6;
    let whole = |bulk: f64| part as f64 * (bulk - fixed) + fixed;
    let (full, partial) = (part as f64 * mb(full), whole(mb(partial.memory)));
    println!(
        "  of 20 million a day, {part} times as much: all {full:.0} MB, bulk {partial:.0} MB: 1/{:.1}",
        full / partial
    );
    // Including the window that is about to expire.
    println!(
        "  and with an eighth window: all {:.0} MB, bulk {:.0} MB",
        full * 8.0 / 7.0,
        partial * 8.0 / 7.0
    );
}

/// Five minutes in the middle of a day, by the second. A report belongs to a mailing of x copies with a probability in proportion
/// to the number of such mailings times x; half of its copies came before.
async fn bytes(signatures: u64) {
    let (mut three, mut random) = (Three::new(signatures).await, Random::new(2));
    let a_second = (signatures as f64 * (1.0 + MOST.ln()) / DAY as f64).round() as usize;
    // Signatures of the morning that do not return, so that the filters are as full as at that time.
    for from in (0..signatures / 2).step_by(BATCH) {
        let batch = (from..from + BATCH as u64).map(|number| (signature(1 << 40 | number), 1)).collect();
        three.report(batch, now()).await;
        three.follow().await;
    }
    let mut seen = HashSet::new();
    let (mut seconds, mut before) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let mut second: HashMap<u64, u32> = HashMap::new();
        for _ in 0..a_second {
            let copies = MOST.powf(uniform(&mut random)).floor().max(1.0);
            let alike = (signatures as f64 / (copies * (copies + 1.0))).max(1.0) as u64;
            let number = ((copies as u64) << 24) | (random.next() % alike);
            if seen.insert(number) && copies >= 2.0 {
                before.push((signature(1 << 50 | number), (copies / 2.0) as u32));
            }
            *second.entry(number).or_default() += 1;
        }
        seconds.push(second);
    }
    for batch in before.chunks(BATCH) {
        three.report(batch.to_vec(), now()).await;
        three.follow().await;
    }
    three.follow_to_the_end().await;
    three.told = [0; 2];
    let mut reports = 0;
    for second in seconds {
        let batch: Vec<_> =
            second.into_iter().map(|(number, times)| (signature(1 << 50 | number), times)).collect();
        reports += a_second;
        three.report(batch, now()).await;
        // One update for each second.
        tokio::time::sleep(Duration::from_millis(2)).await;
        three.follow().await;
    }
    three.follow_to_the_end().await;
    let [full, partial] = three.told.map(|bytes| bytes as f64 / reports as f64);
    println!("{reports} reports, {a_second} a second, with the largest mailing of {MOST:.0} copies:");
    println!("  all {full:.1} bytes a report, bulk {partial:.1}");
}
