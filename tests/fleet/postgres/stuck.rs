// SPDX-License-Identifier: GPL-3.0-or-later
//! Members that hold a transaction open with their own SQL: others continue, and the log names the member.

use super::{HOW, Rig};
use crate::conformance::{Engine, append, append_step, batch, insist, own};
use bulkmark_sync::log::postgres::setup;
use bulkmark_sync::log::{Log, LogError};
use bulkmark_testing::fleet::{self, Fleet};
use bulkmark_testing::letters::wait_for;
use bulkmark_testing::members::Members;
use bulkmark_testing::wait_until;

/// Appends nothing, and one batch.
const NOTHING: &str = "begin; select bulkmark.append('{}', '{}', '{}', '{}');";
const ONE: &str = "begin; select bulkmark.append(array[5], array[6], array[0], array['x'::bytea]);";

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_appends_nothing_holds_nobody_up() {
    let Some(rig) = Rig::fresh(&own(&["mx1", "mx2"])).await else { return };
    let _held = rig.server.hold("mx2", NOTHING);
    rig.log("mx1").append(batch(1, 1), b"a".to_vec()).await.unwrap();
    append_step(&rig.log("agg"), b"step").await;
    let _held = rig.server.hold("agg", "begin; select bulkmark.append_step(0, 'late');");
    append_step(&rig.log("agg"), b"another").await;
}

/// All transactions of such a member end: another one of it, which waits, would only be the next that holds up the others.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_open_is_ended_and_told() {
    let Some(rig) = Rig::fresh(&own(&["mx1", "mx2"])).await else { return };
    let _held = rig.server.hold("mx2", ONE);
    let _next = rig.server.idle("mx2", ONE);
    let of_mx2 = "select count(*) from pg_stat_activity where usename = 'mx2'";
    wait_until("one that waits", || {
        let found = rig.server.sql(&format!("{of_mx2} and wait_event_type = 'Lock'"))?;
        if found == "1" { Ok(()) } else { Err(found) }
    });
    let agg = rig.log("agg");
    let ended = loop {
        let ended = agg.end_stuck().await.unwrap();
        if !ended.is_empty() {
            break ended;
        }
        tokio::task::yield_now().await;
    };
    assert!(ended.iter().all(|one| one.starts_with("mx2, whose transaction is open for")), "{ended:?}");
    wait_until("the end of all of its connections", || {
        let found = rig.server.sql(of_mx2)?;
        if found == "0" { Ok(()) } else { Err(found) }
    });
    append(&rig.log("mx1"), batch(1, 1), b"a").await;
    assert_eq!(rig.sql("select count(*) from bulkmark.batches where client = 'mx2'"), "0");
    // Foreign connections are left alone.
    let _other = rig.server.hold("postgres", "begin; select 1;");
    assert_eq!(agg.end_stuck().await.unwrap(), [""; 0]);
    let error = rig.sql_as("mx1", "select bulkmark.end_stuck()").unwrap_err();
    assert!(error.contains("permission denied"), "{error}");
}

/// The error after a vain wait names the place to look.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_in_vain_is_told_where_to_look() {
    let Some(rig) = Rig::fresh(&own(&["mx1", "mx2"])).await else { return };
    let _held = rig.server.hold("mx2", ONE);
    let error = rig.log("mx1").append(batch(1, 1), b"a".to_vec()).await.unwrap_err();
    assert!(matches!(error, LogError::Unavailable(_)), "{error}");
    assert!(error.advice().is_some_and(|advice| advice.contains("doctor --server")), "{error}");
}

/// A member that loses access with a transaction open delays nobody, nor `fleet setup`.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_shut_out_is_cut_off() {
    let Some(mut rig) = Rig::fresh(&own(&["mx1", "mx2"])).await else { return };
    let _held = rig.server.hold("mx2", &format!("{ONE} select bulkmark.tell('x');"));
    rig.members.retain(|member| member.name != "mx2");
    let told = setup(&rig.owner(), &rig.members, &HOW).await.unwrap();
    assert!(told.contains(&"role mx2 is dropped".to_owned()), "{told:?}");
    rig.log("mx1").append(batch(1, 1), b"a".to_vec()).await.unwrap();
}

/// An upgrade changes the schema while a member locks a part of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_does_not_wait_for_a_member() {
    let Some(rig) = Rig::fresh(&own(&["mx1", "mx2"])).await else { return };
    rig.sql("alter table bulkmark.log drop column revision");
    rig.sql("drop function bulkmark.end_stuck()");
    rig.sql("revoke mx1, mx2, agg from fleet");
    let error = rig.log("agg").end_stuck().await.unwrap_err();
    assert!(matches!(&error, LogError::NotSetUp(what) if what.contains("fleet setup")), "{error}");
    let _held = rig.server.hold("mx2", &format!("{ONE} select * from bulkmark.log, bulkmark.me;"));
    setup(&rig.owner(), &rig.members, &HOW).await.unwrap();
    assert_eq!(setup(&rig.owner(), &rig.members, &HOW).await.unwrap(), [""; 0]);
    append(&rig.log("mx1"), batch(1, 1), b"a").await;
    let agg = rig.log("agg");
    assert_eq!(insist(|| agg.end_stuck()).await, [""; 0]);
}

/// The log limits one aggregator's steps a second, without limiting the others.
#[tokio::test(flavor = "multi_thread")]
async fn an_aggregator_cannot_flood_the_steps() {
    let Some(mut rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    rig.members.push(super::member(&rig.server, "agg2", bulkmark_sync::log::Duty::Aggregator));
    rig.set_up().await;
    let flood = "select count(bulkmark.append_step(n, 'junk')) from generate_series(0, 1000000) n";
    let error = rig.sql_as("agg", flood).unwrap_err();
    assert!(error.contains("agg has appended more than 100 steps a second"), "{error}");
    append_step(&rig.log("agg2"), b"step").await;
    assert_eq!(rig.sql("select count(*) from bulkmark.steps"), "1", "all of the flood was one transaction");
}

/// A snapshot cannot claim more steps than exist, or lack parts; the data that it makes deletable is deleted a minute later.
#[tokio::test(flavor = "multi_thread")]
async fn false_snapshots_delete_nothing() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let log = rig.log("agg");
    for _ in 0..5 {
        append_step(&log, b"step").await;
    }
    for sql in [
        "select bulkmark.publish(1, 0, 0, 0)",
        "select bulkmark.put_part(2, 1, 'x'); select bulkmark.publish(2, 1, 0, 0)",
    ] {
        let error = rig.sql_as("agg", sql).unwrap_err();
        assert!(error.contains("of its"), "{error}");
    }
    for id in 3..7 {
        let claims = format!(
            "select bulkmark.put_part({id}, 0, 'x'); select bulkmark.publish({id}, 1, {0}, {0})",
            u32::MAX
        );
        rig.sql_as("agg", &claims).unwrap();
    }
    rig.sql_as("agg", "select bulkmark.prune(1000)").unwrap();
    assert_eq!(rig.sql("select count(*) from bulkmark.steps"), "5");
    assert_eq!(rig.sql("select max(steps) || ' ' || max(batches) from bulkmark.snapshots"), "5 0");
    rig.sql("update bulkmark.snapshots set at = at - 61");
    rig.sql_as("agg", "select bulkmark.prune(1000)").unwrap();
    assert_eq!(rig.sql("select count(*) from bulkmark.steps"), "1", "as many bytes as a snapshot");
    let flood = "select count(bulkmark.put_part(n, 0, 'x')) from generate_series(10, 100) n;
        select count(bulkmark.publish(n, 1, 0, 0)) from generate_series(10, 100) n";
    let error = rig.sql_as("agg", flood).unwrap_err();
    assert!(error.contains("agg has put more than a snapshot each five seconds"), "{error}");
}

/// An aggregator sees the parts that another one is putting. It cannot add to them, delete them, or publish them too early.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_touches_the_unfinished_snapshot_of_another() {
    let Some(mut rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    rig.members.push(super::member(&rig.server, "agg2", bulkmark_sync::log::Duty::Aggregator));
    rig.set_up().await;
    rig.sql_as("agg", "select bulkmark.put_part(7, 0, 'x')").unwrap();
    let error = rig.sql_as("agg2", "select bulkmark.put_part(7, 1, 'false')").unwrap_err();
    assert!(error.contains("another aggregator puts the snapshot"), "{error}");
    let error = rig.sql_as("agg2", "select bulkmark.publish(7, 1, 0, 0)").unwrap_err();
    assert!(error.contains("0 of its 1 parts"), "{error}");
    rig.sql_as("agg2", "select bulkmark.drop_parts(7)").unwrap();
    rig.sql_as("agg", "select bulkmark.put_part(7, 1, 'y'); select bulkmark.publish(7, 2, 0, 0)").unwrap();
    assert_eq!(rig.sql("select parts from bulkmark.snapshots where id = 7"), "2");
    rig.sql_as("agg", "select bulkmark.put_part(8, 0, 'x'); select bulkmark.drop_parts(8)").unwrap();
    assert_eq!(rig.sql("select count(*) from bulkmark.parts where id = 8"), "0");
}

/// A prepared transaction keeps its locks without a connection, so nobody could end it.
#[tokio::test(flavor = "multi_thread")]
async fn prepared_transactions_are_reported() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    rig.server.harden();
    assert_eq!(insist(|| async { rig.log("mx1").exposures().await }).await, [""; 0]);
    rig.sql("alter system set max_prepared_transactions = 3");
    rig.server.kill_all();
    rig.server.run();
    rig.server.wait_until_ready();
    assert_eq!(insist(|| async { rig.log("mx1").exposures().await }).await, ["PREPARE TRANSACTION"]);
}

/// The rights that the guide revokes are denied, and members work without them.
#[tokio::test(flavor = "multi_thread")]
async fn what_fills_the_disk_is_revoked_by_the_guide() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    assert!(insist(|| async { rig.log("mx1").exposures().await }).await.len() > 10);
    rig.server.harden();
    assert_eq!(insist(|| async { rig.log("mx1").exposures().await }).await, [""; 0]);
    for sql in [
        "select lo_create(0)",
        "select lo_creat(-1)",
        "select lo_from_bytea(0, 'x')",
        "select lo_put(1, 0, 'x')",
        "select pg_logical_emit_message(false, 'a', 'b')",
        "select pg_notify('a', 'b')",
        "select pg_advisory_lock(1)",
        "select pg_try_advisory_lock_shared(1)",
        "do 'begin end'",
        "set temp_file_limit = -1",
    ] {
        let error = rig.sql_as("mx1", sql).expect_err(sql);
        assert!(error.contains("permission denied"), "{sql}: {error}");
    }
    rig.sql("alter table bulkmark.log drop column revision");
    rig.set_up().await;
    append(&rig.log("mx1"), batch(1, 1), b"a").await;
    append_step(&rig.log("agg"), b"step").await;
}

/// A member that listens without reading makes the server keep all notifications, up to a bound.
#[tokio::test(flavor = "multi_thread")]
async fn who_listens_and_does_not_read_is_cut_off() {
    let Some(rig) = Rig::fresh(&own(&["mx1", "mx2"])).await else { return };
    let _listens = rig.server.hold("mx2", "listen bulkmark_steps; begin; select 1;");
    let _deaf = rig.server.idle("mx1", "listen bulkmark_steps;");
    // Its own socket takes some; then the queue grows.
    let flood =
        "select count(pg_notify('bulkmark_steps', n || repeat('x', 7900))) from generate_series(1, 12000) n";
    let agg = rig.log("agg");
    let usage = || rig.sql("select pg_notification_queue_usage() > 0.02");
    let mut ended = String::new();
    while !(ended.contains("mx1, which does not read") && ended.contains("mx2, whose transaction")) {
        if usage() == "f" {
            let _ = rig.sql(flood);
        }
        ended += &agg.end_stuck().await.unwrap().join(" ");
    }
    while usage() == "t" {
        let _ = rig.sql("notify bulkmark_steps");
    }
}

/// A partner delays a whole fleet as far as it can.
#[test]
fn a_fleet_goes_on_and_names_who_held_it_up() {
    let Some(fleet) = Fleet::postgres() else { return };
    let members = Members::start(&fleet, &["agg1"], &["mx1", "mx2"]);
    members.send(0, 1, 1);
    members.wait_for(1, 1);
    let fleet::Engine::Postgres(log) = &fleet.log else { unreachable!() };
    let _held = log.hold("isp", ONE);
    members.send(0, 1, 2);
    wait_for(&members.sites[1], &bulkmark_testing::letters::letter(1), 3);
    members.aggregator(0).log.wait_for(0, "a member kept others waiting: the connection was ended of isp");
    members.wait_for_server_status(0, "a member kept others waiting: the connection was ended of isp");
    wait_until("all is counted", || {
        let found = log.sql("select count(*) from pg_stat_activity where usename = 'isp'")?;
        if found == "0" { Ok(()) } else { Err(found) }
    });
}
