// SPDX-License-Identifier: GPL-3.0-or-later
//! What goes wrong with a fleet, on both engines: a certificate that ran out, a machine that is no member, clocks that are days off, a
//! log of which an older copy was put back. Each time the daemon and `bulkmark status` say what it is and what to do, mail flows, and
//! when the cause is gone everything is counted, once, without anybody's help.

mod common;

use common::authority::Authority;
use common::clock::Clock;
use common::fleet::{Engine, Fleet, MILTERS};
use common::letters::{count, letter, send, wait_for};
use common::members::Members;
use common::nats::Cluster;
use common::wait_until;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A server of the log gets a certificate, in date or not, and lets nobody keep the connection that he has.
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
        // Where the test writes them anew.
        std::os::unix::fs::symlink(cluster.directory.join(name), directory.path().join("new")).unwrap();
        fs::rename(directory.path().join("new"), directory.path().join(name)).unwrap();
    }
    a_certificate_runs_out(&fleet, &authority);
}

/// A milter is not in the file of members yet: it counts for itself, and what it counted is shared when it is.
fn not_a_member(fleet: &Fleet) {
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

#[test]
fn whoever_is_no_member_is_told_so() {
    Fleet::postgres().iter().for_each(not_a_member);
}

#[test]
fn on_nats_whoever_is_no_member_is_told_so() {
    Fleet::nats().iter().for_each(not_a_member);
}

/// A milter and an aggregator have clocks that are off. What they report and fold counts, in the windows of the log's clock.
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

/// All nodes are stopped, and started with older copies of their data: what the log lost of steps and reports comes back.
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
    let epoch = common::status(&members.sites[0])["fleet"]["epoch"].as_u64().unwrap();
    assert!(epoch >= 2, "the log is known to have lost its end: {epoch}");
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(4), 15);
}

/// Nobody counted for longer than the log keeps batches, and who reported them is gone. Nobody waits for them.
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
