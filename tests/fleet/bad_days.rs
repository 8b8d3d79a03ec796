// SPDX-License-Identifier: GPL-3.0-or-later
//! Faults of a fleet, on both engines: an expired certificate, a machine that is no member or has another key, clocks that are days off, an
//! old copy of the log, or of the log and all aggregators. Each time the daemon and `bulkmark status` show the cause and the remedy, and
//! mail flows. When the cause is gone everything is counted, once, without operator action.

use bulkmark_testing::authority::Authority;
use bulkmark_testing::clock::Clock;
use bulkmark_testing::fleet::{Engine, Fleet, MILTERS};
use bulkmark_testing::letters::{count, letter, send, wait_for};
use bulkmark_testing::members::Members;
use bulkmark_testing::nats::Cluster;
use bulkmark_testing::postgres::Postgres;
use bulkmark_testing::wait_until;
use std::fs;
use std::os::unix::fs::PermissionsExt;

on_both_logs! {
    whoever_is_no_member_is_told_so,
    a_milter_with_another_key_is_told_so,
}

/// Gives a server of the log a valid or expired certificate, and closes all existing connections.
fn certify(fleet: &Fleet, authority: &Authority, expired: bool) {
    let [certificate, key] =
        if expired { authority.issue_expired("localhost") } else { authority.issue("localhost") };
    let put = |path: std::path::PathBuf, pem: &str| {
        fs::write(&path, pem).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    match &fleet.log {
        Engine::Postgres(log) => {
            for (name, pem) in [("server.crt", &certificate), ("server.key", &key)] {
                log.give(&put(log.cluster().join("data").join(name), pem));
            }
            log.sql("alter system set ssl = on").unwrap();
            log.sql("select pg_reload_conf()").unwrap();
            log.cut().unwrap();
        }
        Engine::Nats(cluster, ..) => {
            put(cluster.directory.join("cert.pem"), &certificate);
            put(cluster.directory.join("key.pem"), &key);
            cluster.reload();
            cluster.cut();
        }
    }
}

fn a_certificate_runs_out(fleet: &Fleet, authority: &Authority) {
    certify(fleet, authority, false);
    let ca = fleet.path("ca.pem");
    fs::write(&ca, authority.pem()).unwrap();
    let encrypted = |table: &str| {
        let tls = format!("[fleet]\ntls = true\nca-file = \"{}\"\n", ca.display());
        table.replace("[fleet]\n", &tls).replace("127.0.0.1", "localhost")
    };
    let mut server = fleet.aggregator("agg1");
    server.extra = encrypted(&server.extra);
    let mut sites: Vec<_> = ["mx1", "mx2"].iter().map(|name| fleet.milter(name)).collect();
    sites.iter_mut().for_each(|site| site.extra = encrypted(&site.extra));
    let members = Members::of(vec![server], sites);
    members.send(0, 1, 3);
    members.wait_for(1, 3);
    certify(fleet, authority, true);
    members.send(0, 1, 4);
    members.wait_for_status(0, &["xpired"]);
    assert_eq!(count(&members.sites[0], &letter(1)), 7, "mail flows");
    members.wait_for_server_status(0, "xpired");
    certify(fleet, authority, false);
    members.send(1, 1, 2);
    members.wait_for(1, 9);
    members.settle();
}

#[test]
fn the_certificate_of_postgres_runs_out() {
    let Some(fleet) = Fleet::postgres() else { return };
    a_certificate_runs_out(&fleet, &Authority::new("the fleet's"));
}

#[test]
fn the_certificate_of_nats_runs_out() {
    let authority = Authority::new("the fleet's");
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let shown = directory.path().display();
        for (name, pem) in ["cert.pem", "key.pem"].iter().zip(authority.issue("localhost")) {
            fs::write(directory.path().join(name), pem).unwrap();
        }
        let tls = format!(
            "tls {{ cert_file: \"{shown}/cert.pem\", key_file: \"{shown}/key.pem\" }}\nallow_non_tls: true"
        );
        Cluster::start(3, &tls)
    };
    let Some(mut fleet) = Fleet::on_nats(start) else { return };
    let Engine::Nats(cluster, ..) = &mut fleet.log else { unreachable!() };
    for name in ["cert.pem", "key.pem"] {
        // The path to which the test writes new ones.
        std::os::unix::fs::symlink(cluster.directory.join(name), directory.path().join("new")).unwrap();
        fs::rename(directory.path().join("new"), directory.path().join(name)).unwrap();
    }
    a_certificate_runs_out(&fleet, &authority);
}

/// A milter is not yet in the file of members: it counts locally, and shares these counts once it is a member.
fn whoever_is_no_member_is_told_so(fleet: &Fleet) {
    let without = [MILTERS[0], MILTERS[1], MILTERS[3]];
    let set_up = |milters: &[&str]| {
        if let Engine::Nats(cluster, ..) = &fleet.log {
            let accounts = cluster.accounts().display().to_string();
            fleet.set_up(&fleet.members(milters, 0), &["--accounts", &accounts]);
            cluster.reload();
        }
        let output = fleet.set_up(&fleet.members(milters, 0), &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    set_up(&without);
    let members = Members::start(fleet, &["agg1"], &["mx1", "mx3"]);
    members.send(1, 2, 4);
    members.wait_for_status(
        1,
        &["is it in the file of members, under this name and with this key or password?"],
    );
    assert_eq!(count(&members.sites[1], &letter(2)), 4);
    members.send(0, 2, 3);
    wait_for(&members.sites[0], &letter(2), 3);
    set_up(&MILTERS);
    members.wait_for(2, 7);
    members.settle();
}

/// The clocks of a milter and an aggregator are off. Their reports and steps count, in the windows of the log's clock.
fn clocks_are_off(fleet: &Fleet, offset: &str, side: &str) {
    let mut server = fleet.aggregator("agg1");
    let mut site = fleet.milter("mx1");
    let (Some(at_server), Some(at_site)) =
        (Clock::of(&mut server.site, offset), Clock::of(&mut site, offset))
    else {
        return;
    };
    let members = Members::of(vec![server], vec![site, fleet.milter("mx2")]);
    let told =
        format!("other clock: this machine's is 2 days {side} the log's; at most 5 minutes are tolerated");
    members.milter(0).log.wait_for(0, &told);
    members.aggregator(0).log.wait_for(0, &told);
    members.wait_for_status(0, &[&told]);
    members.wait_for_server_status(0, &told);
    members.send(0, 3, 4);
    wait_for(&members.sites[1], &letter(3), 4);
    members.send(1, 3, 2);
    wait_for(&members.sites[1], &letter(3), 6);
    at_server.set("+0");
    at_site.set("+0");
    members.wait_for(3, 6);
    members.milter(0).log.wait_for(0, "its clock and this machine's agree again");
    members.send(0, 3, 1);
    members.wait_for(3, 7);
    members.settle();
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(3), 7);
}

#[test]
fn clocks_that_are_ahead() {
    Fleet::postgres().iter().for_each(|fleet| clocks_are_off(fleet, "+2d", "ahead of"));
}

#[test]
fn clocks_that_are_behind() {
    Fleet::postgres().iter().for_each(|fleet| clocks_are_off(fleet, "-2d", "behind"));
}

#[test]
fn on_nats_clocks_that_are_ahead() {
    Fleet::nats().iter().for_each(|fleet| clocks_are_off(fleet, "+2d", "ahead of"));
}

#[test]
fn on_nats_clocks_that_are_behind() {
    Fleet::nats().iter().for_each(|fleet| clocks_are_off(fleet, "-2d", "behind"));
}

/// The log's own clock is off, by `days`: all members log it and mail flows. Reports made meanwhile belong to other days, and count once,
/// on those.
fn the_clock_of_the_log_is_off(offset: &str, side: &str, is_ahead: bool) {
    let Some(mut log) = Postgres::init() else { return };
    let Some((clock, environment)) = Clock::at(log.path("clock"), offset) else { return };
    log.environment = environment;
    log.run();
    log.wait_until_ready();
    let Some(fleet) = Fleet::on_postgres(log) else { return };
    let members = Members::start(&fleet, &["agg1"], &["mx1", "mx2"]);
    let told =
        format!("other clock: this machine's is 2 days {side} the log's; at most 5 minutes are tolerated");
    for milter in 0..2 {
        members.milter(milter).log.wait_for(0, &told);
    }
    members.aggregator(0).log.wait_for(0, &told);
    members.wait_for_status(0, &[&told]);
    members.send(0, 5, 4);
    members.settle();
    clock.set("+0");
    members.milter(0).log.wait_for(0, "its clock and this machine's agree again");
    members.send(1, 5, 2);
    members.wait_for(5, if is_ahead { 2 } else { 6 });
    members.settle();
    let mut new = fleet.milter("isp");
    let _clock = Clock::of(&mut new, if is_ahead { offset } else { "+0" });
    let _new = new.start();
    wait_for(&new, &letter(5), 6);
}

/// Reports that it dated ahead count when that day comes.
#[test]
fn a_log_whose_clock_is_ahead() {
    the_clock_of_the_log_is_off("+2d", "behind", true);
}

#[test]
fn a_log_whose_clock_is_behind() {
    the_clock_of_the_log_is_off("-2d", "ahead of", false);
}

/// A milter without the fleet's key sends reports that nobody can count, and both sides log it. With the key all its mail is counted, once.
fn a_milter_with_another_key_is_told_so(fleet: &Fleet) {
    let path = fleet.path("federation.key");
    fs::write(&path, "00112233445566778899aabbccddeeff").unwrap();
    let key = format!("federation-key-file = \"{}\"\n", path.display());
    let with_key = |mut site: bulkmark_testing::Site| {
        site.extra += &format!("[ledger]\n{key}");
        site
    };
    let mut server = fleet.aggregator("agg1");
    server.ledger.clone_from(&key);
    let mut members = Members::of(vec![server], vec![with_key(fleet.milter("mx1")), fleet.milter("mx2")]);
    members.send(1, 6, 3);
    let told = "federation key id differs: ";
    members.aggregator(0).log.wait_for(0, told);
    members.wait_for_server_status(0, told);
    members.send(0, 6, 4);
    let told = "federation key id differs: ";
    members.milter(1).log.wait_for(0, told);
    members.wait_for_status(1, &[told]);
    members.send(1, 6, 2);
    assert_eq!([0, 1].map(|n| count(&members.sites[n], &letter(6))), [4, 5], "each counts what it saw");
    assert!(members.milters[1].take().unwrap().terminate().success());
    let site = std::mem::replace(&mut members.sites[1], bulkmark_testing::Site::new(""));
    members.sites[1] = with_key(site);
    members.milters[1] = Some(members.sites[1].start());
    members.wait_for(6, 4);
    members.send(1, 6, 2);
    members.wait_for(6, 6);
    members.settle();
    assert_eq!(count(&members.sites[0], &letter(6)), 6);
}

/// Log and aggregators are restored from older copies together: only the milters know the later counts. After a minute they log it, drop
/// these counts, and all continue with equal counts.
#[test]
fn all_who_count_are_put_back_with_the_log() {
    all_who_count_are_put_back(true);
}

/// The same, and the log's snapshot is lost: an aggregator writes another one, although nobody reports.
#[test]
fn all_who_count_are_put_back_with_a_log_without_a_snapshot() {
    all_who_count_are_put_back(false);
}

fn all_who_count_are_put_back(with_snapshot: bool) {
    let Some(fleet) = Fleet::postgres() else { return };
    let Engine::Postgres(log) = &fleet.log else { unreachable!() };
    let mut members = Members::start(&fleet, &["agg1", "agg2"], &["mx1", "mx2"]);
    members.send(0, 7, 4);
    members.wait_for(7, 4);
    members.settle();
    wait_until("a snapshot", || {
        let lines: Vec<_> = (0..2).flat_map(|n| members.aggregator(n).log.lines()).collect();
        if lines.iter().any(|line| line.contains("was put into the log")) {
            Ok(())
        } else {
            Err(lines.join("\n"))
        }
    });
    let files: Vec<_> = members
        .servers
        .iter()
        .map(|server| ["state/ledger.redb", "copy"].map(|name| server.site.path(name)))
        .collect();
    for daemon in &mut members.aggregators {
        assert!(daemon.take().unwrap().terminate().success());
    }
    for [ledger, copy] in &files {
        fs::copy(ledger, copy).unwrap();
    }
    log.save();
    members.start_aggregators();
    members.send(0, 7, 2);
    members.send(1, 7, 3);
    members.wait_for(7, 9);
    members.settle();
    members.kill_aggregators();
    for [ledger, copy] in &files {
        fs::copy(copy, ledger).unwrap();
    }
    log.put_back();
    if !with_snapshot {
        log.sql("truncate bulkmark.snapshots, bulkmark.parts").unwrap();
    }
    members.start_aggregators();
    for milter in 0..2 {
        let daemon = members.milter(milter);
        wait_until("what a milter says of it", || {
            let told = "the log was put back to an older state and went on from there";
            let lines = daemon.log.lines();
            if lines.iter().any(|line| line.contains(told)) { Ok(()) } else { Err(lines.join("\n")) }
        });
    }
    members.wait_for(7, 4);
    members.send(0, 7, 1);
    members.send(1, 7, 2);
    members.wait_for(7, 7);
    members.settle();
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(7), 7);
}

/// All nodes are stopped, and started with older copies of their data: the lost steps and reports come back.
#[test]
fn older_copies_are_put_back_on_all_nodes() {
    let Some(fleet) = Fleet::nats() else { return };
    let Engine::Nats(cluster, ..) = &fleet.log else { unreachable!() };
    let members = Members::start(&fleet, &["agg1", "agg2"], &["mx1", "mx2"]);
    members.send(0, 4, 3);
    members.wait_for(4, 3);
    members.settle();
    cluster.save();
    members.send(0, 4, 2);
    members.send(1, 4, 5);
    members.wait_for(4, 10);
    members.settle();
    cluster.put_back();
    send(members.milter(1), &letter(4), 4);
    members.wait_for(4, 14);
    members.settle();
    members.send(0, 4, 1);
    members.wait_for(4, 15);
    let epoch = bulkmark_testing::status(&members.sites[0])["fleet"]["epoch"].as_u64().unwrap();
    assert!(epoch >= 2, "the log is known to have lost its end: {epoch}");
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(4), 15);
}

/// Nobody counted for longer than the log keeps batches, and their reporter is gone. Nobody waits for them.
#[test]
fn what_is_gone_before_it_was_counted_is_not_waited_for() {
    let Some(fleet) = Fleet::postgres() else { return };
    let Engine::Postgres(log) = &fleet.log else { unreachable!() };
    let mut lost = Members::start(&fleet, &[], &["mx1"]);
    lost.send(0, 1, 2);
    wait_until("a batch in the log", || match log.sql("select count(*) from bulkmark.batches") {
        Ok(count) if count.trim() != "0" => Ok(()),
        other => Err(format!("{other:?}")),
    });
    lost.milters[0].take().unwrap().kill();
    log.sql("delete from bulkmark.batches").unwrap();
    let members = Members::start(&fleet, &["agg1"], &["mx2", "mx3"]);
    members.send(0, 2, 3);
    members.wait_for(2, 3);
    members.settle();
}
