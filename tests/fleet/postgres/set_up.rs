// SPDX-License-Identifier: GPL-3.0-or-later
//! `setup`: its results, and that it can be repeated.

use super::{HOW, Rig, bare, member, milter, server};
use crate::conformance::{append, batch, insist};
use bulkmark_counts::Limits;
use bulkmark_sync::log::postgres::setup;
use bulkmark_sync::log::{Duty, Log, LogError, SetUp};
use std::fs;
use std::num::NonZeroU32;

const DRY: SetUp = SetUp { dry_run: true, ..HOW };

fn fleet() -> Option<Rig> {
    let mut rig = bare()?;
    rig.members = vec![milter(&rig.server, "mx1"), member(&rig.server, "agg", Duty::Aggregator)];
    Some(rig)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_all_and_does_nothing() {
    let Some(rig) = fleet() else { return };
    let told = setup(&rig.owner(), &rig.members, &DRY).await.unwrap();
    for sql in
        ["create schema", "create table if not exists bulkmark.batches", "create role \"mx1\" login", "grant"]
    {
        assert!(told.iter().any(|line| line.contains(sql)), "{sql}: {told:#?}");
    }
    assert!(told.iter().any(|line| line.contains("password '...'")), "{told:#?}");
    assert!(told.iter().all(|line| !line.contains("SCRAM-SHA-256$")), "{told:#?}");
    assert_eq!(rig.sql("select count(*) from pg_namespace where nspname = 'bulkmark'"), "0");
    assert_eq!(rig.sql("select count(*) from pg_roles where rolname in ('mx1', 'bulkmark_reporter')"), "0");
    let error = rig.log("mx1").ends().await.unwrap_err();
    assert!(matches!(error, LogError::Denied(_)), "there is no such role: {error}");

    // Its dry-run output, executed as SQL, makes the same; only passwords are left out.
    for sql in told {
        rig.sql_as(server::OWNER, &sql).unwrap();
    }
    assert_eq!(setup(&rig.owner(), &rig.members, &DRY).await.unwrap().len(), 2, "the passwords are missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_as_it_should_be_is_left_so() {
    let Some(mut rig) = fleet() else { return };
    rig.sql("revoke all on database bulkmark from public");
    assert!(!setup(&rig.owner(), &rig.members, &HOW).await.unwrap().is_empty());
    let log = rig.log("mx1");
    let made = insist(|| log.ends()).await.made;
    append(&log, batch(1, 1), b"a").await;
    assert_eq!(setup(&rig.owner(), &rig.members, &HOW).await.unwrap(), [""; 0]);
    assert_eq!(insist(|| log.ends()).await.made, made);

    // Another password, and limits.
    rig.server.secret("mx1.password", "another's");
    rig.members[0].duty =
        Duty::Milter { limits: Some(Limits { influence: 9, quota: 10 }), withdrawn: 1, rate: None };
    let told = setup(&rig.owner(), &rig.members, &HOW).await.unwrap();
    assert_eq!(
        told,
        ["role mx1 has another password", "client mx1 with influence 9 and quota 10, withdrawn 1 times"]
    );
    let log = rig.log("mx1");
    assert_eq!(insist(|| log.clients()).await[0].limits, Some(Limits { influence: 9, quota: 10 }));

    // A milter that becomes an aggregator is no longer a client.
    rig.members[0].duty = Duty::Aggregator;
    let told = setup(&rig.owner(), &rig.members, &HOW).await.unwrap();
    assert_eq!(
        told,
        [
            "role mx1 is a member of bulkmark_aggregator",
            "role mx1 is no longer a member of bulkmark_reporter",
            "mx1 is no longer a client"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn it_stopped_halfway_and_goes_on() {
    let Some(rig) = fleet() else { return };
    rig.set_up().await;
    rig.sql("delete from bulkmark.log; drop function bulkmark.prune; drop table bulkmark.parts cascade; drop role mx1");
    let error = rig.log("agg").ends().await.unwrap_err();
    assert!(matches!(&error, LogError::NotSetUp(what) if what.contains("fleet setup")), "{error}");
    rig.set_up().await;
    append(&rig.log("mx1"), batch(1, 1), b"a").await;
}

/// Roles belong to the whole server: setup does not take over a foreign role.
#[tokio::test(flavor = "multi_thread")]
async fn roles_of_others_are_left_alone() {
    let Some(mut rig) = fleet() else { return };
    rig.sql("create role shop login password 'secret'");
    rig.members.push(milter(&rig.server, "shop"));
    let error = setup(&rig.owner(), &rig.members, &HOW).await.unwrap_err().to_string();
    assert!(error.contains("a role shop that is not of this fleet"), "{error}");
    rig.sql("grant bulkmark_reporter to shop");
    rig.set_up().await;
    append(&rig.log("shop"), batch(1, 1), b"a").await;
    // It is released, and stays unchanged.
    rig.members.pop();
    rig.set_up().await;
    assert_eq!(rig.sql("select count(*) from pg_roles where rolname = 'shop' and rolcanlogin"), "1");
    let shop = rig.settings("shop", "shop.password");
    let error = super::open(&shop).ends().await.unwrap_err();
    assert!(matches!(error, LogError::Denied(_)), "{error}");
}

/// A log from the previous version has no place for state reports. All else works, and `fleet setup` creates the place.
#[tokio::test(flavor = "multi_thread")]
async fn members_speak_when_an_older_log_is_set_up_again() {
    let Some(rig) = fleet() else { return };
    rig.set_up().await;
    rig.sql("drop function bulkmark.tell(bytea)");
    rig.sql("drop table bulkmark.members");
    let (mx1, agg) = (rig.log("mx1"), rig.log("agg"));
    let made = insist(|| mx1.ends()).await.made;
    for error in
        [mx1.publish_state(b"unheard".to_vec()).await.unwrap_err(), agg.state_reports().await.unwrap_err()]
    {
        assert!(matches!(&error, LogError::NotSetUp(what) if what.contains("fleet setup")), "{error}");
    }
    append(&mx1, batch(1, 1), b"all else works").await;
    assert_eq!(
        setup(&rig.owner(), &rig.members, &HOW).await.unwrap(),
        ["schema bulkmark in bulkmark, version 1"]
    );
    insist(|| mx1.publish_state(b"heard".to_vec())).await;
    let words = insist(|| agg.state_reports()).await;
    assert_eq!((words.len(), &*words[0].name, &*words[0].bytes), (1, "mx1", &b"heard"[..]));
    assert_eq!(insist(|| mx1.ends()).await.made, made, "it is the same log");
    assert_eq!(setup(&rig.owner(), &rig.members, &HOW).await.unwrap(), [""; 0]);
}

/// A log from the previous version has no rates. All else works, and `fleet setup` adds them.
#[tokio::test(flavor = "multi_thread")]
async fn partners_are_held_back_when_an_older_log_is_set_up_again() {
    let Some(mut rig) = fleet() else { return };
    rig.members[0].duty = Duty::Milter {
        limits: Some(Limits { influence: 5, quota: 6 }),
        withdrawn: 0,
        rate: NonZeroU32::new(1000),
    };
    rig.set_up().await;
    rig.sql("alter table bulkmark.clients drop column rate");
    rig.sql("alter table bulkmark.log drop column has_rates, drop column revision");
    rig.sql("drop table bulkmark.meters");
    let agg = rig.log("agg");
    let made = insist(|| agg.ends()).await.made;
    assert_eq!(insist(|| agg.clients()).await.len(), 1, "an older log tells who its clients are");
    assert_eq!(insist(|| agg.aggregators()).await, ["agg"]);
    let told = setup(&rig.owner(), &rig.members, &DRY).await.unwrap();
    assert!(told.iter().any(|line| line.contains("add column if not exists rate")), "{told:#?}");
    rig.set_up().await;
    assert_eq!(rig.sql("select rate from bulkmark.clients"), "1000");
    append(&rig.log("mx1"), batch(1, 1), b"a").await;
    assert_eq!(insist(|| agg.ends()).await.made, made, "it is the same log");
    assert_eq!(setup(&rig.owner(), &rig.members, &HOW).await.unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_said_before_anything_is_done() {
    let Some(mut rig) = fleet() else { return };
    fs::remove_file(rig.members[1].password_file.as_ref().unwrap()).unwrap();
    let error = setup(&rig.owner(), &rig.members, &HOW).await.unwrap_err();
    assert!(matches!(&error, LogError::Setup(what) if what.contains("agg.password")), "{error}");
    assert_eq!(rig.sql("select count(*) from pg_namespace where nspname = 'bulkmark'"), "0");

    rig.members.truncate(1);
    rig.set_up().await;
    rig.sql("update bulkmark.log set format = 99");
    for error in
        [rig.log("mx1").ends().await.unwrap_err(), setup(&rig.owner(), &rig.members, &HOW).await.unwrap_err()]
    {
        let told = error.to_string();
        assert!(told.contains("version 99") && told.contains("newer bulkmark"), "{told}");
    }
}
