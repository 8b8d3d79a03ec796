// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshot parts left by writers that died: the next writer removes them once nobody can be writing them any longer, and leaves current
//! ones alone.

use super::cluster::Fleet;
use super::later::aggregator_later;
use crate::conformance::snapshots::{put, read};
use crate::conformance::{Engine, becomes, own, run};
use bulkmark_sync::log::{Log, LogError};
use bulkmark_testing::PATIENCE;
use serde_json::json;
use std::time::Instant;
use tokio::sync::mpsc;

/// The number of snapshots that have a first part in the log.
async fn snapshots(fleet: &Fleet) -> usize {
    subjects(fleet, "bulkmark.snapshot.part.*.0").await
}

/// The number of subjects of the stream of snapshots that match a filter.
async fn subjects(fleet: &Fleet, filter: &str) -> usize {
    let question = json!({ "subjects_filter": filter });
    let info = fleet.api("STREAM.INFO.BULKMARK_SNAPSHOT", question).await;
    info["state"]["subjects"].as_object().map_or(0, serde_json::Map::len)
}

/// Begins to write a snapshot, and dies.
async fn leave(log: &impl Log) -> Result<(), LogError> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::select! {
        result = log.put_snapshot(receiver) => result.map(|_| panic!("it is not at its end")),
        () = async {
            // Four are in flight at a time, so the first ones have arrived.
            for _ in 0..8 {
                sender.send(Some(vec![3; 300_000])).await.unwrap();
            }
        } => Ok(()),
    }
}

#[test]
fn parts_that_dead_writers_left_are_removed_when_they_are_old() {
    run(async || {
        let deadline = Instant::now() + PATIENCE;
        // A write that times out leaves parts, too; then all is repeated with an empty log.
        while let Err(error) = leave_and_remove().await {
            assert!(matches!(error, LogError::Unavailable(_)) && Instant::now() < deadline, "{error}");
        }
    });
}

async fn leave_and_remove() -> Result<(), LogError> {
    let Some(fleet) = Fleet::fresh(&own(&["mx1"])).await else { return Ok(()) };
    let (client, log) = (fleet.client("mx1").await, fleet.aggregator().await);
    let good = vec![vec![1; 1000]; 3];
    put(&log, good.clone()).await?;
    for _ in 0..3 {
        leave(&log).await?;
    }
    assert_eq!(snapshots(&fleet).await, 4, "the newest, and three that were left");
    // An aggregator may write whatever it likes there.
    let raw = fleet.raw("agg").await;
    for stray in ["part.0123456789abcdef0123456789abcdef.7", "part.x", "a.b.c.d"] {
        let stored = raw.request(format!("bulkmark.snapshot.{stray}"), "stray".into()).await;
        stored.map_err(|e| LogError::Unavailable(e.to_string()))?;
    }
    // Another writer may still be writing them: they stay.
    put(&log, good.clone()).await?;
    assert_eq!(snapshots(&fleet).await, 5);

    let later = aggregator_later(&fleet).await;
    let next = vec![vec![2; 1000]; 2];
    put(&later, next.clone()).await?;
    assert_eq!(snapshots(&fleet).await, 2, "the newest and the one before it are kept, however old");
    assert_eq!(subjects(&fleet, "bulkmark.snapshot.>").await, 3 + 2 + 1, "and nothing but the pointer");
    becomes(|| read(&client), |read| *read == next).await;
    Ok(())
}
