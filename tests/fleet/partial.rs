// SPDX-License-Identifier: GPL-3.0-or-later
//! Milters of a fleet with a partial copy beside those with a full one: real daemons, a real log, and kill -9.

use bulkmark_testing::fleet::Fleet;
use bulkmark_testing::held::{answer_of, from, held, lonely, wait_for_held};
use bulkmark_testing::holders::verify;
use bulkmark_testing::letters::{letter, send};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::networks::strangers;
use bulkmark_testing::server::Server;
use bulkmark_testing::{Site, program, status, wait_until};
use std::process::Command;

on_both_logs! {
    bulk_is_held_and_the_rest_is_not,
}

/// A milter with a partial copy that asks these servers for other counts.
fn partial(fleet: &Fleet, name: &str, ask: &[String]) -> Site {
    let mut site = fleet.milter(name);
    let ask = format!("aggregators = [{}]\n[sync]\ncopy = \"partial\"\n", ask.join(", "));
    site.extra = site.extra.replace("[sync]\n", &ask);
    site
}

/// Waits until all reports of these sites are in steps, and all of them have these steps.
fn settle(sites: &[&Site]) {
    for site in sites {
        wait_until("an empty spool", || {
            let status = status(site);
            let done = status["ledger"]["spool"] == 0 && status["fleet"]["in-step"] == true;
            if done { Ok(()) } else { Err(status.to_string()) }
        });
    }
}

/// Waits until steps list bulk for a milter: the first reports of a milter with a partial copy request that.
fn wait_until_told(site: &Site) {
    wait_until("bulk that is separate", || {
        let status = status(site);
        if status["ledger"]["bulk"]["bound"] == 10 { Ok(()) } else { Err(status.to_string()) }
    });
}

/// A milter with a partial copy holds bulk, both one that was there from the beginning, through kills, and one that starts late from a
/// snapshot.
fn bulk_is_held_and_the_rest_is_not(fleet: &Fleet) {
    let servers = ["agg1", "agg2"].map(|name| fleet.aggregator(name));
    let mut aggregators = servers.each_ref().map(|server| Some(server.start()));
    let (full, partial, late) = (fleet.milter("mx1"), partial(fleet, "mx2", &[]), partial(fleet, "mx3", &[]));
    let (at_full, mut at_partial) = (full.start(), Some(partial.start()));
    at_partial.as_ref().unwrap().log.wait_for(0, "the steps do not tell bulk from the count 10 on yet");
    send(at_partial.as_ref().unwrap(), &letter(9), 1);
    wait_until_told(&partial);
    let letters = [letter(1), lonely(), letter(3)];
    for (letter, times) in letters.iter().zip([30, 9, 10]) {
        send(&at_full, letter, times);
    }
    settle(&[&full, &partial]);
    assert_eq!(letters.each_ref().map(|letter| held(&full, letter)), [30, 9, 10]);
    assert_eq!(letters.each_ref().map(|letter| held(&partial, letter)), [30, 0, 10]);
    // Each of them dies while the reporting milters go on.
    for round in 0..3 {
        send(&at_full, &letter(4), 7);
        send(at_partial.as_ref().unwrap(), &letter(4), 5);
        match round {
            0 => aggregators[0].take().unwrap().kill(),
            1 => {
                at_partial.take().unwrap().kill();
                at_partial = Some(partial.start());
            }
            _ => {
                aggregators[1].take().unwrap().kill();
                aggregators[0] = Some(servers[0].start());
            }
        }
    }
    wait_for_held(&full, &letter(4), 36);
    wait_for_held(&partial, &letter(4), 36);
    settle(&[&full, &partial]);
    let cells = |site: &Site| status(site)["ledger"]["slices"].as_array().map(Vec::len);
    assert_eq!(
        (cells(&full), cells(&partial)),
        (Some(1), Some(0)),
        "a milter with a partial copy holds no cells"
    );
    // Below ten, no count is shown.
    let verdict =
        |n: usize| session(at_partial.as_ref().unwrap()).message(&Mail::raw(&letters[n])).header().to_owned();
    let bulk = verdict(0);
    assert!(bulk.starts_with("bulk; body=31; ") && bulk.contains("; sources=unknown"), "{bulk}");
    assert_eq!(verdict(1), "clean; body=1+; near=1+; threshold=20; host=mx.test");
    wait_for_held(&partial, &letters[1], 10);
    let at_late = late.start();
    for (letter, expected) in letters.iter().zip([31, 10, 10]) {
        wait_for_held(&late, letter, expected);
    }
    assert_eq!(cells(&late), Some(0));
    drop(at_late);
    // The commands for ledger files show their contents, though the file does not name its kind of copy.
    assert!(at_partial.take().unwrap().terminate().success());
    send(&at_full, &letter(20), 1);
    settle(&[&full]);
    wait_until_alike(&servers[0], &full);
    for daemon in [aggregators[0].take().unwrap(), at_full] {
        assert!(daemon.terminate().success());
    }
    let output = verify([&full, &servers[0].site].into_iter()).unwrap();
    assert!(output.contains("all cells of 1 window are equal"), "{output}");
}

/// A milter's `sync.copy` may change both ways: it starts over from the log's snapshot, or from its steps.
#[test]
fn what_is_held_may_change() {
    let Some(fleet) = Fleet::postgres() else { return };
    let aggregator = fleet.aggregator("agg1");
    let _aggregator = aggregator.start();
    let (mut full, first) = (fleet.milter("mx1"), partial(&fleet, "mx2", &[]));
    let (daemon, at_first) = (full.start(), first.start());
    send(&at_first, &letter(9), 1);
    wait_until_told(&first);
    send(&daemon, &letter(5), 14);
    send(&daemon, &letter(6), 3);
    settle(&[&full, &first]);
    assert!(daemon.terminate().success());
    full.extra = full.extra.replace("[sync]\n", "[sync]\ncopy = \"partial\"\n");
    let daemon = full.start();
    wait_for_held(&full, &letter(5), 14);
    assert_eq!((held(&full, &letter(6)), held(&first, &letter(5))), (0, 14));
    send(&daemon, &letter(5), 2);
    wait_for_held(&first, &letter(5), 16);
    assert!(daemon.terminate().success());
    full.extra = full.extra.replace("copy = \"partial\"\n", "");
    let _daemon = full.start();
    wait_for_held(&full, &letter(6), 3);
    wait_for_held(&full, &letter(5), 16);
}

/// The number of steps that an aggregator has counted.
fn steps_at(server: &Server) -> serde_json::Value {
    let output = Command::new(program())
        .args(["status", "--server", "--json", "--config"])
        .arg(server.config())
        .output()
        .unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    status["fleet"]["version"].clone()
}

/// Waits until an aggregator and a milter have counted the same steps.
fn wait_until_alike(server: &Server, site: &Site) {
    wait_until("the aggregator", || {
        let (theirs, ours) = (steps_at(server), status(site)["fleet"]["version"].clone());
        if theirs == ours { Ok(()) } else { Err(format!("{theirs} {ours}")) }
    });
}

/// A milter with a partial copy that may ask an aggregator refuses a mailing from many networks at the same copy as one with a full copy.
/// While the aggregator does not answer, it only marks the mailing, and mail flows.
#[test]
fn refusals_are_those_of_a_full_milter() {
    let Some(fleet) = Fleet::postgres() else { return };
    let server = fleet.aggregator("agg1");
    let entry = server.entry("mx2", "read");
    let aggregator = server.start();
    let refusing = |mut site: Site| {
        site.extra += "[actions]\nbulk = \"reject\"\nnear = \"reject\"\n";
        site
    };
    let (full, partial) = (refusing(fleet.milter("mx1")), refusing(partial(&fleet, "mx2", &[entry])));
    let (at_full, at_partial) = (full.start(), partial.start());
    send(&at_partial, &letter(9), 1);
    wait_until_told(&partial);
    let settle_all = || {
        settle(&[&full, &partial]);
        wait_until_alike(&server, &partial);
    };
    let hosts = strangers(20, |n| format!("198.51.{n}.7"));
    for (n, host) in hosts.iter().enumerate() {
        let reply = from(if n % 2 == 0 { &at_full } else { &at_partial }, host, &letter(14)).reply;
        settle_all();
        assert_eq!(reply == "c", n < 19, "copy {}: {reply}", n + 1);
    }
    let refused = [&at_full, &at_partial].map(|daemon| from(daemon, &hosts[0], &letter(14)).reply);
    assert!(refused.iter().all(|reply| reply.starts_with("550 ")), "{refused:?}");
    settle_all();
    // An answer is cached for a second.
    wait_until("the same of both", || {
        let [ours, theirs] = [&full, &partial].map(|site| answer_of(site, "check", &letter(14)));
        if ours == theirs { Ok(()) } else { Err(format!("{ours} {theirs}")) }
    });
    aggregator.signal("STOP");
    let marked = from(&at_partial, "203.0.113.9", &letter(14));
    assert!(marked.header().ends_with("; sources=unknown; held=sources"), "{}", marked.header());
    at_partial.log.wait_for(0, "counts below 10 are not known for 5 s");
    aggregator.signal("CONT");
}
