// SPDX-License-Identifier: GPL-3.0-or-later
//! Steps.

use super::batches::join_all;
use super::{Engine, append_step, insist, own, steps_behind, take, within};
use bulkmark_sync::log::{Log, LogError, Place, Reader as _};
use std::time::Duration;
use tokio::time::timeout;

/// Two aggregators append behind the same place: one gets the place of its step, the other a refusal, and readers see only the first one's
/// step.
pub(crate) async fn of_two_writers_one_wins<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let writers = [engine.aggregator().await, engine.aggregator().await];
    let mut after = insist(|| writers[0].ends()).await.steps;
    let begin = after;
    let mut expected = Vec::new();
    for round in 0..20 {
        let drafts = [format!("{round} by a").into_bytes(), format!("{round} by b").into_bytes()];
        let attempts =
            writers.iter().zip(&drafts).map(|(log, draft)| log.append_step(after, draft.clone())).collect();
        let outcome: Vec<_> = join_all(attempts).await.into_iter().map(Result::unwrap).collect();
        let winner = outcome.iter().position(Option::is_some).expect("one wins");
        assert_eq!(outcome[1 - winner], None, "the other is told so");
        after = outcome[winner].unwrap();
        expected.push((after, drafts[winner].clone()));
    }
    assert!(
        insist(|| writers[0].append_step(begin, b"old".to_vec())).await.is_none(),
        "it is behind no more"
    );
    let client = engine.client("mx1").await;
    let read = steps_behind(&client, Place(0), expected.len()).await;
    assert_eq!(read.into_iter().map(|step| (step.place, step.bytes)).collect::<Vec<_>>(), expected);
    assert_eq!(insist(|| client.ends()).await.steps, after);
}

/// Clients and aggregators can read all steps behind any place.
pub(crate) async fn are_read_from_any_place<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    let mut places = vec![Place(0)];
    for i in 0..12_u8 {
        places.push(append_step(&log, &[i; 1000]).await);
    }
    for reader in [&client, &log] {
        for (before, &after) in places.iter().enumerate() {
            let rest = steps_behind(reader, after, 12 - before).await;
            assert_eq!(rest.iter().map(|step| step.place).collect::<Vec<_>>(), places[before + 1..]);
        }
    }
}

/// A reader beyond the log's end does not share its past: the log was cut, or is another one.
pub(crate) async fn beyond_the_end_are_gone<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    let last = append_step(&log, b"only").await;
    expect_gone(&client, Place(last.0 + 1)).await;
    expect_gone(&client, Place(last.0 + 1000)).await;
}

/// Dropped steps are reported as gone; from the last dropped one on, all are there.
pub(crate) async fn that_were_dropped_are_gone<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (engine.client("mx1").await, engine.aggregator().await);
    let mut places = Vec::new();
    for i in 0..6_u8 {
        places.push(append_step(&log, &[i]).await);
    }
    engine.drop_steps_before(places[3]).await;
    assert_eq!(insist(|| log.ends()).await.first_step, places[3]);
    expect_gone(&client, Place(0)).await;
    expect_gone(&client, places[1]).await;
    let rest = steps_behind(&client, places[2], 3).await;
    assert_eq!(rest.iter().map(|step| step.place).collect::<Vec<_>>(), places[3..]);

    // None is left, and the next one is at the announced place.
    engine.drop_steps_before(Place(places[5].0 + 1)).await;
    let ends = insist(|| log.ends()).await;
    assert_eq!(ends.steps, places[5], "the end is where it was");
    assert!(ends.first_step > places[5]);
    expect_gone(&client, places[4]).await;
    let mut waiting = insist(|| client.steps(places[5])).await;
    let next = append_step(&log, b"next").await;
    assert_eq!(take(&mut waiting, 1).await[0].place, next);
}

/// A new step wakes any number of waiting readers; brief waits, repeated, lose nothing.
pub(crate) async fn reach_followers_who_wait<E: Engine>() {
    let Some(engine) = E::fresh(&own(&["mx1", "mx2"])).await else { return };
    let log = engine.aggregator().await;
    let begin = append_step(&log, b"first").await;
    let clients = [engine.client("mx1").await, engine.client("mx2").await];
    let mut followers = Vec::new();
    for client in &clients {
        followers.push(insist(|| client.steps(begin)).await);
        followers.push(insist(|| client.steps(Place(0))).await);
    }
    for follower in followers.iter_mut().skip(1).step_by(2) {
        assert_eq!(take(follower, 1).await[0].bytes, b"first");
    }
    for round in 0..30_u8 {
        for follower in &mut followers {
            assert!(timeout(Duration::from_millis(1), follower.next()).await.is_err(), "there is none yet");
        }
        let bytes = vec![round; 1 + usize::from(round) * 10_000];
        let place = append_step(&log, &bytes).await;
        for follower in &mut followers {
            let step = within("the step", follower.next()).await.unwrap();
            assert!(step.place == place && step.bytes == bytes, "round {round}");
        }
    }
}

/// Expects `Gone`, at the latest with the first step.
async fn expect_gone(log: &impl Log, after: Place) {
    let opened = loop {
        match log.steps(after).await {
            Err(LogError::Unavailable(_)) => (),
            other => break other,
        }
    };
    let gone = match opened {
        Ok(mut reader) => within("an error", reader.next()).await.err(),
        Err(error) => Some(error),
    };
    assert!(matches!(gone, Some(LogError::Gone(_))), "behind {after:?}: {gone:?}");
}
