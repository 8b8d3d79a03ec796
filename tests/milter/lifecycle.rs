// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon's start and end.

use bulkmark_testing::{Daemon, Site};
use std::net::TcpStream;

/// A crash while the very first ledger is created must leave no file rather than half of one.
#[test]
fn a_kill_at_the_first_start_leaves_no_broken_ledger() {
    for round in 0..25u64 {
        let site = Site::new("");
        let daemon = site.spawn();
        // A start has no event between its steps; so the test tries all moments of its few milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(round));
        daemon.kill();
        assert!(site.start().terminate().success());
    }
}

/// With all connections taken, the daemon must still react to the signal to end.
#[test]
fn sigterm_is_heard_while_all_connections_are_taken() {
    let site = Site::new("max-connections = 2\n");
    let daemon = site.start();
    let idle: Vec<_> = (0..2).map(|_| TcpStream::connect(daemon.tcp()).unwrap()).collect();
    daemon.log.wait_for(0, "as many as max-connections allows");
    assert!(Daemon::terminate(daemon).success());
    drop(idle);
}

/// A daemon that ends removes its sockets, and a second one does not remove those of the first.
#[test]
fn sockets_are_owned_by_one_daemon() {
    let site = Site::unix("");
    let first = site.start();
    let mut other = Site::unix("");
    other.listen = site.listen.clone();
    let second = other.spawn();
    let line = second.log.wait_for(0, "cannot listen on unix:");
    assert!(line.contains("in use"), "{line}");
    assert!(!second.wait().success());
    assert!(first.unix().exists());
    let path = first.unix().to_owned();
    assert!(first.terminate().success());
    assert!(!path.exists() && !site.path("control.sock").exists());
}
