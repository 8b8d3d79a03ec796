// SPDX-License-Identifier: GPL-3.0-or-later
//! Servers that were apart for long, or were restored from an old copy and counted before they reached a peer: they converge automatically,
//! and no count that a server still has is lost.

use bulkmark_testing::clock::Clock;
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::server::{Server, milter, wait_until_equal};
use bulkmark_testing::{Daemon, Site, status, wait_until};

const NO_WORD: &str = "since the start, who may know that this ledger is an old copy";

/// Waits until the site's server has counted all reports of the site.
fn wait_until_told(site: &Site) {
    wait_until("its server", || {
        let spool = status(site)["ledger"]["spool"].clone();
        if spool == 0 { Ok(()) } else { Err(spool.to_string()) }
    });
}

/// Checks that no log asks the operator to act.
fn nothing_is_asked(daemons: [&Daemon; 2]) {
    for line in daemons.iter().flat_map(|daemon| daemon.log.lines()) {
        for word in ["state directory", "another history", "would count twice"] {
            assert!(!line.contains(word), "{line}");
        }
    }
}

/// A server is restored from an old copy while its peer is away, counts, is killed, and counts again. Both the peer's older counts and the
/// new ones are counted exactly once.
#[test]
fn a_restored_server_that_counts_before_it_hears_of_its_peer() {
    let [one, two] = Server::peers("anonymous-reading = true");
    let (one_runs, two_runs) = (one.start(), two.start());
    let (a, b) = (milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(1), 5);
    wait_for(&b, &letter(1), 5);
    assert!(one_runs.terminate().success());
    let (file, copy) = (one.site.path("state/ledger.redb"), one.site.path("backup"));
    std::fs::copy(&file, &copy).unwrap();
    let one_runs = one.start();
    send(&at_a, &letter(1), 6);
    send(&at_b, &letter(1), 2);
    wait_for(&b, &letter(1), 13);
    wait_for(&a, &letter(1), 13);
    two_runs.kill();
    one_runs.kill();

    std::fs::copy(&copy, &file).unwrap();
    let one_runs = one.start();
    one_runs.log.wait_for(0, NO_WORD);
    // Its milter keeps its counts, and goes on.
    send(&at_a, &letter(1), 4);
    wait_for(&a, &letter(1), 17);
    wait_until_told(&a);
    one_runs.kill();
    let one_runs = one.start();
    send(&at_a, &letter(1), 1);
    one_runs.log.wait_for(0, NO_WORD);
    wait_for(&a, &letter(1), 18);

    let two_runs = two.start();
    for site in [&a, &b] {
        wait_for(site, &letter(1), 18);
    }
    wait_until_equal(&one, &two, 1);
    nothing_is_asked([&one_runs, &two_runs]);
}

/// Each server counts and writes checkpoints while the other is away, for much longer than `keep-updates`.
#[test]
fn servers_that_were_apart_for_longer_than_updates_are_kept() {
    let mut servers = Server::peers("anonymous-reading = true");
    servers
        .iter_mut()
        .for_each(|server| "keep-updates = \"1s\"\ninterval = \"50ms\"".clone_into(&mut server.sync));
    let [one, two] = servers;
    let (one_runs, two_runs) = (one.start(), two.start());
    let (a, b) = (milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(2), 3);
    send(&at_b, &letter(2), 1);
    wait_for(&a, &letter(2), 4);
    wait_for(&b, &letter(2), 4);

    two_runs.kill();
    send(&at_a, &letter(2), 4);
    wait_for(&a, &letter(2), 8);
    one.report_until_checkpoint("many");
    one_runs.kill();
    let two_runs = two.start();
    two_runs.log.wait_for(0, NO_WORD);
    send(&at_b, &letter(2), 5);
    wait_for(&b, &letter(2), 9);
    two.report_until_checkpoint("many");

    let one_runs = one.start();
    for site in [&a, &b] {
        wait_for(site, &letter(2), 13);
    }
    wait_until_equal(&one, &two, 1);
    nothing_is_asked([&one_runs, &two_runs]);
}

/// One server is away until everything that it missed has expired. It skips those updates, and both are equal.
#[test]
fn a_server_that_was_away_for_longer_than_anything_counts() {
    let [mut one, mut two] = Server::peers("anonymous-reading = true");
    let (mut a, mut b) = (milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    let sites = [&mut one.site, &mut two.site, &mut a, &mut b];
    let clocks: Vec<_> = sites.into_iter().filter_map(|site| Clock::of(site, "+0")).collect();
    if clocks.len() < 4 {
        return;
    }
    let (one_runs, two_runs) = (one.start(), two.start());
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(3), 3);
    wait_for(&b, &letter(3), 3);
    two_runs.kill();
    for expected in 4..8 {
        send(&at_a, &letter(3), 1);
        wait_for(&a, &letter(3), expected);
    }
    wait_until_told(&a);
    clocks.iter().for_each(|clock| clock.set("+9d"));
    one.report_until_checkpoint("many");

    let two_runs = two.start();
    two_runs.log.wait_for(0, "were missed while it was away; all that they counted is over");
    send(&at_b, &letter(3), 2);
    send(&at_a, &letter(3), 1);
    for site in [&a, &b] {
        wait_for(site, &letter(3), 3);
    }
    wait_until_equal(&one, &two, 1);
    nothing_is_asked([&one_runs, &two_runs]);
}
