// SPDX-License-Identifier: GPL-3.0-or-later
//! The rights of each role when it runs its own SQL: anybody with a milter's password can write more than the milter does.

use super::{HOW, Rig, milter};
use crate::conformance::{Engine, append, append_step, batch, insist, own};
use bulkmark_counts::Limits;
use bulkmark_sync::log::postgres::setup;
use bulkmark_sync::log::{Client, Duty, Log, LogError};
use std::num::NonZeroU32;
use std::time::Instant;

/// Checks that each of these is denied.
#[track_caller]
fn denied(rig: &Rig, role: &str, statements: &[&str]) {
    for sql in statements {
        let error = rig.sql_as(role, sql).expect_err(sql);
        let is_denied = [
            "permission denied",
            "must be owner",
            "no client of this fleet",
            "must be a member",
            "must have admin option",
        ];
        assert!(is_denied.iter().any(|text| error.contains(text)), "{role}: {sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_milter_appends_its_own_batches_and_nothing_else() {
    let Some(rig) = Rig::fresh(&own(&["mx1", "mx2"])).await else { return };
    append(&rig.log("mx2"), batch(1, 1), b"mx2's").await;
    append_step(&rig.log("agg"), b"step").await;
    let append_as_other = "select bulkmark.append(array[5], array[6], array[0], array['x'::bytea])";
    rig.sql_as("mx1", append_as_other).unwrap();
    assert_eq!(rig.sql("select client from bulkmark.batches where spool = 5"), "mx1", "who is connected");
    denied(
        &rig,
        "mx1",
        &[
            "insert into bulkmark.batches values (9, 'mx2', 1, 2, 0, 0, 'x')",
            "insert into bulkmark.steps values (2, 0, 0, 'x')",
            "update bulkmark.ends set last = 0",
            "update bulkmark.log set made = 0",
            "update bulkmark.clients set influence = null",
            "update bulkmark.me set influence = null",
            "delete from bulkmark.steps",
            "truncate bulkmark.batches",
            "select * from bulkmark.batches",
            "select * from bulkmark.clients",
            "select * from bulkmark.members",
            "insert into bulkmark.members values ('mx2', 0, 'x')",
            "update bulkmark.members set word = 'x'",
            "delete from bulkmark.members",
            "select bulkmark.append_step(1, 'x')",
            "select bulkmark.put_part(1, 0, 'x')",
            "select bulkmark.publish(1, 0, 0, 0)",
            "select bulkmark.drop_parts(1)",
            "select bulkmark.prune(1)",
            "create table bulkmark.own (a int)",
            "create or replace function bulkmark.prune(_most integer) returns bigint language sql as 'select 1::bigint'",
            "alter table bulkmark.steps disable trigger all",
            "set role mx2",
            "set session authorization mx2",
            "set role fleet",
            "grant bulkmark_aggregator to mx1",
            "notify bulkmark_steps; select * from bulkmark.batches",
        ],
    );
}

/// Functions run as the owner, so they must not call anything that a role made.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_cannot_slip_its_own_functions_in() {
    let limited = Client {
        name: "mx2".to_owned(),
        limits: Some(Limits { influence: 7, quota: 8 }),
        withdrawn: 0,
        rate: None,
    };
    let Some(rig) = Rig::fresh(&[own(&["mx1"]), vec![limited]].concat()).await else { return };
    let sql = "create function pg_temp.octet_length(bytea) returns int language plpgsql as
            $$ begin raise exception 'slipped in as %', current_user; end $$;
        create function pg_temp.leak(text) returns bool language plpgsql cost 0.0001 as
            $$ begin raise notice 'leaked %', $1; return true; end $$;
        set search_path = pg_temp, bulkmark;
        select bulkmark.append(array[5], array[6], array[0], array['x'::bytea]);
        select name from bulkmark.me where pg_temp.leak(name)";
    let output = rig.server.both_as("mx1", sql).unwrap();
    assert!(output.contains("leaked mx1"), "the row of the role itself: {output}");
    assert!(!output.contains("mx2") && !output.contains("slipped in"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aggregator_reports_nothing_and_changes_no_past() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let error = rig.log("agg").append(batch(1, 1), b"own".to_vec()).await.unwrap_err();
    assert!(matches!(&error, LogError::Denied(what) if what.contains("append")), "{error}");
    denied(
        &rig,
        "agg",
        &[
            "insert into bulkmark.batches values (9, 'mx1', 1, 2, 0, 0, 'x')",
            "update bulkmark.steps set bytes = 'x'",
            "delete from bulkmark.steps",
            "delete from bulkmark.batches",
            "update bulkmark.ends set last = 0",
            "update bulkmark.clients set influence = 9",
            "insert into bulkmark.members values ('mx1', 0, 'x')",
            "update bulkmark.members set word = 'x'",
            "delete from bulkmark.members",
            "select bulkmark.append(array[5], array[6], array[0], array['x'::bytea])",
        ],
    );
}

/// A client with a rate may append up to that rate, and a whole batch at any time; excess batches are not stored, and may be sent later.
/// Others are not delayed.
#[tokio::test(flavor = "multi_thread")]
async fn a_partner_cannot_fill_the_log() {
    let Some(mut rig) = Rig::fresh(&own(&["mx1", "isp"])).await else { return };
    rig.members[1].duty = Duty::Milter {
        limits: Some(Limits { influence: 5, quota: 6 }),
        withdrawn: 0,
        rate: NonZeroU32::new(1000),
    };
    let told = setup(&rig.owner(), &rig.members, &HOW).await.unwrap();
    assert_eq!(
        told,
        ["client isp with influence 5 and quota 6, withdrawn 0 times, at most 1000 signatures a second"]
    );
    assert_eq!(setup(&rig.owner(), &rig.members, &HOW).await.unwrap(), [""; 0]);
    // A minute of 1,000 signatures a second, of 18 bytes, and a batch of 960 KiB.
    let most = 60 * 1000 * 18 + (960 << 10) + 200;
    let (isp, mx1) = (rig.log("isp"), rig.log("mx1"));
    let body = vec![7; 500_000];
    let began = Instant::now();
    let mut refused = 0;
    for number in 0..20 {
        match isp.append(batch(1, number), body.clone()).await {
            Ok(_) => (),
            Err(LogError::RateLimited(what)) => {
                assert!(what.contains("isp may report 1000 signatures a second"), "{what}");
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 10, "{refused}");
    // Its own SQL is limited, too: of many batches the first ones are taken.
    let flood = "select array_length(bulkmark.append(array_agg(9), array_agg(n), array_agg(0), \
                 array_agg(convert_to(repeat('x', 900000), 'UTF8'))), 1) from generate_series(1, 50) n";
    for _ in 0..3 {
        let _ = rig.sql_as("isp", flood);
    }
    let kept: u64 = rig
        .sql("select coalesce(sum(octet_length(bytes) + 200), 0) from bulkmark.batches where client = 'isp'")
        .parse()
        .unwrap();
    let since = 18_000 * (began.elapsed().as_secs() + 1);
    assert!(kept <= most + since && kept > most / 2, "{kept}");
    // For a batch that is already there it gets the place, without cost.
    let place = isp.append(batch(1, 0), body.clone()).await.unwrap();
    assert_eq!(isp.append(batch(1, 0), body.clone()).await.unwrap(), place);
    for number in 0..20 {
        mx1.append(batch(1, number), body.clone()).await.unwrap();
    }
    // A minute later there is room again.
    rig.sql("update bulkmark.meters set at = at - 60");
    isp.append(batch(1, 30), body).await.unwrap();
    denied(&rig, "isp", &["update bulkmark.meters set bytes = 0", "update bulkmark.clients set rate = null"]);
}

/// Many batches of a partner that was disconnected for long arrive in the log together, as fast as its rate allows.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_batches_those_are_taken_that_fit() {
    let Some(mut rig) = Rig::fresh(&own(&["isp"])).await else { return };
    rig.members[0].duty = Duty::Milter {
        limits: Some(Limits { influence: 5, quota: 6 }),
        withdrawn: 0,
        rate: NonZeroU32::new(1),
    };
    rig.set_up().await;
    let isp = rig.log("isp");
    let appends = (0..8).map(|number| isp.append(batch(1, number), vec![7; 300_000]));
    let done = futures_util::future::join_all(appends).await;
    let taken = done.iter().filter(|place| place.is_ok()).count();
    assert_eq!(taken, 3, "{done:?}");
    assert!(done.iter().all(|place| matches!(place, Ok(_) | Err(LogError::RateLimited(_)))), "{done:?}");
    assert_eq!(rig.sql("select count(*) from bulkmark.batches"), "3");
}

/// A member that is removed from the list loses access at once, though connected.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_no_member_any_more_is_denied() {
    let Some(mut rig) = Rig::fresh(&own(&["mx1", "mx2"])).await else { return };
    let (gone, stays) = (rig.log("mx1"), rig.log("mx2"));
    append(&gone, batch(1, 1), b"a").await;
    rig.members.retain(|member| member.name != "mx1");
    rig.set_up().await;
    let error = gone.append(batch(1, 2), b"b".to_vec()).await.unwrap_err();
    assert!(matches!(error, LogError::Denied(_)), "{error}");
    let error = gone.ends().await.unwrap_err();
    assert!(matches!(error, LogError::Denied(_)), "{error}");
    append(&stays, batch(1, 1), b"c").await;
    assert_eq!(rig.sql("select count(*) from pg_roles where rolname = 'mx1'"), "0", "setup made it");
    // It gets access again.
    rig.members.push(milter(&rig.server, "mx1"));
    rig.set_up().await;
    append(&gone, batch(1, 2), b"b").await;
    assert_eq!(insist(|| gone.clients()).await, own(&["mx1"]), "it is told of itself only");
}
