// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet whose log has a full disk. On one of three nodes it stays unnoticed; on all of them, or with one server, mail flows, each machine
//! counts locally and logs the reason, and when there is space again all is counted, once.
//!
//! The disks are tmpfs of some megabytes, which really are full.

use bulkmark_testing::fleet::{Engine, Fleet};
use bulkmark_testing::letters::{count, letter};
use bulkmark_testing::members::Members;
use bulkmark_testing::nats::Cluster;
use bulkmark_testing::postgres::Postgres;
use bulkmark_testing::{Daemon, wait_until};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Space beside the log's own on each of its disks, in megabytes: PostgreSQL starts with some 50.
const POSTGRES: u32 = 160;
const NATS: u32 = 64;

/// Fills the disk completely.
fn fill(directory: &Path) -> PathBuf {
    let filler = directory.join("filler");
    let mut file = fs::OpenOptions::new().create(true).append(true).open(&filler).unwrap();
    let (block, mut size) = (vec![0x55; 1 << 20], 1 << 20);
    while size > 0 {
        while file.write_all(&block[..size]).is_ok() {}
        size /= 2;
    }
    filler
}

/// Sends letters, a few new ones each time, until `done`. Returns their number.
fn send_until(members: &Members, first: usize, mut done: impl FnMut() -> bool) -> usize {
    let mut sent = 0;
    while !done() {
        assert!(sent < 3000, "the log needs no space");
        members.send(sent % 2, first + sent, 2);
        sent += 1;
    }
    sent
}

fn says(daemon: &Daemon, text: &str) -> bool {
    daemon.log.lines().iter().any(|line| line.contains(text))
}

/// Whether a nats-server noticed that it has no space.
fn is_full(cluster: &Cluster, node: usize) -> bool {
    let log = fs::read_to_string(cluster.directory.join(format!("n{node}.log"))).unwrap();
    log.to_lowercase().contains("no space left")
}

/// The common part of both engines, from a full disk on. `notices`: whether the log or a milter noticed it; then `bulkmark status` of a
/// milter shows one of `told`. `mend` does an administrator's work once there is space.
fn go_through(
    fleet: &Fleet,
    disks: &[PathBuf],
    told: &[&str],
    notices: impl Fn(&Daemon) -> bool,
    mend: impl Fn(),
) {
    let members = Members::start(fleet, &["agg1", "agg2"], &["mx1", "mx2"]);
    members.send(0, 0, 3);
    members.wait_for(0, 3);
    members.settle();
    let fillers: Vec<_> = disks.iter().map(|disk| fill(disk)).collect();
    let sent = send_until(&members, 100, || notices(members.milter(0)));
    // Mail flows, and each machine counts locally.
    members.send(0, 0, 4);
    assert_eq!(count(&members.sites[0], &letter(0)), 7);
    members.wait_for_status(0, told);

    fillers.iter().for_each(|filler| fs::remove_file(filler).unwrap());
    mend();
    // A nats-server 2.10.27 does not always recover its streams on a busy machine; docs/fleet-nats.md has it restarted then.
    let (mut mended, mut patience) = (Instant::now(), Duration::from_mins(1));
    wait_until("the counts from before", || {
        let counts: Vec<u64> = members.sites.iter().map(|site| count(site, &letter(0))).collect();
        if counts.iter().all(|&count| count == 7) {
            return Ok(());
        }
        if mended.elapsed() > patience {
            mend();
            (mended, patience) = (Instant::now(), patience * 2);
        }
        Err(format!("{counts:?}"))
    });
    members.send(1, 0, 2);
    members.wait_for(0, 9);
    members.settle();
    for n in (0..sent).filter(|n| n % 20 == 0 || n + 5 > sent) {
        members.wait_for(100 + n, 2);
    }
}

#[test]
fn postgres_without_space() {
    let Some(log) = Postgres::init_on(Some(POSTGRES)) else { return };
    log.run();
    log.wait_until_ready();
    let Some(fleet) = Fleet::on_postgres(log) else { return };
    let Engine::Postgres(log) = &fleet.log else { unreachable!() };
    // PostgreSQL stops if it cannot write its journal.
    let told = ["the log's disk is full", "refused", "does not answer"];
    let anew = || {
        log.kill_all();
        log.run();
        log.wait_until_ready();
    };
    go_through(&fleet, &[log.cluster()], &told, |milter| says(milter, told[0]), anew);
}

#[test]
fn all_nodes_without_space() {
    let Some(fleet) = Fleet::on_nats(|| Cluster::start_on(3, "", Some(NATS))) else { return };
    let Engine::Nats(cluster, ..) = &fleet.log else { unreachable!() };
    let disks: Vec<_> = (0..3).map(|node| cluster.store(node)).collect();
    // A nats-server without space answers so, or turns JetStream off, or its group has no leader because no vote can be written.
    let told = ["the log's disk is full", "its disk was full", "does not answer", "nobody answers"];
    go_through(&fleet, &disks, &told, |_| (0..3).any(|node| is_full(cluster, node)), || cluster.start_anew());
}

/// Two of three nodes continue, and the third catches up when it has space.
#[test]
fn one_node_without_space() {
    let Some(fleet) = Fleet::on_nats(|| Cluster::start_on(3, "", Some(NATS))) else { return };
    let Engine::Nats(cluster, ..) = &fleet.log else { unreachable!() };
    let members = Members::start(&fleet, &["agg1", "agg2"], &["mx1", "mx2"]);
    members.send(0, 0, 3);
    members.wait_for(0, 3);
    let filler = fill(&cluster.store(1));
    let sent = send_until(&members, 100, || is_full(cluster, 1));
    members.send(0, 0, 4);
    members.wait_for(0, 7);
    members.settle();
    fs::remove_file(filler).unwrap();
    // It does not recover automatically; with an empty disk it does.
    cluster.nodes[1].kill();
    for entry in fs::read_dir(cluster.store(1)).unwrap() {
        fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    cluster.start_all();
    cluster.wait_until_well();
    cluster.nodes[0].kill();
    members.send(1, 0, 2);
    members.wait_for(0, 9);
    cluster.start_all();
    for n in (0..sent).filter(|n| n % 20 == 0 || n + 5 > sent) {
        members.wait_for(100 + n, 2);
    }
}
