// SPDX-License-Identifier: GPL-3.0-or-later
//! Servers that are killed, and connections that are cut off.

use super::{Engine, append, append_step, batch, batches_behind, bounded, insist, own, steps_behind};
use bulkmark_sync::log::{Batch, Log, Place};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// The total number of batches of each client.
const EACH: u64 = 60;

/// The leader dies under load, twice.
pub(crate) async fn a_killed_leader_loses_nothing<E: Engine>() {
    under_load::<E>(async |engine, mut progress| {
        for _ in 0..2 {
            progress.recv().await;
            engine.kill_leader().await;
            progress.recv().await;
            engine.restart().await;
        }
    })
    .await;
}

/// All servers die at the same time.
pub(crate) async fn servers_killed_at_once_lose_nothing<E: Engine>() {
    under_load::<E>(async |engine, mut progress| {
        progress.recv().await;
        engine.kill_all().await;
        engine.restart().await;
    })
    .await;
}

/// All connections break, again and again.
pub(crate) async fn cut_connections_lose_nothing<E: Engine>() {
    under_load::<E>(async |engine, mut progress| {
        for _ in 0..5 {
            progress.recv().await;
            engine.cut().await;
        }
    })
    .await;
}

/// Does `harm`, which receives a signal at every tenth of all acknowledgements, while three clients append until each batch is
/// acknowledged, and one reader follows. Then all acknowledged batches must be at their returned places, and a later reader must see the
/// same as the earlier one.
async fn under_load<E: Engine>(harm: impl AsyncFnOnce(&E, mpsc::UnboundedReceiver<()>)) {
    let names = ["mx1", "mx2", "mx3"];
    let Some(engine) = E::fresh(&own(&names)).await else { return };
    let log = Arc::new(engine.aggregator().await);
    let (told, progress) = mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    for (spool, name) in names.into_iter().enumerate() {
        let (client, told) = (engine.client(name).await, told.clone());
        tasks.push(tokio::spawn(async move {
            let mut places = BTreeMap::new();
            for number in 0..EACH {
                let bytes = format!("{name} {number} {}", "x".repeat(2000)).into_bytes();
                let place = append(&client, batch(spool as u64, number), &bytes).await;
                places.insert(place, (name.to_owned(), bytes));
                if number % 6 == 5 && spool == 0 {
                    let _ = told.send(());
                }
            }
            places
        }));
    }
    // A kill that waits for a tenth that never comes, since all is done, happens all the same.
    drop(told);
    let (end, ended) = watch::channel(false);
    let follower = tokio::spawn(follow(Arc::clone(&log), ended));
    harm(&engine, progress).await;
    let mut acknowledged = BTreeMap::new();
    for task in tasks {
        acknowledged.extend(task.await.unwrap());
    }
    assert_eq!(acknowledged.len() as u64, EACH * names.len() as u64, "each has a place of its own");
    let _ = end.send(true);

    let last = insist(|| log.ends()).await.batches;
    let later = until(&*log, last).await;
    let by_place: BTreeMap<Place, (String, Vec<u8>)> =
        later.iter().map(|batch| (batch.place, (batch.client.clone(), batch.bytes.clone()))).collect();
    for (place, batch) in &acknowledged {
        assert!(by_place.get(place) == Some(batch), "{place:?} is not what was acknowledged");
    }
    let seen = follower.await.unwrap();
    assert!(seen == later[..seen.len()], "the follower saw something else, or in another order");
}

/// All batches up to a place.
async fn until(log: &impl Log, last: Place) -> Vec<Batch> {
    let mut all: Vec<Batch> = Vec::new();
    while all.last().map_or(Place(0), |batch| batch.place) < last {
        let after = all.last().map_or(Place(0), |batch| batch.place);
        all.extend(batches_behind(log, after, 1).await);
    }
    all
}

/// Reads batches from the first one on, in spite of errors, until it is ended.
async fn follow<L: Log>(log: Arc<L>, mut ended: watch::Receiver<bool>) -> Vec<Batch> {
    use bulkmark_sync::log::Reader as _;
    let mut all: Vec<Batch> = Vec::new();
    while !*ended.borrow() {
        let after = all.last().map_or(Place(0), |batch| batch.place);
        let Ok(mut reader) = bounded(log.batches(after)).await else { continue };
        loop {
            tokio::select! {
                _ = ended.wait_for(|&ended| ended) => break,
                next = reader.next() => match next {
                    Ok(batch) => all.push(batch),
                    Err(_) => break,
                }
            }
        }
    }
    all
}

/// Two aggregators append steps in turn or at the same time, each behind the last one that it read, while servers are killed: every
/// acknowledged step is there, and each step was appended behind the one before it.
pub(crate) async fn steps_survive_kills_in_one_chain<E: Engine>() {
    const STEPS: u64 = 40;
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    append_step(&engine.aggregator().await, b"0").await;
    let mut tasks = Vec::new();
    for writer in 0..2 {
        let log = engine.aggregator().await;
        tasks.push(tokio::spawn(async move {
            let mut won = BTreeMap::new();
            loop {
                let last = insist(|| log.ends()).await.steps;
                let step = steps_behind(&log, Place(last.0 - 1), 1).await.remove(0);
                let number: u64 =
                    String::from_utf8(step.bytes).unwrap().split(' ').next().unwrap().parse().unwrap();
                if number >= STEPS {
                    return won;
                }
                let bytes = format!("{} by {writer}", number + 1).into_bytes();
                // After an error the step may or may not be there.
                if let Ok(Some(place)) = bounded(log.append_step(step.place, bytes.clone())).await {
                    won.insert(place, bytes);
                }
            }
        }));
    }
    engine.kill_leader().await;
    engine.restart().await;
    let mut won = BTreeMap::new();
    for task in tasks {
        won.extend(task.await.unwrap());
    }
    let client = engine.client("mx1").await;
    let count = usize::try_from(STEPS).unwrap() + 1;
    let steps = steps_behind(&client, Place(0), count).await;
    for (number, step) in steps.iter().enumerate() {
        let text = String::from_utf8(step.bytes.clone()).unwrap();
        assert_eq!(text.split(' ').next().unwrap(), number.to_string(), "each behind the one before");
    }
    let by_place: BTreeMap<_, _> = steps.into_iter().map(|step| (step.place, step.bytes)).collect();
    assert!(
        won.iter().all(|(place, bytes)| by_place.get(place) == Some(bytes)),
        "a winner's step is not there"
    );
}

/// Without any server every request ends with an error in time; all works again, over the same connections, once there are servers.
pub(crate) async fn nobody_waits_for_ever_without_servers<E: Engine>() {
    use bulkmark_sync::log::{LogError, Reader as _};
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    append(&client, batch(1, 1), b"before").await;
    let step = append_step(&log, b"before").await;
    insist(|| super::snapshots::put(&log, vec![vec![1; 10]])).await;
    let mut follower = insist(|| client.steps(step)).await;
    engine.kill_all().await;
    let unavailable = |what: &str, error: Option<LogError>| {
        assert!(matches!(error, Some(LogError::Unavailable(_))), "{what}: {error:?}");
    };
    unavailable("append", bounded(client.append(batch(1, 2), b"while".to_vec())).await.err());
    unavailable("ends", bounded(client.ends()).await.err());
    unavailable("append_step", bounded(log.append_step(step, b"while".to_vec())).await.err());
    unavailable("snapshot", super::snapshots::read(&client).await.err());
    unavailable("clients", bounded(log.clients()).await.err());
    unavailable("put_snapshot", bounded(super::snapshots::put(&log, vec![vec![2; 9]])).await.err());
    engine.restart().await;
    // The follower returns an error that it broke off, or continues.
    let next = append_step(&log, b"after").await;
    let got = match super::within("the step, or an error", follower.next()).await {
        Ok(step) => step,
        Err(_) => steps_behind(&client, step, 1).await.remove(0),
    };
    assert_eq!((got.place, &*got.bytes), (next, &b"after"[..]));
    append(&client, batch(1, 3), b"after").await;
}
