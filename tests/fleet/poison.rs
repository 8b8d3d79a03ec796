// SPDX-License-Identifier: GPL-3.0-or-later
//! Entries that a member with an aggregator's rights could put into the log, on both engines: counting continues, and the fleet's operator
//! is informed.

use super::aggregators::with_log;

use bulkmark_counts::{Chain, Step, seal, step_head, unseal};
use bulkmark_sync::log::{Log, LogError, Part, Place, Reader as _};
use bulkmark_testing::PATIENCE;
use bulkmark_testing::ends::Ends;
use bulkmark_testing::fleet::Fleet;
use bulkmark_testing::letters::{letter, wait_for};
use bulkmark_testing::members::Members;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::timeout;

on_both_logs! {
    no_snapshot_leads_to_the_last_number,
    snapshots_that_do_not_do_are_replaced,
    a_flood_of_junk_leaves_room,
    impossible_steps_stop_nothing,
}

/// The first bytes of each part of a snapshot.
const SNAPSHOT: &[u8] = b"BMFP\x01";

/// The last step in the log.
async fn last_step(log: &impl Log) -> (Place, Vec<u8>) {
    let ends = log.ends().await.unwrap();
    let mut steps = log.steps(Place(ends.steps.0 - 1)).await.unwrap();
    let step = steps.next().await.unwrap();
    (step.place, step.bytes)
}

/// A step that follows the last one, changed by `how`; it counts no reports.
fn following(bytes: &[u8], how: impl Fn(&mut Step)) -> Vec<u8> {
    let mut step = Step::decode(bytes).unwrap();
    step.head.before = Chain::of(bytes);
    step.head.version += 1;
    (step.marks, step.updates, step.bulk) = Default::default();
    how(&mut step);
    let bytes = step.encode();
    assert!(step_head(&bytes).is_some());
    bytes
}

/// Appends a changed successor of the log's last step before any other member can append.
pub(crate) async fn poison(log: &impl Log, how: impl Fn(&mut Step)) {
    loop {
        let (place, bytes) = last_step(log).await;
        if let Ok(Some(_)) = log.append_step(place, following(&bytes, &how)).await {
            return;
        }
    }
}

/// First a step with the last possible epoch and a number of batches that no ledger will ever reach. The next one only claims such a
/// number, in the current epoch; then come one of the last time, and one that lists all signatures as bulk.
fn impossible_steps_stop_nothing(fleet: &Fleet) {
    let members = Members::start(fleet, &["agg1"], &["mx1", "mx2"]);
    members.send(0, 1, 3);
    members.wait_for(1, 3);
    let last_epoch = |step: &mut Step| (step.head.epoch, step.head.covers) = (u64::MAX, 1 << 62);
    let beyond = |step: &mut Step| step.head.covers = 1 << 62;
    let late = |step: &mut Step| step.head.time = u64::MAX;
    let all_is_bulk = |step: &mut Step| step.head.bound = 1;
    let all = [&last_epoch as &dyn Fn(&mut Step), &beyond, &late, &all_is_bulk];
    for (round, how) in (1..).zip(all) {
        with_log(fleet, "agg2", async |log| poison(&log, how).await, async |log| poison(&log, how).await);
        members.send(0, 1, 2);
        members.send(1, 1, 2);
        members.wait_for(1, 3 + 4 * round);
    }
    members.settle();
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(1), 19);
}

/// An aggregator appends junk as fast as it can; other aggregators' steps still find a place in between.
fn a_flood_of_junk_leaves_room(fleet: &Fleet) {
    let members = Members::start(fleet, &["agg1"], &["mx1", "mx2"]);
    members.send(0, 1, 3);
    members.wait_for(1, 3);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flooding = || {
            with_log(
                fleet,
                "agg2",
                async |log| flood(&log, &ends).await,
                async |log| flood(&log, &ends).await,
            )
        };
        scope.spawn(flooding);
        let _end = Ends(&ends);
        for times in 1..=3 {
            members.send(0, 1, 1);
            members.wait_for(1, 3 + times);
        }
    });
    members.settle();
}

async fn flood(log: &impl Log, ends: &AtomicBool) {
    let mut place = log.ends().await.unwrap().steps;
    while !ends.load(Ordering::Relaxed) {
        match log.append_step(place, b"junk".to_vec()).await {
            Ok(Some(next)) => place = next,
            // The place was taken, or the log slows this aggregator down.
            _ => place = log.ends().await.map_or(place, |ends| ends.steps),
        }
    }
}

/// The newest snapshot, with all its parts.
async fn read(log: &impl Log) -> Result<Vec<Part>, LogError> {
    let (mut reader, mut parts) = (log.snapshot().await?, Vec::new());
    while let Some(part) = reader.next().await? {
        parts.push(part);
    }
    Ok(parts)
}

async fn put(log: &impl Log, parts: Vec<Part>) {
    let (sender, receiver) = tokio::sync::mpsc::channel(parts.len() + 1);
    for part in parts.into_iter().map(Some).chain([None]) {
        sender.send(part).await.unwrap();
    }
    // An engine may refuse an empty one.
    let _ = log.put_snapshot(receiver).await;
}

/// A part of a snapshot with a changed head.
fn with_head(part: &Part, how: impl FnOnce(&mut [u64; 9])) -> Part {
    let content = unseal(SNAPSHOT, part).unwrap();
    // Nine numbers follow the part's number, the entry's kind and its length; the version is second and the epoch third.
    let (before, head) = content.split_at(4 + 1 + 4);
    let (head, rest) = head.split_at(9 * 8);
    let mut numbers = [0; 9];
    for (number, bytes) in numbers.iter_mut().zip(head.chunks(8)) {
        *number = u64::from_le_bytes(bytes.try_into().unwrap());
    }
    how(&mut numbers);
    seal([SNAPSHOT, before, &numbers.map(u64::to_le_bytes).concat(), rest].concat())
}

/// Writes a snapshot, and waits until another one replaces it.
async fn replace_snapshot(log: &impl Log, what: &str, parts: Vec<Part>) -> Vec<Part> {
    put(log, parts.clone()).await;
    timeout(PATIENCE, async {
        loop {
            match read(log).await {
                Ok(now) if now != parts => return now,
                _ => tokio::task::yield_now().await,
            }
        }
    })
    .await
    .unwrap_or_else(|_| panic!("{what} stays"))
}

/// Writes snapshots that nobody can begin with, or that belong to no chain.
async fn put_bad_snapshots(log: &impl Log) {
    let mut good = good_snapshot(log).await;
    let mut cut = good[0].clone();
    cut.truncate(cut.len() / 2);
    let rows: [(&str, Vec<Part>); 5] = [
        ("garbage", vec![vec![7; 1000]]),
        ("an empty one", Vec::new()),
        ("one that was cut", vec![cut]),
        ("the last epoch", vec![with_head(&good[0], |head| (head[1], head[2]) = (u64::MAX, u64::MAX))]),
        ("one of steps to come", vec![with_head(&good[0], |head| head[1] += 1000)]),
    ];
    for (what, parts) in rows {
        let now = replace_snapshot(log, what, parts).await;
        let number = |part: &Part| with_head(part, |_| ());
        assert_eq!(number(&now[0]), now[0], "instead of {what}");
        good = now;
    }
    assert!(good[0].starts_with(SNAPSHOT));
}

fn snapshots_that_do_not_do_are_replaced(fleet: &Fleet) {
    let members = Members::start(fleet, &["agg1"], &["mx1", "mx2"]);
    members.send(0, 1, 3);
    members.wait_for(1, 3);
    with_log(
        fleet,
        "agg2",
        async |log| put_bad_snapshots(&log).await,
        async |log| put_bad_snapshots(&log).await,
    );
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(1), 3);
    members.settle();
}

/// Appends a step that does not follow, so that all members compare their place with the newest snapshot.
async fn raise_doubt(log: &impl Log) {
    loop {
        let (place, bytes) = last_step(log).await;
        let step =
            following(&bytes, |step| (step.head.version, step.head.before) = (1 << 50, Chain([7; 16])));
        if let Ok(Some(_)) = log.append_step(place, step).await {
            return;
        }
    }
}

/// The newest snapshot that an honest aggregator put.
async fn good_snapshot(log: &impl Log) -> Vec<Part> {
    let good = async {
        loop {
            match read(log).await {
                Ok(good) => return good,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    timeout(PATIENCE, good).await.expect("a snapshot")
}

/// A snapshot with all that is counted: the newest one may lack the last steps.
async fn whole_snapshot(log: &impl Log) -> Vec<Part> {
    let last = Step::decode(&last_step(log).await.1).unwrap().head.version;
    let whole = async {
        loop {
            let parts = replace_snapshot(log, "garbage", vec![vec![7; 1000]]).await;
            let mut version = 0;
            with_head(&parts[0], |head| version = head[1]);
            if version >= last {
                return parts;
            }
        }
    };
    timeout(PATIENCE, whole).await.expect("a snapshot with the last step")
}

/// Puts a snapshot of a step that is far ahead, and has all members look at it before an aggregator replaces it.
async fn lead_ahead(log: &impl Log, version: u64) {
    let good = whole_snapshot(log).await;
    put(log, vec![with_head(&good[0], |head| head[1] = version)]).await;
    raise_doubt(log).await;
}

/// Members that follow a false snapshot to a high number continue from there, and none is so high that new members could not begin.
fn no_snapshot_leads_to_the_last_number(fleet: &Fleet) {
    let members = Members::start(fleet, &["agg1"], &["mx1", "mx2"]);
    members.send(0, 1, 3);
    members.wait_for(1, 3);
    members.settle();
    for (round, version) in (1..).zip([(1 << 48) - 1, 1 << 40]) {
        with_log(
            fleet,
            "agg2",
            async |log| lead_ahead(&log, version).await,
            async |log| lead_ahead(&log, version).await,
        );
        members.send(0, 1, 2);
        members.send(1, 1, 2);
        members.wait_for(1, 3 + 4 * round);
        members.settle();
    }
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(1), 11);
}
