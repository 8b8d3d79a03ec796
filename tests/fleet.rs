// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet: real milters and aggregators on a real log, and kill -9.

mod common;

use common::fleet::Fleet;
use common::letters::{count, letter, send, wait_for};
use common::milter::{Mail, session};

/// Twenty at one mail server, and the next at another is bulk; status says how the fleet is.
#[test]
fn what_one_saw_the_others_know() {
    let Some(fleet) = Fleet::new() else { return };
    let servers = ["agg1", "agg2"].map(|name| fleet.aggregator(name));
    let _run = servers.each_ref().map(|server| server.start());
    let sites = ["mx1", "mx2", "mx3"].map(|name| fleet.milter(name));
    let [at_a, at_b, _at_c] = sites.each_ref().map(|site| site.start());
    send(&at_a, &letter(1), 20);
    wait_for(&sites[1], &letter(1), 20);
    let answer = session(&at_b).message(&Mail::raw(&letter(1)));
    assert!(answer.verdict().starts_with("bulk; body=21;"), "{}", answer.verdict());
    for site in &sites {
        wait_for(site, &letter(1), 21);
    }
}

/// Aggregators and milters die again and again: nothing is lost, and nothing is counted twice.
#[test]
fn kills_lose_nothing_and_double_nothing() {
    let Some(fleet) = Fleet::new() else { return };
    let servers = ["agg1", "agg2"].map(|name| fleet.aggregator(name));
    let mut runs = servers.each_ref().map(|server| Some(server.start()));
    let sites = ["mx1", "mx2", "mx3"].map(|name| fleet.milter(name));
    let mut milters = sites.each_ref().map(|site| Some(site.start()));
    let mut expected = 0;
    for round in 0..6 {
        for milter in milters.iter().flatten() {
            send(milter, &letter(2), 5);
            expected += 5;
        }
        match round % 3 {
            0 => {
                runs[round / 3].take().unwrap().kill();
                send(milters[0].as_ref().unwrap(), &letter(2), 5);
                expected += 5;
                runs[round / 3] = Some(servers[round / 3].start());
            }
            1 => {
                milters[round / 3].take().unwrap().kill();
                milters[round / 3] = Some(sites[round / 3].start());
            }
            _ => {
                fleet.log.kill_one();
                send(milters[2].as_ref().unwrap(), &letter(2), 5);
                expected += 5;
            }
        }
    }
    for site in &sites {
        wait_for(site, &letter(2), expected);
    }
    // Whoever is new has it by the snapshot and the steps behind it, and nothing changes when all is read again.
    let new = fleet.milter("isp");
    let _new = new.start();
    wait_for(&new, &letter(2), expected);
    assert_eq!(count(&sites[0], &letter(2)), expected);
}
