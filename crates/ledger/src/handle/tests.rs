// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests of the handle.

use super::*;
use crate::FILE_NAME;
use bulkmark_counts::{Durability, Nominated, OverviewFilter, Submission, Weighing, Withdrawal};
use bulkmark_types::{ReporterId, nomination, revocation};

fn report(signature: Signature, times: u32, now: u64) -> Report {
    Report { signatures: vec![signature], times, now, ..Report::default() }
}

#[tokio::test]
async fn reports_are_counted_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (settings, key) = (Settings::default(), FederationKey::public());
    let signature = Signature::from_bytes([9; 16]);
    let now = 1_800_000_000;
    for round in 0..3 {
        let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
        for i in 1..=5 {
            assert_eq!(ledger.report(report(signature, 1, now)).await, Ok(vec![round * 5 + i]));
        }
        ledger.close().await.unwrap();
        assert_eq!(ledger.count(signature, now).await, Err(LedgerError::Closed));
    }
    assert_eq!(crate::read(directory.path(), &settings, &key, &[signature], now).unwrap()[0].total(), 15);
}

/// Reading counts does not wait for the writer, which is held up here as by a slow disk.
#[tokio::test]
async fn questions_do_not_wait_for_the_writer() {
    let directory = tempfile::tempdir().unwrap();
    let ledger =
        Ledger::open(directory.path(), Role::Site, &Settings::default(), &FederationKey::public()).unwrap();
    let (signature, now) = (Signature::from_bytes([9; 16]), 1_800_000_000);
    ledger.report(report(signature, 3, now)).await.unwrap();
    let (go, wait) = std::sync::mpsc::channel();
    let (begun, begins) = oneshot::channel();
    let held = ledger.query(move |_| {
        begun.send(()).unwrap();
        wait.recv().unwrap();
    });
    let asks = async {
        begins.await.unwrap();
        assert_eq!(ledger.counts(vec![signature], now).await, Ok(vec![3]));
        assert_eq!(
            ledger.weighed(vec![nomination(&FederationKey::public(), signature)], 1000, now).await,
            Ok(vec![0])
        );
        go.send(()).unwrap();
    };
    let (held, ()) = tokio::join!(held, asks);
    held.unwrap();
}

/// Endless work is shown while it lasts, and no longer.
#[tokio::test]
async fn shows_how_long_its_writer_is_busy() {
    let directory = tempfile::tempdir().unwrap();
    let (settings, key) = (Settings::default(), FederationKey::public());
    let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
    let (go, wait) = std::sync::mpsc::channel();
    let (begun, begins) = oneshot::channel();
    let held = ledger.query(move |_| {
        begun.send(()).unwrap();
        wait.recv().unwrap();
    });
    let watched = async {
        begins.await.unwrap();
        let mut longest = Duration::ZERO;
        while longest < Duration::from_millis(5) {
            assert!(ledger.busy_for() >= longest, "it started over");
            assert!(!ledger.is_busy_with_disk(), "it is the processor's");
            longest = ledger.busy_for();
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
    };
    let (held, ()) = tokio::join!(held, watched);
    held.unwrap();
    while !ledger.busy_for().is_zero() {
        tokio::task::yield_now().await;
    }
    ledger.close().await.unwrap();
    assert!(ledger.busy_for().is_zero(), "a closed one has no work");
}

/// A panic that the writer survives does not close the ledger: the caller gets the error that there is no answer now.
#[tokio::test]
async fn only_a_closed_ledger_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let (settings, key) = (Settings::default(), FederationKey::public());
    let signature = Signature::from_bytes([9; 16]);
    let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
    assert_eq!(ledger.report(report(signature, 1, 1_800_000_000)).await, Ok(vec![1]));
    let unavailable = || LedgerError::Unavailable(INTERNAL.to_owned());
    assert_eq!(ledger.query(|_| panic!("as a fault would")).await, Err::<(), _>(unavailable()));
    assert_eq!(ledger.report(report(signature, 1, 1_800_000_000)).await, Err(unavailable()));
    assert_eq!(ledger.count(signature, 1_800_000_000).await, Ok(1), "counts on disk can be read");
    // The disk works, so the ledger closes without losing counts.
    let _ = ledger.close().await;
    assert_eq!(ledger.count(signature, 1_800_000_000).await, Err(LedgerError::Closed));
}

/// A milter whose upstream servers are all away counts nothing, so it writes no checkpoints. It still forgets refused messages in
/// time.
#[tokio::test]
async fn a_milter_without_servers_forgets_refused_messages() {
    let directory = tempfile::tempdir().unwrap();
    let (settings, key) = (Settings::default(), FederationKey::public());
    let (now, later) = (1_800_000_000, 1_800_010_000);
    let open = || Ledger::open(directory.path(), Role::Cache, &settings, &key).unwrap();
    let ledger = open();
    let old = (0..5u8).map(|n| RetryKey::new(&[&[n]])).collect();
    ledger.record_refused(old, now).await.unwrap();
    assert!(ledger.remembers_refused());
    ledger.report(report(Signature::from_bytes([9; 16]), 1, later)).await.unwrap();
    assert!(!ledger.remembers_refused());
    ledger.close().await.unwrap();
    let ledger = open();
    assert!(!ledger.remembers_refused(), "they are gone from the disk");
    // Messages refused now do not prevent that others expire.
    ledger.record_refused(vec![RetryKey::new(&[b"new"])], later).await.unwrap();
    ledger.record_refused(vec![RetryKey::new(&[b"newer"])], later + 3601).await.unwrap();
    assert_eq!(ledger.query(|state| state.retries().unwrap().remembered()).await, Ok(1));
}

/// A generation that outgrew its capacity many times over is the same after a restart, checkpointed or replayed.
#[tokio::test]
async fn slices_and_large_counts_survive_restarts() {
    let directory = tempfile::tempdir().unwrap();
    let key = FederationKey::public();
    let settings = Settings { capacity: std::num::NonZeroU32::MIN.saturating_add(9), ..Settings::default() };
    let signature = |n: u32| {
        let half = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        Signature::from_bytes(half.to_le_bytes())
    };
    let now = 1_800_000_000;
    for round in 1..=3u32 {
        let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
        for n in 0..300 {
            let times = if n == 0 { 1_000_000 } else { 1 };
            ledger.report(report(signature(n), times, now)).await.unwrap();
        }
        for n in 0..300 {
            let truth = round * if n == 0 { 1_000_000 } else { 1 };
            assert!(ledger.count(signature(n), now).await.unwrap() >= truth, "{n} in round {round}");
        }
        let before = ledger.count(signature(0), now).await.unwrap();
        ledger.close().await.unwrap();
        let after = crate::read(directory.path(), &settings, &key, &[signature(0)], now).unwrap();
        assert_eq!(before, after[0].total());
    }
}

/// Windows of another length that begin at the same time are separate generations.
#[tokio::test]
async fn another_window_length_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let key = FederationKey::public();
    let signature = Signature::from_bytes([9; 16]);
    let midnight = 20_000 * 86_400;
    for (n, hours) in [24, 12, 24, 6].into_iter().enumerate() {
        let settings = Settings { window: Duration::from_secs(hours * 3600), ..Settings::default() };
        let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
        let counts = ledger.report(report(signature, 2, midnight)).await;
        assert_eq!(counts, Ok(vec![2 * (u32::try_from(n).unwrap() + 1)]));
        ledger.close().await.unwrap();
    }
}

/// A reporter whom others confirmed stays trusted, and a settled case is not settled again, however often the daemon restarts.
#[tokio::test]
async fn trust_in_reporters_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (settings, key) = (Settings::default(), FederationKey::public());
    let [of, other] = [9, 10].map(|n| Signature::from_bytes([n; 16]));
    let (now, later) = (1_800_000_000, 1_800_000_000 + 2 * 86_400);
    let user_report = |number: u8, of, now| Submission {
        // The last two bits mark a user.
        reporter: ReporterId::from_bytes([4 * number + 1; 16]),
        nominations: vec![Nominated { of, nomination: nomination(&key, of), shared: true }],
        weighing: Weighing { thousandths: 1000, ..Weighing::default() },
        now,
        ..Submission::default()
    };
    let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
    for number in 0..12 {
        assert_eq!(ledger.submit(user_report(number, of, now)).await.unwrap().units, 2);
    }
    // A trap, since users without history do not confirm each other.
    ledger.submit(Submission { trap: Some(1), ..user_report(60, of, now) }).await.unwrap();
    ledger.report(report(of, 100, now + 20)).await.unwrap();
    ledger.close().await.unwrap();
    for round in 0..3 {
        let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
        assert_eq!(ledger.submit(user_report(round, other, later)).await.unwrap().units, 5, "round {round}");
        let asked = OverviewFilter { since: 0, reporter: None, now: later };
        let overview = ledger.overview(asked).await.unwrap();
        let trusted = overview.reporters.iter().filter(|by| by.weight > 0.6).count();
        assert_eq!(trusted, 12, "{overview:?}");
        let of_mailings = overview.mailings.iter().map(|of| (of.spam, of.weight)).collect::<Vec<_>>();
        assert_eq!(of_mailings, [(13, 3.125), (usize::from(round) + 1, f64::from(5 * (round + 1)) / 8.0)]);
        ledger.close().await.unwrap();
    }
}

/// A user report is on disk when it is answered, even under relaxed durability; and so is its withdrawal.
#[tokio::test]
async fn a_user_report_is_on_disk_when_it_is_answered() {
    let (directory, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hour = Duration::from_secs(3600);
    let settings = Settings { durability: Durability::Relaxed, commit_interval: hour, ..Settings::default() };
    let (key, now) = (FederationKey::public(), 1_800_000_000);
    let [of, mail] = [9, 10].map(|n| Signature::from_bytes([n; 16]));
    let wanted = [mail, nomination(&key, of), revocation(nomination(&key, of))];
    // The file as after a crash.
    let on_disk = || {
        let [from, to] = [&directory, &copy].map(|at| at.path().join(FILE_NAME));
        std::fs::copy(from, to).unwrap();
        let shares = crate::read(copy.path(), &settings, &key, &wanted, now).unwrap();
        shares.iter().map(Shares::total).collect::<Vec<_>>()
    };
    let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
    ledger.report(report(mail, 3, now)).await.unwrap();
    assert_eq!(on_disk(), [0, 0, 0], "mail is answered before");
    let reporter = ReporterId::from_bytes([1; 16]);
    let submission = Submission {
        reporter,
        nominations: vec![Nominated { of, nomination: nomination(&key, of), shared: true }],
        weighing: Weighing { thousandths: 1000, ..Weighing::default() },
        now,
        ..Submission::default()
    };
    assert_eq!(ledger.submit(submission.clone()).await.unwrap().counted, 1);
    assert_eq!(on_disk(), [3, 2, 0]);
    ledger.report(report(mail, 1, now)).await.unwrap();
    assert_eq!(ledger.forget(reporter, now).await, Ok(Withdrawal { signatures: 1, left: 0 }));
    assert_eq!(on_disk(), [4, 2, 2]);
    ledger.report(report(mail, 1, now)).await.unwrap();
    assert_eq!(on_disk(), [4, 2, 2]);
}
