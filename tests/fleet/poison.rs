// SPDX-License-Identifier: GPL-3.0-or-later
//! What one with an aggregator's rights puts into the log, on both engines: what is counted goes on, and whoever looks after the fleet
//! is told.

use super::aggregators::speak;

use bulkmark_counts::{Chain, Step, step_head};
use bulkmark_sync::log::{Log, Place, Reader as _};
use bulkmark_testing::fleet::Fleet;
use bulkmark_testing::letters::{letter, wait_for};
use bulkmark_testing::members::Members;

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

#[test]
fn impossible_steps_stop_nothing() {
    Fleet::postgres().iter().for_each(a_step_says_what_cannot_be);
}

#[test]
fn on_nats_impossible_steps_stop_nothing() {
    Fleet::nats().iter().for_each(a_step_says_what_cannot_be);
}
