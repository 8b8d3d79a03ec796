// SPDX-License-Identifier: GPL-3.0-or-later
//! Copies of the data: a restored backup, a standby that takes over; and the data that may be deleted.

use super::{Rig, open, server};
use crate::conformance::snapshots::{put, read};
use crate::conformance::{
    Engine, append, append_step, batch, batches_behind, insist, own, steps_behind, take,
};
use bulkmark_sync::log::{Log, LogError, Place, Settings};

/// Batches appended after the copy are gone, and a member can detect that: the log's ends are before its known places, and a repeated batch
/// is stored again.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_put_back_is_seen_to_be_older() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (rig.log("mx1"), rig.log("agg"));
    append(&client, batch(1, 1), b"saved").await;
    append_step(&log, b"saved").await;
    rig.server.save();
    let lost = append(&client, batch(1, 2), b"lost").await;
    let step = append_step(&log, b"lost").await;
    let before = insist(|| log.ends()).await;
    rig.server.put_back();

    let after = insist(|| log.ends()).await;
    assert_eq!(after.made, before.made, "it is the same log");
    assert_eq!((after.batches, after.steps), (Place(1), Place(1)));
    let gone = loop {
        match client.steps(step).await {
            Err(LogError::Unavailable(_)) => (),
            other => break other.err(),
        }
    };
    assert!(matches!(gone, Some(LogError::Gone(_))), "{gone:?}");
    assert_eq!(insist(|| log.append_step(step, b"behind".to_vec())).await, None, "there is no such end");
    assert_eq!(append(&client, batch(1, 2), b"lost").await, lost, "it takes the place that it had");
    assert_eq!(append_step(&log, b"again").await, step);
    assert_eq!(batches_behind(&log, Place(0), 2).await[1].bytes, b"lost");
}

/// Rows behind the end, as in tables that somebody put back by hand, are no entries: aggregators that counted one would begin epochs for
/// ever.
#[tokio::test(flavor = "multi_thread")]
async fn rows_behind_the_end_are_not_read() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (rig.log("mx1"), rig.log("agg"));
    append(&client, batch(1, 1), b"a").await;
    append_step(&log, b"s").await;
    rig.sql(
        "insert into bulkmark.batches select 9, client, spool, 9, attempt, at, bytes from bulkmark.batches",
    );
    rig.sql("insert into bulkmark.steps select 9, at, total, bytes from bulkmark.steps");
    let mut batches = insist(|| log.batches(Place(0))).await;
    let mut steps = insist(|| log.steps(Place(0))).await;
    for last in [Place(1), Place(2)] {
        let places = (take(&mut batches, 1).await[0].place, take(&mut steps, 1).await[0].place);
        assert_eq!(places, (last, last));
        append(&client, batch(1, 1 + last.0), b"b").await;
        append_step(&log, b"t").await;
    }
}

/// The server dies for good, and its standby takes over. Members keep their batches until a step covers them, and append again those that
/// the standby lacked.
#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let standby = rig.server.standby();
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", rig.server.port, standby.port);
    let log = format!("postgres://{hosts}/{}", server::DATABASE);
    let client = open(&Settings { log: log.clone(), ..rig.settings("mx1", "mx1.password") });
    let aggregator = open(&Settings { log, ..rig.settings("agg", "agg.password") });
    append(&client, batch(1, 1), b"a").await;
    append_step(&aggregator, b"s").await;
    let there = "select count(*) from bulkmark.batches, bulkmark.steps";
    while standby.sql(there).unwrap() == "0" {
        tokio::task::yield_now().await;
    }
    rig.server.kill_all();
    let error = client.append(batch(1, 2), b"b".to_vec()).await.unwrap_err();
    assert!(matches!(error, LogError::Unavailable(_)), "{error}");
    standby.sql("select pg_promote()").unwrap();
    append(&client, batch(1, 2), b"b").await;
    let read: Vec<_> = batches_behind(&aggregator, Place(0), 2).await.into_iter().map(|b| b.bytes).collect();
    assert_eq!(read, [b"a", b"b"]);
    assert_eq!(append_step(&aggregator, b"t").await, Place(2));
}

/// Steps are deleted if they are before the snapshot before last, and reading the steps behind them is as much work as reading the
/// snapshot. From the newest snapshot, and from the one before, all later steps are there.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_snapshot_has_goes_and_what_a_reader_needs_stays() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    rig.sql("update bulkmark.log set keep_seconds = 0");
    let (client, log) = (rig.log("mx1"), rig.log("agg"));
    let mut kept = Vec::new();
    for round in 1..=4_u64 {
        for i in 0..10 {
            append(&client, batch(1, round * 100 + i), &[1; 100]).await;
            append_step(&log, &[2; 100]).await;
        }
        // Times are whole seconds: moves all this one second into the past.
        rig.sql("update bulkmark.batches set at = at - 1");
        // As large as five steps.
        insist(|| put(&log, vec![vec![u8::try_from(round).unwrap(); 250]; 2])).await;
        settle(&rig);
        let ends = insist(|| log.ends()).await;
        assert_eq!(ends.steps, Place(round * 10));
        kept.push(ends.first_step);
        let rest = rig.sql("select min(place), max(place) from bulkmark.batches");
        let first = if round < 2 { 1 } else { (round - 1) * 10 + 1 };
        assert_eq!(rest, format!("{first}|{}", round * 10));
        let follow = steps_behind(&client, Place(round.saturating_sub(1) * 10), 10).await;
        assert_eq!(follow.len(), 10, "from the snapshot before last on");
    }
    assert_eq!(kept, [Place(1), Place(11), Place(21), Place(31)]);
    let error = client.steps(Place(5)).await.err();
    assert!(matches!(error, Some(LogError::Gone(_))), "{error:?}");
    assert_eq!(insist(|| read(&client)).await, vec![vec![4; 250]; 2]);
    assert_eq!(rig.sql("select count(*), count(distinct id) from bulkmark.parts"), "4|2", "of two snapshots");

    // A large one: reading the steps is less work than reading it, so they stay.
    insist(|| put(&log, vec![vec![9; 100_000]])).await;
    insist(|| put(&log, vec![vec![9; 100_000]])).await;
    settle(&rig);
    assert_eq!(insist(|| log.ends()).await.first_step, Place(31));
}

/// Young batches stay even if snapshots include them: a log that is created again, or restored, is counted from them.
#[tokio::test(flavor = "multi_thread")]
async fn batches_stay_for_a_day() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let (client, log) = (rig.log("mx1"), rig.log("agg"));
    for number in 1..=3 {
        append(&client, batch(1, number), b"a").await;
    }
    rig.sql("update bulkmark.batches set at = at - 86500 where place = 1");
    for _ in 0..3 {
        insist(|| put(&log, vec![vec![1]])).await;
    }
    settle(&rig);
    assert_eq!(rig.sql("select string_agg(place::text, ' ' order by place) from bulkmark.batches"), "2 3");
}

/// Parts of a writer that died are deleted, those of an active writer are not.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_writer_left_goes() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let log = rig.log("agg");
    rig.sql_as("agg", "select bulkmark.put_part(77, 0, 'dead'); select bulkmark.put_part(77, 1, 'dead')")
        .unwrap();
    rig.sql_as("agg", "select bulkmark.put_part(88, 0, 'alive')").unwrap();
    rig.sql("update bulkmark.parts set at = at - 3700 where id = 77");
    insist(|| put(&log, vec![vec![1]])).await;
    settle(&rig);
    assert_eq!(rig.sql("select count(*) from bulkmark.parts where id = 77"), "0");
    assert_eq!(rig.sql("select count(*) from bulkmark.parts where id = 88"), "1");
    let error = rig.sql_as("agg", "select bulkmark.publish(88, 2, 0, 0)").unwrap_err();
    assert!(error.contains("has 1 of its 2 parts"), "{error}");
}

/// Deletes expired data, as a writer of snapshots does after each.
#[track_caller]
fn settle(rig: &Rig) {
    // Moves time by a minute: until then aggregators may be replacing a snapshot.
    rig.sql("update bulkmark.snapshots set at = at - 61");
    // It also finds nothing if the writer is deleting the same rows.
    let mut nothing = 0;
    while nothing < 3 {
        let deleted = rig.sql_as("agg", "select bulkmark.prune(3)").unwrap();
        nothing = if deleted == "0" { nothing + 1 } else { 0 };
    }
}
