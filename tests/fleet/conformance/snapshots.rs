// SPDX-License-Identifier: GPL-3.0-or-later
//! Snapshots.

use super::batches::join_all;
use super::{Engine, becomes, bounded, insist, own, refused, within};
use bulkmark_sync::log::{Log, LogError, MAX_BYTES, Part, Reader as _};
use tokio::sync::{mpsc, watch};

/// No snapshot exists yet.
pub(crate) async fn are_gone_where_there_is_none<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    for log in [engine.client("mx1").await, engine.aggregator().await] {
        let error = refused(|| read(&log)).await;
        assert!(matches!(error, LogError::Gone(_)), "{error}");
        assert_eq!(insist(|| log.newest_snapshot()).await, None);
    }
}

/// A snapshot comes back as it was written, part by part; then the next one replaces it.
pub(crate) async fn are_read_whole<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    let first: Vec<Part> = vec![vec![1; MAX_BYTES], vec![2], (0..300_000).map(|i| (i / 3) as u8).collect()];
    let number = insist(|| put(&log, first.clone())).await;
    assert!(number.is_some());
    becomes(|| log.newest_snapshot(), |newest| *newest == number).await;
    becomes(|| read(&client), |read| *read == first).await;
    let second: Vec<Part> = (0..40).map(|i| vec![i; 20_000]).collect();
    let next = insist(|| put(&log, second.clone())).await;
    assert!(next.is_some() && next != number);
    becomes(|| log.newest_snapshot(), |newest| *newest == next).await;
    for reader in [&client, &log] {
        becomes(|| read(reader), |read| *read == second).await;
    }
}

/// While it is replaced again and again, a reader gets all of one snapshot, or an error, and never waits for ever.
pub(crate) async fn are_never_mixed<E: Engine>() {
    const PARTS: u8 = 12;
    // Readers without a pause would leave the writer no processor.
    const READS: u8 = 4;
    let Some(engine) = E::fresh(&own(&["mx1", "mx2"])).await else { return };
    let log = engine.aggregator().await;
    let parts = |k: u8| (0..PARTS).map(|i| [vec![i; 10], vec![k; 30_000]].concat()).collect::<Vec<_>>();
    insist(|| put(&log, parts(0))).await;
    let (begun, begins) = watch::channel(());
    let write = async move {
        for k in 1..20 {
            begun.send_replace(());
            insist(|| put(&log, parts(k))).await;
        }
    };
    let (mx1, mx2) = (engine.client("mx1").await, engine.client("mx2").await);
    let follow = async |client, mut begins: watch::Receiver<()>| {
        let mut whole = 0;
        while begins.changed().await.is_ok() {
            for _ in 0..READS {
                let Ok(read) = read(client).await else { continue };
                let k = read[0][10];
                assert!(read == parts(k), "parts of {k} and of others");
                whole += 1;
            }
        }
        whole
    };
    // A reader that begins, and continues only after all is over.
    let mut slow = insist(|| mx1.snapshot()).await;
    let first = within("a part", slow.next()).await.unwrap();
    let (_, one, other) = tokio::join!(write, follow(&mx1, begins.clone()), follow(&mx2, begins));
    assert!(one + other > 0, "nobody could read one");
    let mut late = vec![first.unwrap()];
    let ended = loop {
        match within("the rest, or an error", slow.next()).await {
            Ok(Some(part)) => late.push(part),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    assert!(!ended || late == parts(0), "the slow one has a mixture");
    becomes(|| read(&mx2), |read| *read == parts(19)).await;
}

/// If a snapshot's writer stopped or died, it does not exist, and the one before it stays.
pub(crate) async fn that_end_early_are_none<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    put_some(&log, vec![vec![9; 100]]).await;
    assert!(matches!(refused(|| read(&client)).await, LogError::Gone(_)));
    let good: Vec<Part> = vec![vec![1; 1000]; 3];
    insist(|| put(&log, good.clone())).await;
    becomes(|| read(&client), |read| *read == good).await;
    put_some(&log, vec![vec![2; 1000]; 2]).await;
    assert!(insist(|| read(&client)).await == good);

    // A writer that disappears while it waits for the next part.
    let (sender, receiver) = mpsc::channel(1);
    tokio::select! {
        result = log.put_snapshot(receiver) => assert!(result.is_err(), "it is not at its end"),
        () = async {
            for _ in 0..3 {
                sender.send(Some(vec![3; 1000])).await.unwrap();
            }
        } => (),
    }
    assert!(insist(|| read(&client)).await == good);
    let next: Vec<Part> = vec![vec![4; 1000]; 2];
    insist(|| put(&log, next.clone())).await;
    becomes(|| read(&client), |read| *read == next).await;
}

/// Two at a time: the newest is all of one or all of the other.
pub(crate) async fn of_two_writers_are_one_of_them<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let writers = [engine.aggregator().await, engine.aggregator().await];
    let client = engine.client("mx1").await;
    for round in 0..5 {
        let parts = |writer: u8| vec![vec![round * 2 + writer; 50_000]; 10];
        let both = writers.iter().zip([0, 1]).map(|(log, writer)| put(log, parts(writer))).collect();
        let outcome = join_all(both).await;
        assert!(outcome.iter().any(Result::is_ok), "{outcome:?}");
        becomes(|| read(&client), |read| *read == parts(0) || *read == parts(1)).await;
    }
}

/// Writes one, as daemons do: the parts arrive during the write.
pub(crate) async fn put(log: &impl Log, parts: Vec<Part>) -> Result<Option<u64>, LogError> {
    let (sender, receiver) = mpsc::channel(2);
    let feed = async move {
        for part in parts.into_iter().map(Some).chain([None]) {
            // An engine that refuses a snapshot need not take all of it.
            if sender.send(part).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(log.put_snapshot(receiver), feed).0
}

/// Writes parts without an end.
async fn put_some(log: &impl Log, parts: Vec<Part>) {
    let (sender, receiver) = mpsc::channel(parts.len());
    for part in parts {
        sender.send(Some(part)).await.unwrap();
    }
    drop(sender);
    // It may or may not return an error.
    let _ = bounded(log.put_snapshot(receiver)).await;
}

/// All parts of the newest.
pub(crate) async fn read(log: &impl Log) -> Result<Vec<Part>, LogError> {
    let mut reader = bounded(log.snapshot()).await?;
    let mut parts = Vec::new();
    while let Some(part) = within("a part, or an error", reader.next()).await? {
        assert!(part.len() <= MAX_BYTES);
        parts.push(part);
    }
    Ok(parts)
}
