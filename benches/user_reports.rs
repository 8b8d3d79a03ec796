// SPDX-License-Identifier: GPL-3.0-or-later
//! The needs of a milter with the maximum of user reports.
//!
//!     cargo bench --bench user_reports
//!
//! A real ledger on disk: 2,000 users report as many different messages as spam as there is room for, of nine signatures each, and traps as many as
//! they have room for. Then the memory, the time of the question behind `bulkmark report list`, the delay that it causes for mail, and the time of a
//! checkpoint. And the maximum number of pairs of correspondents.

use bulkmark_counts::{Nominated, OverviewFilter, Report, Role, Rows, Settings, Submission, Weighing};
use bulkmark_ledger::correspondents::{MAX_PAIRS, PairHashes, Pairs};
use bulkmark_ledger::{Ledger, now};
use bulkmark_types::{FederationKey, ReporterId, Signature, nomination};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Signatures of a message.
const PARTS: u64 = 9;

const USERS: u64 = 2000;

/// The most user reports that the ledger keeps, and the most reports of traps.
const OF_USERS: u64 = Rows::MOST_OF_USERS as u64;
const OF_TRAPS: u64 = 1 << 17;

/// The number of users who report at a time.
const AT_ONCE: u64 = 1024;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    // This comes first: memory that is freed later would be reused unnoticed.
    pairs();
    runtime.block_on(words());
}

/// The memory of this process in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

fn signature(n: u64) -> Signature {
    let mix = |n: u64| {
        n.wrapping_add(1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(23)
            .wrapping_mul(0xBF58_476D_1CE4_E5B9)
    };
    Signature::from_bytes((u128::from(mix(n)) << 64 | u128::from(mix(!n))).to_le_bytes())
}

fn saying(key: &FederationKey, message: u64, now: u64) -> Submission {
    let is_trap = message >= OF_USERS.div_ceil(PARTS);
    let name = if is_trap { format!("trap:{message}") } else { format!("user:{}", message % USERS) };
    let nominated = |part| {
        let of = signature(message * PARTS + part);
        Nominated { of, nomination: nomination(key, of), shared: false }
    };
    Submission {
        reporter: ReporterId::of(key, name.as_bytes()),
        nominations: (0..PARTS).map(nominated).collect(),
        trap: is_trap.then_some(8),
        weighing: Weighing { thousandths: 500, trap: 8, ..Weighing::default() },
        subject: "A subject of some sixty characters, as those of mailings are".to_owned(),
        now,
        ..Submission::default()
    }
}

async fn words() {
    let (directory, key, now) = (tempfile::tempdir().unwrap(), FederationKey::public(), now());
    let settings = Settings::default();
    let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
    // The windows exist before.
    ledger.submit(saying(&key, 0, now)).await.unwrap();
    let before = resident();
    let (messages, mut last) = ((OF_USERS + OF_TRAPS).div_ceil(PARTS), 0);
    for first in (0..messages).step_by(usize::try_from(AT_ONCE).unwrap()) {
        let mut all = JoinSet::new();
        for message in first..messages.min(first + AT_ONCE) {
            let (ledger, saying) = (ledger.clone(), saying(&key, message, now));
            all.spawn(async move { ledger.submit(saying).await.unwrap() });
        }
        let counted: usize = all.join_all().await.iter().map(|said| said.counted).sum();
        last += counted;
    }
    let status = ledger.status(None).await.unwrap();
    let Rows { users, traps, .. } = status.user_reports;
    println!("{users} words of {USERS} users and {traps} of traps, {last} counted:");
    println!("  memory {}", megabytes(resident() - before));
    let begun = Instant::now();
    let asked = OverviewFilter { since: 0, reporter: None, now };
    let mail = tokio::spawn(mail(ledger.clone(), now));
    let overview = ledger.overview(asked).await.unwrap();
    let told = overview.mailings.len() + overview.more_mailings;
    println!(
        "  what `bulkmark report list` asks, of {told} mailings: {:.2} s",
        begun.elapsed().as_secs_f64()
    );
    mail.abort();
    let slowest = Duration::from_micros(SLOWEST.load(Ordering::Relaxed)).as_secs_f64();
    println!("    while a letter waits to be counted for at most {slowest:.2} s");
    let begun = Instant::now();
    ledger.close().await.unwrap();
    println!("  a checkpoint, the last: {:.2} s", begun.elapsed().as_secs_f64());
    let file = std::fs::metadata(directory.path().join(bulkmark_ledger::FILE_NAME)).unwrap().len();
    println!("  the file: {}", megabytes(file));
    let begun = Instant::now();
    let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
    println!("  a start: {:.2} s", begun.elapsed().as_secs_f64());
    ledger.close().await.unwrap();
}

/// The longest time to count a letter, in microseconds.
static SLOWEST: AtomicU64 = AtomicU64::new(0);

/// Counts letters, one after the other.
async fn mail(ledger: Ledger, now: u64) {
    for letter in 0.. {
        let begun = Instant::now();
        let report =
            Report { signatures: vec![signature(1 << 40 | letter)], times: 1, now, ..Report::default() };
        ledger.report(report).await.unwrap();
        SLOWEST.fetch_max(u64::try_from(begun.elapsed().as_micros()).unwrap(), Ordering::Relaxed);
    }
}

fn pairs() {
    let before = resident();
    let mut pairs = Pairs::default();
    let pair = |n: u64| u64::from_le_bytes(signature(n).to_bytes()[..8].try_into().unwrap());
    (0..MAX_PAIRS as u64).for_each(|n| pairs.restore(pair(n), 20_000));
    println!("{MAX_PAIRS} pairs of correspondents, as read from disk: {}", megabytes(resident() - before));
    let mut written = 0;
    for n in 0..MAX_PAIRS as u64 / 500 {
        for other in 0..500 {
            let it = PairHashes { user: n, pair: pair((1 << 32) + n * 500 + other) };
            written += usize::from(pairs.record(it, 20_001 * 86_400));
        }
    }
    println!("  and with {written} others that are not on disk yet: {}", megabytes(resident() - before));
}
