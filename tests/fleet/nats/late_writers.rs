// SPDX-License-Identifier: GPL-3.0-or-later
//! A writer of a snapshot that ends after another one put a whole snapshot.

use super::cluster::Fleet;
use super::later::aggregator_later;
use crate::conformance::snapshots::{put, read};
use crate::conformance::{Engine, becomes, insist, own, run};
use bulkmark_sync::log::Log;
use tokio::sync::mpsc;

/// Puts a snapshot of these bytes; `other` puts another one between its first part and its end. Repeated as a whole if servers do not
/// answer in time.
async fn put_slowly(log: &impl Log, byte: u8, other: &impl Log, others: u8) -> Option<u64> {
    insist(|| async {
        let (sender, parts) = mpsc::channel(1);
        let feed = async {
            // The channel holds one, so the first was taken when the third fits.
            for _ in 0..3 {
                sender.send(Some(vec![byte; 10])).await?;
            }
            insist(|| put(other, vec![vec![others; 10]])).await.expect("nobody else ends meanwhile");
            sender.send(None).await
        };
        // Feeding fails where the writing failed, which says why.
        let (put, _) = tokio::join!(log.put_snapshot(parts), feed);
        put
    })
    .await
}

/// Its own snapshot is left out, since a newer one is there.
#[test]
fn a_snapshot_that_was_begun_before_another_one_is_left_out() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1"])).await else { return };
        let (log, other) = (fleet.aggregator().await, fleet.aggregator().await);
        assert_eq!(put_slowly(&log, 1, &other, 2).await, None);
        becomes(|| read(&log), |read| *read == [[2; 10]]).await;
    });
}

/// A node that lagged behind hid a snapshot from before the writing began: it is replaced.
#[test]
fn a_snapshot_that_a_lagging_node_hid_is_replaced() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1"])).await else { return };
        let (later, other) = (aggregator_later(&fleet).await, fleet.aggregator().await);
        // By the clock that it is told, it begins a year after the other's snapshot.
        assert!(put_slowly(&later, 1, &other, 2).await.is_some());
        becomes(|| read(&other), |read| *read == [[1; 10]; 3]).await;
    });
}
