// SPDX-License-Identifier: GPL-3.0-or-later
//! The rights of clients and aggregators.

use super::snapshots::{put, read};
use super::{Engine, append, append_step, batch, batches_behind, bounded, insist, own, steps_behind, within};
use bulkmark_counts::Limits;
use bulkmark_sync::log::{Client, Log, LogError, Place, Reader as _};

/// A client can read steps and snapshots, but not make any.
pub(crate) async fn clients_append_no_steps_and_no_snapshots<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    let first = append_step(&log, b"an aggregator's").await;
    let error = bounded(client.append_step(first, b"forged".to_vec())).await.unwrap_err();
    assert!(matches!(error, LogError::Unavailable(_) | LogError::Denied(_)), "{error}");
    insist(|| put(&log, vec![vec![1; 10]])).await;
    put(&client, vec![vec![2; 10]]).await.unwrap_err();
    assert_eq!(insist(|| read(&client)).await, vec![vec![1; 10]]);
    let next = append_step(&log, b"the next").await;
    let steps = steps_behind(&client, Place(0), 2).await;
    assert_eq!(steps.iter().map(|step| step.place).collect::<Vec<_>>(), [first, next]);
}

/// A client cannot read others' reports.
pub(crate) async fn clients_read_no_batches<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1", "mx2"])).await else { return };
    let (client, other) = (engine.client("mx1").await, engine.client("mx2").await);
    append(&other, batch(1, 1), b"mx2's").await;
    let error = match bounded(client.batches(Place(0))).await {
        Ok(mut reader) => within("an error", reader.next()).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, LogError::Unavailable(_) | LogError::Denied(_)), "{error}");
    assert_eq!(batches_behind(&engine.aggregator().await, Place(0), 1).await[0].client, "mx2");
}

/// Aggregators learn which clients may report, and their limits.
pub(crate) async fn clients_are_told_with_their_limits<E: Engine>() {
    let clients = [
        Client {
            name: "a-friend_2".to_owned(),
            limits: Some(Limits { influence: 19, quota: 1234 }),
            withdrawn: 3,
            rate: None,
        },
        Client { name: "mx1".to_owned(), limits: None, withdrawn: 0, rate: None },
    ];
    let Some(engine) = E::fresh(&clients).await else { return };
    let log = engine.aggregator().await;
    let mut told = insist(|| log.clients()).await;
    told.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(told, clients);
}
