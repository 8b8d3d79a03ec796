// SPDX-License-Identifier: GPL-3.0-or-later
//! `capacity` is raised on one machine of a federation after the other, as docs/federation.md describes: no service stops, no count is
//! lost.

use bulkmark_testing::clock::Clock;
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::server::{Server, milter, wait_until_equal};
use bulkmark_testing::{Site, program};
use std::collections::BTreeSet;
use std::process::Command;

/// The sizes of a daemon's filters, by the beginning of their windows.
fn sizes(site: &Site, config: &std::path::Path, more: &[&str]) -> BTreeSet<(u64, u64)> {
    let arguments = [&["status", "--json"], more, &["--config"]].concat();
    let mut command = Command::new(program());
    let output = command.args(arguments).arg(config).envs(site.environment.iter().cloned()).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let slices = status["ledger"]["slices"].as_array().unwrap().iter();
    slices.map(|slice| (slice["window"].as_u64().unwrap(), slice["capacity"].as_u64().unwrap())).collect()
}

fn capacities(sizes: &BTreeSet<(u64, u64)>) -> Vec<u64> {
    sizes.iter().map(|&(_, capacity)| capacity).collect()
}

/// The operator who raised it learns from when on it applies.
fn is_told_from_when_on_it_holds(server: &Server) {
    let told = "capacity = 3000000 holds from the window of ";
    for command in [["status", "--server"], ["doctor", "--server"]] {
        let mut asked = Command::new(program());
        asked
            .args(command)
            .arg("--config")
            .arg(server.config())
            .envs(server.site.environment.iter().cloned());
        let text = String::from_utf8(asked.output().unwrap().stdout).unwrap();
        assert!(
            text.contains(told) && text.contains("the present one is made for 1000000"),
            "{command:?}: {text}"
        );
    }
}

/// Two servers with a milter each: first one server has the new capacity, then both, while the milters have the old one.
#[test]
fn capacity_is_raised_at_one_server_after_the_other() {
    let [mut one, mut two] = Server::peers("anonymous-reading = true");
    let mut sites = [milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")])];
    // All clocks agree: first on today, then on tomorrow.
    let mut clocks = Vec::new();
    for site in [&mut one.site, &mut two.site].into_iter().chain(&mut sites) {
        let Some(clock) = Clock::of(site, "+0") else { return };
        clocks.push(clock);
    }
    let [a, b] = sites;
    let (at_one, _at_two) = (one.start(), two.start());
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(1), 3);
    send(&at_b, &letter(1), 2);
    wait_for(&a, &letter(1), 5);

    one.ledger = "capacity = 3000000".to_owned();
    // Killed, so that it does not write the size of its window at shutdown.
    at_one.kill();
    let at_one = one.start();
    send(&at_a, &letter(1), 3);
    send(&at_b, &letter(1), 2);
    for site in [&a, &b] {
        wait_for(site, &letter(1), 10);
    }
    assert_eq!(
        capacities(&sizes(&one.site, &one.config(), &["--server"])),
        [1_000_000],
        "what began keeps its size"
    );
    is_told_from_when_on_it_holds(&one);

    // The next day begins: one server makes its window in the new size, the other in the old one.
    let day_of = |clock: &str| clocks.iter().for_each(|each| each.set(clock));
    day_of("+1d");
    send(&at_a, &letter(1), 4);
    send(&at_b, &letter(1), 1);
    for site in [&a, &b] {
        wait_for(site, &letter(1), 15);
        let sizes = sizes(site, &site.config(), &[]);
        assert_eq!(capacities(&sizes), [1_000_000, 1_000_000, 3_000_000], "{sizes:?}");
    }
    wait_until_equal(&one, &two, 2);

    two.ledger.clone_from(&one.ledger);
    drop(_at_two);
    let _at_two = two.start();
    day_of("+2d");
    send(&at_a, &letter(1), 1);
    send(&at_b, &letter(1), 1);
    for site in [&a, &b] {
        wait_for(site, &letter(1), 17);
        let sizes = sizes(site, &site.config(), &[]);
        let newest = sizes.last().unwrap().0;
        let newest: Vec<_> = sizes.iter().filter(|(window, _)| *window == newest).collect();
        assert_eq!(newest.len(), 1, "{sizes:?}");
        assert_eq!(newest[0].1, 3_000_000);
    }
    // All counts survive a restart, and a newcomer takes them over as a snapshot.
    assert!(at_one.terminate().success());
    let _at_one = one.start();
    let mut late = milter(&[one.entry("late", "read")]);
    late.environment.clone_from(&a.environment);
    let _at_late = late.start();
    wait_for(&late, &letter(1), 17);
    wait_until_equal(&one, &two, 3);
}
