// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet: real milters and aggregators on a real log, and kill -9. Tests that apply to servers as well are in `tests/fleet/engines`.

use bulkmark_testing::fleet::{AGGREGATORS, Engine, Fleet, MILTERS};
use bulkmark_testing::letters::{count, letter, send, wait_for};
use bulkmark_testing::members::Members;
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::{program, status, wait_until};
use serde_json::Value;
use std::process::Command;

on_both_logs! {
    what_one_saw_the_others_know,
    a_log_that_is_made_anew_goes_on,
}

/// Both aggregators and three milters.
fn start(fleet: &Fleet) -> Members {
    Members::start(fleet, &AGGREGATORS, &MILTERS[..3])
}

/// After twenty copies at one mail server, the next copy at another is bulk; and the display of the fleet for operators.
fn what_one_saw_the_others_know(fleet: &Fleet) {
    let members = start(fleet);
    members.send(0, 1, 20);
    wait_for(&members.sites[1], &letter(1), 20);
    let answer = session(members.milter(1)).message(&Mail::raw(&letter(1)));
    assert!(answer.verdict().starts_with("bulk; body=21;"), "{}", answer.verdict());
    members.wait_for(1, 21);
    members.settle();
    let printed = |arguments: &[&str], config| {
        let output = Command::new(program()).args(arguments).arg("--config").arg(config).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = printed(&["status"], members.sites[0].config());
    assert!(text.contains("fleet: a milter, in step with the log"), "{text}");
    let text = printed(&["fleet", "status"], members.sites[0].config());
    assert!(text.contains("; the last one is number ") && !text.contains("error"), "{text}");
    let text = printed(&["fleet", "status", "--server"], members.servers[0].config());
    let expected =
        ["mx1 (own): ", "isp (partner: at most 5 to any count, quota 6.25%): none", "an aggregator, in step"];
    assert!(expected.iter().all(|part| text.contains(part)), "{text}");
    let again = fleet.set_up(&fleet.members(&MILTERS, 0), &[]);
    let text = String::from_utf8_lossy(&again.stdout).into_owned();
    assert_eq!(text, "all is as it should be: 11 members\n");
    let again = fleet.set_up(&fleet.members(&MILTERS, 0), &["--json"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), "{\"changes\":[],\"members\":11}\n");
}

/// `bulkmark pause` and `allow` hold at one mail server of a fleet, and say so; an aggregator takes no orders.
#[test]
fn an_order_says_that_it_holds_at_one_machine() {
    let Some(fleet) = Fleet::postgres() else { return };
    let members = Members::start(&fleet, &AGGREGATORS[..1], &MILTERS[..1]);
    let run = |args: &[&str], config: std::path::PathBuf| {
        let output = Command::new(program()).args(args).arg("--config").arg(config).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let wanted = "the machines of a fleet exchange no orders: an order holds at one mail server alone";
    for args in [&["pause"][..], &["resume"], &["allow", "00112233445566778899aabbccddeeff"]] {
        let (code, text) = run(args, members.sites[0].path("milter.toml"));
        assert!(code == Some(0) && text.contains(&format!("warning: {wanted}")), "{args:?}: {text}");
    }
    let (code, text) = run(&["allow", "--list"], members.sites[0].path("milter.toml"));
    assert!(code == Some(0) && !text.contains(wanted), "{text}");
    let (code, text) = run(&["pause", "--server"], members.servers[0].site.path("server.toml"));
    assert!(code != Some(0) && text.contains(wanted), "{code:?} {text}");
}

/// The log is restored from an older copy, with aggregators running and without: its lost steps and reports come back, and nothing is
/// counted twice.
#[test]
fn a_log_that_lost_its_end_is_healed() {
    let Some(fleet) = Fleet::postgres() else { return };
    let mut members = start(&fleet);
    members.send(0, 3, 4);
    members.wait_for(3, 4);
    let ends = "select string_agg(last::text, ',' order by name) from bulkmark.ends where name in ('batches', 'steps')";
    let back = |to: &str| {
        let (batches, steps) = to.split_once(',').unwrap();
        // The ends first: that waits for members that append. Otherwise what they append meanwhile would stay behind the end, as in no older
        // copy.
        let cut = format!(
            "begin; update bulkmark.ends set last = {batches} where name = 'batches'; \
             update bulkmark.ends set last = {steps} where name = 'steps'; \
             delete from bulkmark.batches where place > {batches}; delete from bulkmark.steps where place > {steps}; commit"
        );
        fleet.sql(&cut).unwrap();
    };
    let before = fleet.sql(ends).unwrap();
    for milter in 0..3 {
        members.send(milter, 3, 2);
    }
    members.wait_for(3, 10);
    members.settle();
    back(&before);
    members.send(1, 3, 3);
    members.wait_for(3, 13);
    members.kill_aggregators();
    // These are in the log, not yet counted, when it is restored.
    let before = fleet.sql(ends).unwrap();
    members.send(2, 3, 3);
    wait_until("a batch in the log", || {
        let now = fleet.sql(ends)?;
        if now == before { Err(now) } else { Ok(()) }
    });
    back(&before);
    members.start_aggregators();
    members.send(0, 3, 1);
    members.wait_for(3, 17);
    members.settle();
}

/// The log is created again, empty: the members put their counts into it, and continue in another epoch.
fn a_log_that_is_made_anew_goes_on(fleet: &Fleet) {
    let members = start(fleet);
    members.send(0, 4, 4);
    members.wait_for(4, 4);
    members.settle();
    match &fleet.log {
        Engine::Postgres(_) => drop(fleet.sql("drop schema bulkmark cascade").unwrap()),
        Engine::Nats(..) => {
            for stream in ["BATCHES", "STEPS", "SNAPSHOT", "CLIENTS", "MEMBERS"] {
                fleet.jetstream(&format!("STREAM.DELETE.BULKMARK_{stream}"), &Value::Null);
            }
        }
    }
    members.send(1, 4, 3);
    let file = fleet.members(&MILTERS, 0);
    wait_until("a log that is set up", || {
        let output = fleet.set_up(&file, &[]);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(why) }
    });
    members.wait_for(4, 7);
    members.settle();
    assert_eq!(status(&members.sites[0])["fleet"]["epoch"], 2);
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(4), 7);
}

/// A partner cannot make a signature bulk alone, and its reports are withdrawn everywhere when its entry requests that.
#[test]
fn a_partner_is_limited_and_taken_back() {
    let Some(fleet) = Fleet::postgres() else { return };
    let members = start(&fleet);
    let partner = fleet.milter("isp");
    let at_partner = partner.start();
    send(&at_partner, &letter(5), 30);
    members.wait_for(5, 5);
    members.send(0, 5, 2);
    members.wait_for(5, 7);
    let output = fleet.set_up(&fleet.members(&MILTERS, 1), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    members.wait_for(5, 2);
    // It starts over.
    send(&at_partner, &letter(5), 3);
    members.wait_for(5, 5);
}

/// Invalid log entries are skipped: junk, a repeated old step, an unreadable batch, and a batch without an owner.
#[test]
fn junk_in_the_log_changes_nothing() {
    let Some(fleet) = Fleet::postgres() else { return };
    let members = start(&fleet);
    members.send(0, 8, 4);
    members.wait_for(8, 4);
    members.settle();
    let add = |name: &str, table: &str, values: &str| {
        let sql = format!(
            "begin; update bulkmark.ends set last = last + 1 where name = '{name}'; \
             insert into bulkmark.{table} select {values} from bulkmark.ends where name = '{name}'; commit"
        );
        fleet.sql(&sql).unwrap();
    };
    let first = "(select bytes from bulkmark.batches order by place limit 1)";
    add("steps", "steps", r"last, 0, 0, '\xdeadbeef'");
    add("steps", "steps", "last, 0, 0, (select bytes from bulkmark.steps order by place limit 1)");
    add("batches", "batches", r"last, 'mx2', 1, 1, 0, 0, '\x00'");
    add("batches", "batches", &format!("last, 'ghost', 7, 7, 0, 0, {first}"));
    // The client's own batch, repeated.
    add("batches", "batches", &format!("last, 'mx1', 7, 7, 0, 0, {first}"));
    for milter in 0..3 {
        members.send(milter, 8, 2);
    }
    members.wait_for(8, 10);
    members.settle();
    for site in &members.sites {
        let status = status(site);
        assert_eq!(status["fleet"]["junk-steps"], 1, "{status}");
        assert_eq!(status["fleet"]["epoch"], 1, "{status}");
    }
}

/// The newest snapshot is unreadable, and the last step of the log does not follow. Aggregators that start then continue from the steps
/// alone, and replace that snapshot.
#[test]
fn a_snapshot_that_cannot_be_read_stops_no_aggregator() {
    let Some(fleet) = Fleet::postgres() else { return };
    let mut members = start(&fleet);
    members.send(0, 12, 4);
    members.wait_for(12, 4);
    members.settle();
    members.kill_aggregators();
    let junk = r"begin;
        update bulkmark.ends set last = last + 1000 where name = 'snapshots';
        insert into bulkmark.parts values (77, 0, extract(epoch from now())::bigint, '\xdeadbeef');
        insert into bulkmark.snapshots select last, 77, extract(epoch from now())::bigint, 1, 4, 0, 0
            from bulkmark.ends where name = 'snapshots';
        update bulkmark.ends set last = last + 1 where name = 'steps';
        insert into bulkmark.steps select last, 0, 0, (select bytes from bulkmark.steps order by place limit 1)
            from bulkmark.ends where name = 'steps';
        commit";
    fleet.sql(junk).unwrap();
    members.start_aggregators();
    members.send(1, 12, 3);
    members.wait_for(12, 7);
    wait_until("a snapshot that can be read", || {
        let newest = fleet.sql("select id from bulkmark.snapshots order by number desc limit 1")?;
        if newest == "77" { Err(newest) } else { Ok(()) }
    });
    members.settle();
}

/// A milter's ledger is an old copy, and its later batches are not yet counted: it waits until they are, and does not reuse their numbers,
/// since new batches would be taken for them.
#[test]
fn an_old_copy_waits_for_what_it_forgot() {
    let Some(fleet) = Fleet::postgres() else { return };
    let mut members = start(&fleet);
    members.send(0, 10, 4);
    members.wait_for(10, 4);
    members.settle();
    assert!(members.milters[0].take().unwrap().terminate().success());
    let (ledger, copy) = (members.sites[0].path("state/ledger.redb"), members.sites[0].path("copy"));
    std::fs::copy(&ledger, &copy).unwrap();
    members.milters[0] = Some(members.sites[0].start());
    members.kill_aggregators();
    let batches = || fleet.sql("select last from bulkmark.ends where name = 'batches'").unwrap();
    let before = batches();
    // One message leaves in one batch.
    members.send(0, 10, 1);
    wait_until("a batch in the log", || {
        let now = batches();
        if now == before { Err(now) } else { Ok(()) }
    });
    members.milters[0].take().unwrap().kill();
    std::fs::copy(&copy, &ledger).unwrap();
    members.milters[0] = Some(members.sites[0].start());
    members.send(0, 11, 5);
    // It runs, and follows.
    wait_until("the milter", || {
        let status = status(&members.sites[0]);
        if status["fleet"]["in-step"] == true { Ok(()) } else { Err(status.to_string()) }
    });
    members.start_aggregators();
    members.wait_for(11, 5);
    wait_for(&members.sites[1], &letter(10), 5);
    members.settle();
}

/// A milter's ledger is an old copy: it learns this before it sends new reports, and its lost batches are not counted again.
#[test]
fn an_old_copy_of_a_milter_counts_nothing_twice() {
    let Some(fleet) = Fleet::postgres() else { return };
    let mut members = start(&fleet);
    members.send(0, 9, 4);
    members.wait_for(9, 4);
    members.settle();
    assert!(members.milters[0].take().unwrap().terminate().success());
    let (ledger, copy) = (members.sites[0].path("state/ledger.redb"), members.sites[0].path("copy"));
    std::fs::copy(&ledger, &copy).unwrap();
    members.milters[0] = Some(members.sites[0].start());
    for times in [2, 3] {
        members.send(0, 9, times);
        members.settle();
    }
    members.milters[0].take().unwrap().kill();
    std::fs::copy(&copy, &ledger).unwrap();
    members.milters[0] = Some(members.sites[0].start());
    members.send(0, 9, 6);
    members.wait_for(9, 15);
    members.settle();
    assert_eq!(count(&members.sites[1], &letter(9)), 15);
}

/// An aggregator accepts no reports by HTTPS, and answers so; its milter waits, and mail flows.
#[test]
fn an_aggregator_takes_reports_from_the_log_only() {
    let Some(fleet) = Fleet::postgres() else { return };
    let server = fleet.aggregator("agg1");
    let entry = server.entry("old", "report");
    let _daemon = server.start();
    let site = bulkmark_testing::server::milter(&[entry]);
    let daemon = site.start();
    send(&daemon, &letter(6), 3);
    daemon.log.wait_for(0, "403 Forbidden: this is an aggregator of a fleet");
    assert_eq!(count(&site, &letter(6)), 3, "own reports count at once");
}
