// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark doctor` in a fleet: it asks the log as the daemon would, and names the remedy for each planted fault.

use super::aggregators::with_log;
use super::poison::poison;
use bulkmark_testing::clock::Clock;
use bulkmark_testing::fleet::{Engine, Fleet, MILTERS};
use bulkmark_testing::members::Members;
use bulkmark_testing::{Site, program, status, wait_until};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The findings of doctor about the fleet.
struct Told(Vec<Value>);

impl Told {
    /// Runs doctor on this machine, in this environment.
    fn of(config: &Path, server: bool, environment: &[(String, String)]) -> Self {
        let mut command = Command::new(program());
        command.arg("doctor").args(server.then_some("--server")).args(["--json", "--config"]).arg(config);
        let output = command.envs(environment.iter().cloned()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {told}"));
        let all = all["checks"].as_array().unwrap_or_else(|| panic!("{all}"));
        let ours = ["log of the fleet", "aggregators", "fleet", "clock", "clients", "spool"];
        let is_ours = |finding: &&Value| ours.contains(&finding["check"].as_str().unwrap());
        Self(all.iter().filter(is_ours).cloned().collect())
    }

    fn milter(site: &Site) -> Self {
        Self::of(&site.config(), false, &[])
    }

    /// Checks that there is such a finding, with this remedy.
    #[track_caller]
    fn has(&self, check: &str, level: &str, text: &str, advice: &str) {
        let is_it = |finding: &&Value| {
            let has = |name: &str, part: &str| finding[name].as_str().unwrap_or_default().contains(part);
            finding["check"] == check
                && finding["level"] == level
                && has("text", text)
                && has("advice", advice)
        };
        assert!(self.0.iter().any(|finding| is_it(&finding)), "{check} {level} {text:?}: {:#?}", self.0);
    }

    #[track_caller]
    fn all_ok(&self) {
        assert!(self.0.iter().all(|finding| finding["level"] == "ok"), "{:#?}", self.0);
        self.has("log of the fleet", "ok", "answers, lets this machine in, and is set up", "");
        self.has("log of the fleet", "ok", "of our key and windows", "");
        self.has("aggregators", "ok", "all that was reported is counted", "");
        self.has("clock", "ok", "from that of the log", "");
        self.has("fleet", "ok", "the daemon is in step with the log", "");
    }
}

fn start(fleet: &Fleet) -> Members {
    let members = Members::start(fleet, &["agg1"], &["mx1"]);
    members.send(0, 1, 2);
    members.settle();
    wait_until("no error", || {
        let status = status(&members.sites[0]);
        if status["links"][0]["error"].is_null() { Ok(()) } else { Err(status.to_string()) }
    });
    members
}

fn nobody_counts(fleet: &Fleet, members: &mut Members) {
    members.aggregators[0].take().unwrap().kill();
    // Until an aggregator corrects it, a false step covers all future reports.
    let beyond = |step: &mut bulkmark_counts::Step| step.head.covers = 1 << 62;
    with_log(fleet, "agg2", async |log| poison(&log, beyond).await, async |log| poison(&log, beyond).await);
    let told = Told::milter(&members.sites[0]);
    told.has(
        "aggregators",
        "error",
        "batches up to place 4611686018427387904, and the log ends at place",
        "poisoned-chain",
    );
    members.aggregators[0] = Some(members.servers[0].start());
    members.send(0, 1, 1);
    members.settle();
    members.aggregators[0].take().unwrap().kill();
    members.send(0, 1, 1);
    wait_until("a batch in the log", || {
        let told = Told::milter(&members.sites[0]);
        let waits =
            told.0.iter().any(|finding| finding["check"] == "aggregators" && finding["level"] == "error");
        if waits { Ok(()) } else { Err(format!("{:?}", told.0)) }
    });
    let told = Told::milter(&members.sites[0]);
    told.has("aggregators", "error", "nobody counted them", "systemctl start bulkmark-server");
    members.aggregators[0] = Some(members.servers[0].start());
    members.settle();
}

#[test]
fn the_log_is_asked_as_the_daemon_would() {
    let Some(fleet) = Fleet::postgres() else { return };
    let mut members = start(&fleet);
    Told::milter(&members.sites[0]).all_ok();
    Told::of(&members.servers[0].config(), true, &[]).all_ok();
    fleet.sql("grant execute on function lo_create(oid) to public").unwrap();
    let told = Told::milter(&members.sites[0]);
    told.has(
        "log of the fleet",
        "warning",
        "1 rights by which they can fill the disk or delay the others, such as lo_create",
        "superuser",
    );
    nobody_counts(&fleet, &mut members);

    let mut site = fleet.milter("mx2");
    let right = fs::read_to_string(fleet.path("mx2")).unwrap();
    fs::write(fleet.path("mx2"), "another").unwrap();
    let told = Told::milter(&site);
    told.has("log of the fleet", "error", "password authentication failed", "is it in the file of members");
    fs::write(fleet.path("mx2"), right).unwrap();
    if let Some(_clock) = Clock::of(&mut site, "+2d") {
        let told = Told::of(&site.config(), false, &site.environment);
        told.has("clock", "error", "this machine's is 2 days ahead of the log's", "timedatectl");
    }
    let key = site.path("key");
    fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    site.extra += &format!("[ledger]\nfederation-key-file = \"{}\"\n", key.display());
    let told = Told::milter(&site);
    told.has("log of the fleet", "error", "the fleet counts under the key", "federation-key-file");

    fleet.sql("drop schema bulkmark cascade").unwrap();
    let told = Told::milter(&members.sites[0]);
    told.has("log of the fleet", "error", "bulkmark fleet setup makes it", "bulkmark fleet setup");
    fleet.kill_log();
    let told = Told::milter(&members.sites[0]);
    told.has("log of the fleet", "error", "postgres://", "is it running");
}

#[test]
fn on_nats_the_log_is_asked_as_the_daemon_would() {
    let Some(fleet) = Fleet::nats() else { return };
    let mut members = start(&fleet);
    Told::milter(&members.sites[0]).all_ok();
    Told::of(&members.servers[0].config(), true, &[]).all_ok();
    nobody_counts(&fleet, &mut members);
    let Engine::Nats(cluster, ..) = &fleet.log else { unreachable!() };
    // A key that belongs to no member.
    let key = fleet.path("stranger");
    assert!(Command::new(program()).args(["fleet", "key"]).arg(&key).output().unwrap().status.success());
    let mut site = fleet.milter(MILTERS[1]);
    site.extra =
        site.extra.replace(&fleet.path(MILTERS[1]).display().to_string(), &key.display().to_string());
    let told = Told::milter(&site);
    told.has("log of the fleet", "error", "does not let this account in", "is it in the file of members");
    cluster.kill_all();
    let told = Told::milter(&members.sites[0]);
    told.has("log of the fleet", "error", "nats://", "is it running");
}
