// SPDX-License-Identifier: GPL-3.0-or-later
//! The beginning, end and identity of a log.

use super::{Engine, append, append_step, batch, insist, own};
use bulkmark_sync::log::{Log, Place};

/// The ends of an empty log and of a filled one: equal for every member, also after a restart of all servers.
pub(crate) async fn tell_how_far_and_which_log<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    let empty = insist(|| client.ends()).await;
    assert_eq!((empty.batches, empty.steps), (Place(0), Place(0)));
    assert!(empty.first_step > Place(0), "the next one would be the first");
    assert!(insist(|| log.first_batch()).await > Place(0), "the same of batches");
    let batches = append(&client, batch(1, 1), b"a").await;
    let first_step = append_step(&log, b"s").await;
    let steps = append_step(&log, b"t").await;
    let ends = insist(|| log.ends()).await;
    assert_eq!((ends.batches, ends.steps, ends.first_step), (batches, steps, first_step));
    assert_eq!(ends.made, empty.made);
    assert_eq!(insist(|| log.first_batch()).await, batches);
    assert_eq!(insist(|| client.ends()).await, ends);

    engine.kill_leader().await;
    assert_eq!(insist(|| client.ends()).await.made, ends.made, "whoever leads");
    engine.kill_all().await;
    engine.restart().await;
    assert_eq!(insist(|| client.ends()).await, ends);
}

/// A place for batches that was created again counts as another one.
pub(crate) async fn tell_a_log_that_was_made_anew<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let client = engine.client("mx1").await;
    append(&client, batch(1, 1), b"a").await;
    let before = insist(|| client.ends()).await;
    engine.renew_batches().await;
    let after = insist(|| client.ends()).await;
    assert_ne!(after.made, before.made);
    append(&client, batch(1, 2), b"b").await;
    let read = super::batches_behind(&engine.aggregator().await, Place(0), 1).await;
    assert_eq!(read[0].bytes, b"b");
}
