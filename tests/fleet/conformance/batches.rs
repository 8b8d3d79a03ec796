// SPDX-License-Identifier: GPL-3.0-or-later
//! Batches.

use super::{Engine, append, batch, batches_behind, bounded, insist, own, take};
use bulkmark_sync::log::{BatchId, Log, MAX_BYTES, Place, Reader as _};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;

/// All of them arrive in the order of their acknowledgements, with their clients and times, and at the places that `append` returned.
pub(crate) async fn come_in_order_with_their_clients<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1", "mx2"])).await else { return };
    let clients = [engine.client("mx1").await, engine.client("mx2").await];
    let mut expected = Vec::new();
    for number in 1..=20_u64 {
        let which = usize::from(number % 3 == 0);
        let bytes = format!("batch {number} of {which}").into_bytes();
        let place = append(&clients[which], batch(which as u64, number), &bytes).await;
        expected.push((place, ["mx1", "mx2"][which].to_owned(), bytes));
    }
    assert!(expected.is_sorted_by(|a, b| a.0 < b.0), "places grow");

    let log = engine.aggregator().await;
    let mut reader = insist(|| log.batches(Place(0))).await;
    let read = take(&mut reader, expected.len()).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(read.iter().all(|batch| batch.at.abs_diff(now) < 600), "times are seconds since 1970");
    let read: Vec<_> = read.into_iter().map(|batch| (batch.place, batch.client, batch.bytes)).collect();
    assert_eq!(read, expected);
    assert_eq!(insist(|| log.ends()).await.batches, expected.last().unwrap().0);
}

/// A reader can begin behind any place, wait at the end, and be cancelled while it waits.
pub(crate) async fn are_read_from_any_place_and_awaited<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    let mut waiting = insist(|| log.batches(Place(0))).await;
    assert!(timeout(Duration::from_millis(100), waiting.next()).await.is_err(), "there is none yet");
    let mut places = vec![Place(0)];
    for number in 1..=5_u64 {
        places.push(append(&client, batch(1, number), &[u8::try_from(number).unwrap()]).await);
        // Very short waits, again and again, lose nothing.
        let got = loop {
            if let Ok(got) = timeout(Duration::from_millis(1), waiting.next()).await {
                break got.unwrap();
            }
        };
        assert_eq!((got.place, got.bytes), (places[places.len() - 1], vec![u8::try_from(number).unwrap()]));
    }
    for (before, &after) in places.iter().enumerate() {
        let rest = batches_behind(&log, after, 5 - before).await;
        assert_eq!(rest.iter().map(|batch| batch.place).collect::<Vec<_>>(), places[before + 1..]);
    }
}

/// A repeated batch is stored once, whether one after the other or at the same time; another attempt is another batch.
pub(crate) async fn are_stored_once_when_repeated<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1", "mx2"])).await else { return };
    let (client, other, log) =
        (engine.client("mx1").await, engine.client("mx2").await, engine.aggregator().await);
    let id = BatchId { spool: 7, number: 1, attempt: 0 };
    let again = BatchId { attempt: 1, ..id };
    let first = append(&client, id, b"once").await;
    assert_eq!(append(&client, id, b"once").await, first);
    let second = append(&client, again, b"once").await;
    assert!(second > first);

    let id = BatchId { number: 2, ..id };
    let at_once: Vec<_> = (0..8).map(|_| append(&client, id, b"at once")).collect();
    let places: BTreeSet<_> = join_all(at_once).await.into_iter().collect();
    assert_eq!(places.len(), 1, "all were told the same place");

    // One client's batch numbers do not affect another's.
    append(&other, id, b"another's").await;
    append(&client, BatchId { number: 3, ..id }, b"last").await;
    let read = batches_behind(&log, Place(0), 5).await;
    let read: Vec<_> = read.iter().map(|batch| (&*batch.client, &*batch.bytes)).collect();
    let expected: [(&str, &[u8]); 5] =
        [("mx1", b"once"), ("mx1", b"once"), ("mx1", b"at once"), ("mx2", b"another's"), ("mx1", b"last")];
    assert_eq!(read, expected);
}

/// The largest is accepted and comes back unchanged; a larger one is an error that harms nothing else.
pub(crate) async fn may_be_as_large_as_promised<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    let largest: Vec<u8> = (0..MAX_BYTES).map(|i| (i * 7 + i / 256) as u8).collect();
    append(&client, batch(1, 1), &largest).await;
    let larger = vec![1; MAX_BYTES * 2];
    assert!(bounded(client.append(batch(1, 2), larger)).await.is_err());
    append(&client, batch(1, 3), b"small").await;
    let read = batches_behind(&log, Place(0), 2).await;
    assert!(read[0].bytes == largest, "it is as it was");
    assert_eq!(read[1].bytes, b"small");
}

/// 64 outstanding at a time: each is there once, in the same order for all readers.
pub(crate) async fn many_at_a_time_are_all_there<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    let mut expected = BTreeSet::new();
    for round in 0..6_u64 {
        let numbers: Vec<u64> = (round * 64..round * 64 + 64).collect();
        let contents: Vec<_> = numbers.iter().map(|number| format!("{number:0400}").into_bytes()).collect();
        let appends: Vec<_> =
            numbers.iter().zip(&contents).map(|(&n, bytes)| append(&client, batch(1, n), bytes)).collect();
        expected.extend(join_all(appends).await.into_iter().zip(contents));
    }
    assert_eq!(expected.len(), 6 * 64);
    let one = batches_behind(&log, Place(0), expected.len()).await;
    let other = batches_behind(&engine.aggregator().await, Place(0), expected.len()).await;
    assert_eq!(one, other);
    let read: Vec<_> = one.into_iter().map(|batch| (batch.place, batch.bytes)).collect();
    assert!(read.is_sorted_by(|a, b| a.0 < b.0));
    assert!(read == expected.into_iter().collect::<Vec<_>>(), "each is where its append said");
}

/// Runs all of them at the same time.
pub(crate) async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|f| (Box::pin(f), None)).collect();
    std::future::poll_fn(|context| {
        let mut pending = false;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(ready) => *output = Some(ready),
                    std::task::Poll::Pending => pending = true,
                }
            }
        }
        if pending { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
    futures.into_iter().map(|(_, output)| output.expect("it is ready")).collect()
}
