// SPDX-License-Identifier: GPL-3.0-or-later
//! A server's counts move into a fleet, and back: nothing is lost and nothing is counted twice, including reports that milters had not sent
//! or whose answers they had not received.

use bulkmark_counts::Settings;
use bulkmark_ledger::Seed;
use bulkmark_sync::Link;
use bulkmark_sync::log::postgres::Postgres;
use bulkmark_sync::log::{Log as _, Place};
use bulkmark_testing::fleet::Fleet;
use bulkmark_testing::letters::{count, letter, send, wait_for, wait_for_empty_spool};
use bulkmark_testing::members::Members;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, Site, program, wait_until};
use bulkmark_types::FederationKey;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

on_both_logs! {
    a_fleet_begins_with_what_a_server_counted,
}

fn import(config: &Path, from: &Path, more: &[&str]) -> Output {
    Command::new(program())
        .args(["fleet", "import", "--config"])
        .arg(config)
        .arg(from)
        .args(more)
        .output()
        .unwrap()
}

#[track_caller]
fn says(output: &Output, text: &str) {
    let told = [&*output.stdout, &output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains(text), "{told}");
}

/// A partner's milter, whose reports raise no count by more than 3.
fn milter_of_partner(server: &Server) -> Site {
    let (token, file) =
        (server.client(&["add", "--partner", "isp", "--max-influence", "3"]), server.site.path("isp"));
    std::fs::write(&file, token).unwrap();
    milter(&[format!("{{ url = \"{}\", token-file = \"{}\" }}", server.url(), file.display())])
}

fn a_fleet_begins_with_what_a_server_counted(fleet: &Fleet) {
    // mx1 and mx2 report to a server, under their names in the fleet; so does a partner.
    let mut server = Server::new("");
    // Differs from the fleet's, and from that of the server to which all return.
    server.ledger = "capacity = 300000".to_owned();
    let mut sites = ["mx1", "mx2"].map(|name| milter(&[server.entry(name, "report")]));
    let daemon = server.start();
    let running = sites.each_ref().map(Site::start);
    let at_isp = milter_of_partner(&server);
    let isp_runs = at_isp.start();
    send(&isp_runs, &letter(2), 9);
    send(&running[0], &letter(1), 5);
    send(&running[1], &letter(1), 2);
    sites.iter().for_each(|site| {
        wait_for(site, &letter(1), 7);
        wait_for(site, &letter(2), 3);
        wait_for_empty_spool(site);
    });
    // The server counts, but its answer is lost; it receives no later reports.
    daemon.signal("STOP");
    send(&running[0], &letter(1), 3);
    for milter in running {
        milter.kill();
    }
    daemon.signal("CONT");
    wait_until("the server's counts", || {
        let output = Command::new(program())
            .args(["status", "--server", "--json", "--config"])
            .arg(server.config())
            .output();
        let told = String::from_utf8(output.unwrap().stdout).unwrap();
        if told.contains("\"role\":\"server\"") { Ok(()) } else { Err(told) }
    });
    assert!(daemon.terminate().success());
    drop(isp_runs);

    // An aggregator may exist already.
    let aggregator = fleet.aggregator("agg1");
    let config = aggregator.config();
    let from = server.site.path("state");
    says(&import(&config, &from, &["--dry-run"]), "would be put");
    let aggregates = aggregator.start();
    says(&import(&config, &from, &[]), "the counts are in the log: ");
    says(&import(&config, &from, &[]), "the counts are in the log already");
    says(&import(&config, &from, &["--json"]), "{\"bytes\":null,\"imported\":false}");
    for (site, name) in sites.iter_mut().zip(["mx1", "mx2"]) {
        site.extra = fleet.milter(name).extra;
    }
    let members = Members::of(vec![fleet.aggregator("agg2")], sites.into());
    members.wait_for(1, 10);
    members.wait_for(2, 3);
    members.settle();
    members.send(1, 1, 4);
    members.wait_for(1, 14);
    let new = fleet.milter("mx3");
    let new_runs = new.start();
    wait_for(&new, &letter(1), 14);
    wait_for(&new, &letter(2), 3);
    // Another server's counts can no longer be imported.
    let other = Server::new("");
    assert!(other.start().terminate().success());
    let refused = import(&config, &other.site.path("state"), &[]);
    says(&refused, "the fleet has begun already");
    assert_eq!(refused.status.code(), Some(2));
    drop(new_runs);
    back(members, (aggregator, aggregates));
}

/// The number of batches in the log.
fn batches(site: &Site) -> u64 {
    let mut command = Command::new(program());
    let output = command.args(["fleet", "status", "--json", "--config"]).arg(site.config()).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    told["ends"]["batches"].as_u64().unwrap_or_else(|| panic!("{told}"))
}

/// All of them report to a server again, which has the fleet's counts.
fn back(mut members: Members, (aggregator, aggregates): (Server, Daemon)) {
    let sites = std::mem::take(&mut members.sites);
    let [one, two] = [0, 1].map(|n: usize| members.milters[n].take().unwrap());
    assert!(members.aggregators[0].take().unwrap().terminate().success());
    // The fleet counts a batch, and its milter gets no answer; it is unknown whether the other's reports were sent.
    aggregates.signal("STOP");
    let before = batches(&sites[1]);
    send(&one, &letter(1), 2);
    wait_until("a batch in the log", || {
        if batches(&sites[1]) > before { Ok(()) } else { Err(before.to_string()) }
    });
    one.kill();
    send(&two, &letter(1), 1);
    two.kill();
    let server = Server::new("");
    let to = server.site.path("state");
    let export = || {
        let config = aggregator.config();
        let mut command = Command::new(program());
        command.args(["fleet", "export", "--json", "--config"]).arg(config).arg(&to).output().unwrap()
    };
    aggregates.kill();
    says(&export(), "batches wait in the log that nobody has counted");
    let aggregates = aggregator.start();
    wait_until("an aggregator that has counted all", || {
        let mut command = Command::new(program());
        command.args(["fleet", "status", "--server", "--json", "--config"]).arg(aggregator.config());
        let output = command.output().unwrap();
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let done = output.status.success() && told["daemon"]["covers"] == told["ends"]["batches"];
        if done { Ok(()) } else { Err(told.to_string()) }
    });
    assert!(aggregates.terminate().success());
    says(&export(), &format!("{{\"file\":\"{}/ledger.redb\"}}", to.display()));
    let mut verify = Command::new(program());
    verify.args(["ledger", "verify"]).arg(aggregator.site.path("state")).arg(&to);
    says(&verify.output().unwrap(), "all cells of ");
    says(&export(), "already exists");

    let at_isp = milter_of_partner(&server);
    let mut sites = sites;
    for (site, name) in sites.iter_mut().zip(["mx1", "mx2"]) {
        site.extra = milter(&[server.entry(name, "report")]).extra;
    }
    let daemon = server.start();
    let running: Vec<_> = sites.iter().map(Site::start).collect();
    let isp_runs = at_isp.start();
    for site in &sites {
        wait_for(site, &letter(1), 17);
        wait_for_empty_spool(site);
    }
    // The partner's reports in the fleet still use up its influence.
    send(&isp_runs, &letter(2), 9);
    wait_for_empty_spool(&at_isp);
    send(&running[0], &letter(1), 3);
    for site in &sites {
        wait_for(site, &letter(1), 20);
        wait_for(site, &letter(2), 3);
    }
    drop(daemon);
}

/// The import of counts dies between the deciding step and the snapshot with the counts: the fleet waits, logs it, and continues once the
/// move is repeated.
#[test]
fn what_was_begun_is_gone_on_with() {
    let Some(fleet) = Fleet::postgres() else { return };
    let server = Server::new("");
    let site = milter(&[server.entry("mx1", "report")]);
    let (daemon, at_site) = (server.start(), site.start());
    send(&at_site, &letter(3), 6);
    wait_for_empty_spool(&site);
    assert!(at_site.terminate().success() && daemon.terminate().success());
    let from = server.site.path("state");
    let seed = Seed::read(&from, FederationKey::public().id(), Settings::default().window.as_secs()).unwrap();
    let log = Postgres::new(&fleet.settings("agg1"), Arc::new(Link::new("the test"))).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let made = log.ends().await.unwrap().made;
        assert!(log.append_step(Place(0), seed.step(made)).await.unwrap().is_some());
    });
    let members = Members::start(&fleet, &["agg1"], &["mx2"]);
    members.send(0, 3, 2);
    members
        .wait_for_status(0, &["a server's counts are being moved into this log, and are not all there yet"]);
    assert_eq!(count(&members.sites[0], &letter(3)), 2);
    says(&import(&members.servers[0].config(), &from, &[]), "the counts are in the log: ");
    members.wait_for(3, 8);
    members.settle();
}
