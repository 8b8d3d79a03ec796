// SPDX-License-Identifier: GPL-3.0-or-later
//! What one with an aggregator's rights puts into the log, on both engines: what is counted goes on, and whoever looks after the fleet
//! is told.

use super::aggregators::speak;

use bulkmark_counts::{Chain, Step, step_head};
use bulkmark_sync::log::{Log, Place, Reader as _};
use bulkmark_testing::fleet::Fleet;
use bulkmark_testing::letters::{letter, wait_for};
use bulkmark_testing::members::Members;
use std::sync::atomic::{AtomicBool, Ordering};

/// The last step in the log.
async fn last_step(log: &impl Log) -> (Place, Vec<u8>) {
    let ends = log.ends().await.unwrap();
    let mut steps = log.steps(Place(ends.steps.0 - 1)).await.unwrap();
    let step = steps.next().await.unwrap();
    (step.place, step.bytes)
}

/// A step that follows the last one, changed by `how`; it counts nothing.
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

/// Appends what follows the log's last step before anybody else does.
pub(crate) async fn poison(log: &impl Log, how: impl Fn(&mut Step)) {
    loop {
        let (place, bytes) = last_step(log).await;
        if let Ok(Some(_)) = log.append_step(place, following(&bytes, &how)).await {
            return;
        }
    }
}

/// The last epoch that there is, and a number of batches that never will be: it is in no ledger. The next one claims such a number in
/// this epoch, which is all that it changes.
fn a_step_says_what_cannot_be(fleet: &Fleet) {
    let members = Members::start(fleet, &["agg1"], &["mx1", "mx2"]);
    members.send(0, 1, 3);
    members.wait_for(1, 3);
    let last_epoch = |step: &mut Step| (step.head.epoch, step.head.covers) = (u64::MAX, 1 << 62);
    let beyond = |step: &mut Step| step.head.covers = 1 << 62;
    for (round, how) in (1..).zip([&last_epoch as &dyn Fn(&mut Step), &beyond]) {
        speak(fleet, "agg2", async |log| poison(&log, how).await, async |log| poison(&log, how).await);
        members.send(0, 1, 2);
        members.send(1, 1, 2);
        members.wait_for(1, 3 + 4 * round);
    }
    members.settle();
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(1), 11);
}

/// An aggregator appends junk as fast as it can; the steps of others find their place between.
fn a_flood_of_junk(fleet: &Fleet) {
    let members = Members::start(fleet, &["agg1"], &["mx1", "mx2"]);
    members.send(0, 1, 3);
    members.wait_for(1, 3);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flooding = || {
            speak(fleet, "agg2", async |log| flood(&log, &ends).await, async |log| flood(&log, &ends).await)
        };
        scope.spawn(flooding);
        let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for times in 1..=3 {
                members.send(0, 1, 1);
                members.wait_for(1, 3 + times);
            }
        }));
        ends.store(true, Ordering::Relaxed);
        sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    members.settle();
}

async fn flood(log: &impl Log, ends: &AtomicBool) {
    let mut place = log.ends().await.unwrap().steps;
    while !ends.load(Ordering::Relaxed) {
        match log.append_step(place, b"junk".to_vec()).await {
            Ok(Some(next)) => place = next,
            // Another one's, or it is held back.
            _ => place = log.ends().await.map_or(place, |ends| ends.steps),
        }
    }
}

#[test]
fn a_flood_of_junk_leaves_room() {
    Fleet::postgres().iter().for_each(a_flood_of_junk);
}

#[test]
fn on_nats_a_flood_of_junk_leaves_room() {
    Fleet::nats().iter().for_each(a_flood_of_junk);
}

#[test]
fn impossible_steps_stop_nothing() {
    Fleet::postgres().iter().for_each(a_step_says_what_cannot_be);
}

#[test]
fn on_nats_impossible_steps_stop_nothing() {
    Fleet::nats().iter().for_each(a_step_says_what_cannot_be);
}
