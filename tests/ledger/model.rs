// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger against an exact model, and its guarantees over kills.

use bulkmark_counts::{Report, Settings};
use bulkmark_ledger::{FILE_NAME, Ledger};
use bulkmark_testing::counts::*;
use bulkmark_testing::ends::Ends;
use bulkmark_testing::milter::{Client, Mail};
use bulkmark_testing::{Daemon, Site, random::Random, wait_for_some, wait_until};
use proptest::prelude::*;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone)]
enum Step {
    Report {
        number: u64,
        times: u32,
        keys: Vec<u64>,
    },
    Refused(Vec<u64>),
    /// The clock moves, sometimes backwards.
    Later(i64),
    Reopen,
}

fn step(numbers: u64) -> impl Strategy<Value = Step> {
    let keys = || prop::collection::vec(0u64..5, 0..3);
    prop_oneof![
        10 => (0..numbers, 0u32..9, keys()).prop_map(|(number, times, keys)| Step::Report { number, times, keys }),
        2 => keys().prop_map(Step::Refused),
        2 => (-7200i64..30_000).prop_map(Step::Later),
        1 => (1i64..4).prop_map(|days| Step::Later(days * DAY as i64)),
        1 => Just(Step::Reopen),
    ]
}

/// Exact counts by window, and the time of each refusal.
#[derive(Default)]
struct Model {
    counts: HashMap<(u64, u64), u32>,
    refused: HashMap<u64, u64>,
}

impl Model {
    fn report(&mut self, number: u64, times: u32, keys: &[u64], now: u64) {
        self.forget(now);
        let again = keys.iter().filter(|k| self.refused.contains_key(k)).count();
        let count = self.counts.entry((now - now % DAY, number)).or_default();
        *count += times.saturating_sub(again as u32);
    }

    /// Refusals are remembered for an hour.
    fn forget(&mut self, now: u64) {
        self.refused.retain(|_, at| now.abs_diff(*at) <= 3600);
    }

    /// Seven days: today's window and the six before it.
    fn count(&self, number: u64, now: u64) -> u32 {
        let today = now - now % DAY;
        (0..7).filter_map(|d| self.counts.get(&(today - d * DAY, number))).sum()
    }
}

/// Runs a history on both and compares the answers with `fits(answer, truth)`, at each step and in the end.
async fn compare(history: Vec<Step>, numbers: u64, settings: Settings, fits: fn(u32, u32) -> bool) {
    let directory = tempfile::tempdir().unwrap();
    let mut ledger = open(directory.path(), &settings);
    let (mut model, mut now) = (Model::default(), NOW);
    for step in history {
        match step {
            Step::Report { number, times, keys } => {
                model.report(number, times, &keys, now);
                let keys = keys.into_iter().map(key).collect();
                let answer = ledger.report(Report { keys, ..report(number, times, now) }).await.unwrap()[0];
                assert!(fits(answer, model.count(number, now)), "{answer} for {}", model.count(number, now));
            }
            Step::Refused(keys) => {
                model.refused.extend(keys.iter().map(|&k| (k, now)));
                model.forget(now);
                ledger.record_refused(keys.into_iter().map(key).collect(), now).await.unwrap();
                assert_eq!(ledger.remembers_refused(), !model.refused.is_empty());
            }
            Step::Later(seconds) => now = now.saturating_add_signed(seconds),
            Step::Reopen => {
                ledger.close().await.unwrap();
                ledger = open(directory.path(), &settings);
            }
        }
    }
    for number in 0..numbers {
        let answer = ledger.count(signature(number), now).await.unwrap();
        assert!(fits(answer, model.count(number, now)), "{answer} for {}", model.count(number, now));
    }
    ledger.close().await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exact_where_there_is_room(history in prop::collection::vec(step(8), 0..60)) {
        run(compare(history, 8, settings(10_000), |answer, truth| answer == truth));
    }

    /// A filter that is far too small may show too much, but never too little.
    #[test]
    fn never_below_the_truth(history in prop::collection::vec(step(200), 0..60)) {
        run(compare(history, 200, settings(10), |answer, truth| answer >= truth));
    }
}

/// Enough reports for checkpoints in between, over more windows than are kept.
#[tokio::test]
async fn checkpoints_change_no_count() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(10_000);
    let ledger = open(directory.path(), &settings);
    for day in 0..10 {
        let now = NOW + day * DAY;
        report_all(&ledger, (0..5_000).map(|i| report(i % 1000, 1, now))).await;
    }
    let now = NOW + 9 * DAY;
    for round in 0..2 {
        let ledger = if round == 0 { ledger.clone() } else { open(directory.path(), &settings) };
        for number in [0, 1, 500, 999] {
            assert_eq!(ledger.count(signature(number), now).await, Ok(35), "round {round}");
            // Windows that left memory and file were no longer needed.
            assert_eq!(ledger.count(signature(number), now + 6 * DAY).await, Ok(5));
            assert_eq!(ledger.count(signature(number), now + 7 * DAY).await, Ok(0));
        }
        ledger.close().await.unwrap();
    }
}

/// The file stays within four times the memory of the cells, as docs/ledger.md promises, even if all cells of each window are in use and
/// rewritten constantly.
#[tokio::test]
async fn the_file_stays_within_four_times_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(200_000);
    for day in 0..10 {
        let ledger = open(directory.path(), &settings);
        // So many reports begin a checkpoint, which knows the time: what has expired leaves the file. The end is another one.
        for _ in 0..10 {
            report_all(&ledger, (0..2000).map(|i| report(day * 2000 + i, 30, NOW + day * DAY))).await;
        }
        ledger.close().await.unwrap();
    }
    let memory = 8 * 64 * (875 * 200_000_u64 / 100).div_ceil(128);
    let file = directory.path().join(FILE_NAME).metadata().unwrap().len();
    assert!(file <= 4 * memory, "{file} bytes on disk, {memory} in memory");
}

/// After a change of the window's length, older counts stay until they expire.
#[tokio::test]
async fn another_window_keeps_old_counts() {
    let directory = tempfile::tempdir().unwrap();
    let day = settings(20_000);
    let hours = Settings { window: Duration::from_secs(6 * 3600), ..day.clone() };
    // Early in the day both kinds of window begin at the same time.
    let now = NOW - DAY / 2 + 600;
    let ledger = open(directory.path(), &day);
    report_all(&ledger, (0..100).map(|i| report(i, 3, now))).await;
    ledger.close().await.unwrap();
    let ledger = open(directory.path(), &hours);
    report_all(&ledger, (100..200).map(|i| report(i, 2, now))).await;
    ledger.close().await.unwrap();
    for settings in [&hours, &day] {
        let ledger = open(directory.path(), settings);
        for number in 0..200 {
            let truth = if number < 100 { 3 } else { 2 };
            assert_eq!(ledger.count(signature(number), now).await, Ok(truth), "signature {number}");
        }
        ledger.close().await.unwrap();
    }
}

/// A new capacity applies to new windows; old ones keep theirs.
#[tokio::test]
async fn another_capacity_keeps_old_counts() {
    let directory = tempfile::tempdir().unwrap();
    for (i, capacity) in [1000, 50_000, 300].into_iter().enumerate() {
        let ledger = open(directory.path(), &settings(capacity));
        for number in 0..20 {
            for now in [NOW, NOW + i as u64 * DAY] {
                ledger.report(report(number, 1, now)).await.unwrap();
            }
        }
        ledger.close().await.unwrap();
    }
    let ledger = open(directory.path(), &settings(1000));
    for number in 0..20 {
        assert_eq!(ledger.count(signature(number), NOW + 2 * DAY).await, Ok(6));
    }
    ledger.close().await.unwrap();
}

/// Counts beyond the limits of a cell, an entry of split storage and any threshold are exact, by single reports and by many at once, from
/// cells and from the journal, and over windows.
#[tokio::test]
async fn large_counts_are_exact_over_restarts() {
    let mut directory = tempfile::tempdir().unwrap();
    let steps = [14, 1, 1, 14, 1, 1, (1 << 20) - 33, 1, 1, 12, 1, 1, 1 << 24];
    let mut truth = 0;
    for (i, times) in steps.into_iter().enumerate() {
        let ledger = open(directory.path(), &settings(1000));
        truth += times;
        for number in 0..50 {
            assert_eq!(
                ledger.report(report(number, times, NOW)).await,
                Ok(vec![truth]),
                "after {times} more"
            );
        }
        // Every other round it continues as after a crash, with the reports in the journal.
        let crashed = tempfile::tempdir().unwrap();
        std::fs::copy(directory.path().join(FILE_NAME), crashed.path().join(FILE_NAME)).unwrap();
        ledger.close().await.unwrap();
        if i % 2 == 0 {
            directory = crashed;
        }
    }
    let ledger = open(directory.path(), &settings(1000));
    for number in 0..50 {
        let later = NOW + DAY;
        assert_eq!(ledger.report(report(number, 20, later)).await, Ok(vec![truth + 20]));
    }
    ledger.close().await.unwrap();
}

/// A threshold may be far beyond a cell's maximum: mail is bulk from that count on, and not before.
#[test]
fn thresholds_far_beyond_the_cells() {
    for threshold in [15, 16, 17, 32, 1 << 20, 1 << 24] {
        // Reports written directly into the ledger have no networks.
        let thresholds = format!("[thresholds]\nbody = {threshold}\nmin-sources = 1\n");
        let site = Site::new(&format!("{thresholds}[ledger]\ncapacity = 20000\n"));
        let mail = Mail::text("often seen");
        assert!(site.start().terminate().success());
        let raw = [b"Subject: s\r\n\r\n", &mail.body[..]].concat();
        let answer: serde_json::Value = serde_json::from_str(&site.check(&raw).1).unwrap();
        let signature = answer["body"]["signature"].as_str().unwrap().parse().unwrap();
        run(async {
            let ledger = open(&site.path("state"), &settings(20_000));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            let signatures = vec![signature];
            let report = Report { signatures, times: threshold - 3, now, ..Report::default() };
            ledger.report(report).await.unwrap();
            ledger.close().await.unwrap();
        });
        let daemon = site.start();
        let mut client = Client::connect(&daemon);
        client.client("client.example.org", "192.0.2.7");
        for (verdict, count) in
            [("clean", threshold - 2), ("clean", threshold - 1), ("bulk", threshold), ("bulk", threshold + 1)]
        {
            let expected = format!("{verdict}; body={count}; threshold={threshold}; host=mx.test");
            assert_eq!(client.message(&mail).verdict(), expected);
        }
    }
}

/// A caller may disappear before the answer: its report is still counted, and once.
#[tokio::test]
async fn an_asker_that_went_away_is_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = open(directory.path(), &settings(1000));
    for _ in 0..20 {
        // One poll sends the report; then the future is dropped, before or after the answer came.
        let mut asking = Box::pin(ledger.report(report(1, 1, NOW)));
        std::future::poll_fn(|context| {
            let _ = asking.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    }
    assert_eq!(ledger.report(report(1, 1, NOW)).await, Ok(vec![21]));
    ledger.close().await.unwrap();
    let ledger: Ledger = open(directory.path(), &settings(1000));
    assert_eq!(ledger.count(signature(1), NOW).await, Ok(21));
    ledger.close().await.unwrap();
}

/// The count in the output of `bulkmark check` for a message.
fn counted(site: &Site, mail: &Mail) -> u32 {
    let raw = [b"Subject: s\r\n\r\n", &mail.body[..]].concat();
    let (code, text) = site.check(&raw);
    assert!(code < 2, "{text}");
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    u32::try_from(answer["body"]["count"].as_u64().unwrap()).unwrap()
}

/// Sends one message repeatedly until the daemon is gone. Counts the answers, and returns whether one was outstanding.
fn bombard(daemon: &Daemon, mail: &Mail, answered: &AtomicU32, gone: &AtomicBool) -> bool {
    let mut client = Client::connect(daemon);
    client.client("client.example.org", "192.0.2.7");
    while !gone.load(Ordering::Relaxed) {
        client.send(b'M', b"<a@example.org>\0");
        client.send(b'R', b"<b@example.org>\0");
        client.send(b'T', b"");
        let Some((b'c', _)) = client.receive() else { return false };
        client.send(b'L', b"Subject\0s\0");
        if client.options & 0x40 == 0 {
            client.send(b'N', b"");
            if client.options & 0x4_0000 == 0 && client.receive().is_none() {
                return false;
            }
        }
        client.send(b'B', &mail.body);
        match client.try_end() {
            Some(answer) => {
                assert!(answer.count().is_some(), "{answer:?}");
                answered.fetch_add(1, Ordering::Relaxed);
            }
            None => return true,
        }
    }
    false
}

/// Over many kills, an answered report is counted once, and an unanswered one once or not at all.
#[test]
fn kills_lose_no_answered_message() {
    const CONNECTIONS: usize = 4;
    const KILLS: u32 = 12;
    let site = Site::new("[ledger]\ncapacity = 20000\n");
    let mut random = Random::new(3);
    let mut told = Vec::new();
    for kill in 0..KILLS {
        let daemon = site.start();
        let mails: Vec<_> =
            (0..CONNECTIONS).map(|c| Mail::text(&format!("kill {kill}, connection {c}"))).collect();
        let answered: Vec<_> = (0..CONNECTIONS).map(|_| AtomicU32::new(0)).collect();
        let gone = AtomicBool::new(false);
        let wanted = 1 + random.below(CONNECTIONS * 12) as u32;
        std::thread::scope(|scope| {
            let threads: Vec<_> = mails
                .iter()
                .zip(&answered)
                .map(|(mail, answered)| scope.spawn(|| bombard(&daemon, mail, answered, &gone)))
                .collect();
            let end = Ends(&gone);
            wait_for_some("answers", || {
                let sum = answered.iter().map(|answered| answered.load(Ordering::Relaxed)).sum::<u32>();
                (sum >= wanted).then_some(())
            });
            daemon.signal("KILL");
            drop(end);
            for ((thread, mail), answered) in threads.into_iter().zip(&mails).zip(&answered) {
                let in_flight = u32::from(thread.join().unwrap());
                told.push((mail.clone(), answered.load(Ordering::Relaxed), in_flight));
            }
        });
        drop(daemon);
    }
    let daemon = site.start();
    assert!(told.iter().map(|(_, answered, _)| answered).sum::<u32>() >= KILLS);
    for (mail, answered, in_flight) in told {
        let count = counted(&site, &mail);
        let truth = answered..=answered + in_flight;
        assert!(truth.contains(&count), "{count} is not in {truth:?}");
    }
    assert!(daemon.terminate().success());
}

/// Without waiting for the disk, a kill may lose the last moments' reports, but never counts twice; an orderly stop loses nothing.
#[test]
fn relaxed_durability_loses_a_moment_at_most() {
    let site = Site::new("[ledger]\ndurability = \"relaxed\"\ncapacity = 20000\n");
    let send = |daemon: &Daemon, mail: &Mail, n: u32| {
        let mut client = Client::connect(daemon);
        client.client("client.example.org", "192.0.2.7");
        (0..n).map(|_| client.message(mail).count().unwrap()).last().unwrap()
    };
    let (orderly, killed) = (Mail::text("ended in order"), Mail::text("killed"));
    let daemon = site.start();
    assert_eq!(send(&daemon, &orderly, 7), 7);
    assert!(daemon.terminate().success());
    let daemon = site.start();
    assert_eq!(counted(&site, &orderly), 7);

    assert_eq!(send(&daemon, &killed, 5), 5);
    // The state of the disk after a kill: checks copies until the commit has come.
    let copy = Site::new(&site.extra);
    copy.config();
    wait_until("a commit", || {
        std::fs::copy(site.path("state/ledger.redb"), copy.path("state/ledger.redb")).unwrap();
        // A copy made during a commit may be torn, which a disk never is after a kill.
        let (code, text) = copy.check(&[b"Subject: s\r\n\r\n", &killed.body[..]].concat());
        if code == 0 && text.contains("\"count\":5") { Ok(()) } else { Err(text) }
    });
    assert_eq!(send(&daemon, &killed, 3), 8);
    daemon.kill();
    let daemon = site.start();
    assert!((5..=8).contains(&counted(&site, &killed)));
    assert_eq!(counted(&site, &orderly), 7);
    drop(daemon);
    assert!(Path::new(&site.path("state/ledger.redb")).exists());
}
