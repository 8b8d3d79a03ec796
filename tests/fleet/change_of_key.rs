// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet changes its key as docs/federation.md describes, one machine after the other: no count is lost, and no machine is refused.

use bulkmark_testing::fleet::{AGGREGATORS, Engine, Fleet, MILTERS};
use bulkmark_testing::letters::{count, letter, wait_for};
use bulkmark_testing::members::Members;
use bulkmark_testing::{Site, wait_until};
use serde_json::Value;
use std::fs;
use std::path::Path;

on_both_logs! {
    a_fleet_changes_its_key_without_losing_a_count,
}

/// Lines of `[ledger]` that name these keys.
fn keys(directory: &Path, names: &[&str]) -> String {
    let file = |name: &&str| {
        let path = directory.join(name);
        fs::write(&path, name.repeat(16)).unwrap();
        path.display().to_string()
    };
    format!("federation-key-file = {:?}\n", names.iter().map(file).collect::<Vec<_>>())
}

fn set(site: &mut Site, names: &[&str]) {
    let before = site.extra.split("[ledger]").next().unwrap().to_owned();
    site.extra = format!("{before}[ledger]\n{}", keys(site.directory.path(), names));
}

fn restart_milter(members: &mut Members, milter: usize, names: &[&str]) {
    assert!(members.milters[milter].take().unwrap().terminate().success());
    set(&mut members.sites[milter], names);
    members.milters[milter] = Some(members.sites[milter].start());
}

fn restart_aggregators(members: &mut Members, names: &[&str]) {
    for (server, daemon) in members.servers.iter_mut().zip(&mut members.aggregators) {
        assert!(daemon.take().unwrap().terminate().success());
        server.ledger = keys(server.site.directory.path(), names);
        *daemon = Some(server.start());
    }
}

/// Deletes the log with all that is in it.
fn delete_log(fleet: &Fleet) {
    match &fleet.log {
        Engine::Postgres(_) => drop(fleet.sql("drop schema bulkmark cascade").unwrap()),
        Engine::Nats(..) => {
            for stream in ["BATCHES", "STEPS", "SNAPSHOT", "CLIENTS", "MEMBERS"] {
                fleet.jetstream(&format!("STREAM.DELETE.BULKMARK_{stream}"), &Value::Null);
            }
        }
    }
}

/// The last step of the change, when counts under the old key have expired: the log is made anew under the new key alone.
fn end_the_change(fleet: &Fleet, members: &mut Members) {
    for daemon in members.milters.iter_mut().chain(&mut members.aggregators) {
        assert!(daemon.take().unwrap().terminate().success());
    }
    delete_log(fleet);
    let file = fleet.members(&MILTERS, 0);
    wait_until("a log that is set up", || {
        let output = fleet.set_up(&file, &[]);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(why) }
    });
    for server in &mut members.servers {
        server.ledger = keys(server.site.directory.path(), &["new"]);
    }
    members.sites.iter_mut().for_each(|site| set(site, &["new"]));
    members.start_aggregators();
    members.milters = members.sites.iter().map(|site| Some(site.start())).collect();
}

fn a_fleet_changes_its_key_without_losing_a_count(fleet: &Fleet) {
    let mut servers: Vec<_> = AGGREGATORS.map(|name| fleet.aggregator(name)).into();
    let mut sites: Vec<_> = MILTERS[..2].iter().map(|name| fleet.milter(name)).collect();
    servers.iter_mut().for_each(|server| server.ledger = keys(server.site.directory.path(), &["old"]));
    sites.iter_mut().for_each(|site| set(site, &["old"]));
    let mut members = Members::of(servers, sites);
    members.send(0, 1, 9);
    members.wait_for(1, 9);
    members.settle();
    restart_aggregators(&mut members, &["new", "old"]);
    restart_milter(&mut members, 0, &["new", "old"]);
    members.send(0, 1, 3);
    wait_for(&members.sites[0], &letter(1), 12);
    members.send(1, 1, 2);
    wait_for(&members.sites[0], &letter(1), 14);
    assert_eq!(count(&members.sites[1], &letter(1)), 11, "it does not have the new key yet");
    restart_milter(&mut members, 1, &["new", "old"]);
    members.wait_for(1, 14);
    members.send(1, 1, 5);
    members.wait_for(1, 19);
    members.settle();
    // A machine that is set up again reads the whole log under both keys.
    assert!(members.milters[1].take().unwrap().terminate().success());
    fs::remove_dir_all(members.sites[1].path("state")).unwrap();
    members.milters[1] = Some(members.sites[1].start());
    members.wait_for(1, 19);
    members.settle();
    end_the_change(fleet, &mut members);
    // Of the copies, eight were counted under the new key.
    members.wait_for(1, 8);
    members.send(0, 1, 2);
    members.wait_for(1, 10);
    members.settle();
    for daemon in members.milters.iter().chain(&members.aggregators).flatten() {
        let told =
            |line: &String| line.contains("another federation key") || line.contains("federation key id is");
        assert!(!daemon.log.lines().iter().any(told), "{:#?}", daemon.log.lines());
    }
}
