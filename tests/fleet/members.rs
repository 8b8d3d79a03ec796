// SPDX-License-Identifier: GPL-3.0-or-later
//! An aggregator's knowledge of all members of its fleet, and of their mailings: real daemons, a real log, and kill -9.

use super::aggregators::with_log;
use bulkmark_sync::log::Log as _;
use bulkmark_testing::fleet::{Fleet, MILTERS};
use bulkmark_testing::letters::{letter, send};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::page::{STATUS, get, metrics};
use bulkmark_testing::server::Server;
use bulkmark_testing::{Daemon, Site, program, wait_until};
use serde_json::Value;
use std::process::Command;

on_both_logs! {
    an_aggregator_knows_how_all_members_are,
    a_member_may_name_any_time,
}

/// A member may name any time for the last message of its mailings.
fn a_member_may_name_any_time(fleet: &Fleet) {
    let word = |last: u64| {
        let mailing = serde_json::json!({
            "signature": "00".repeat(16), "count": 30, "messages": 1, "recipients": 1, "first": last, "last": last
        });
        let word = serde_json::json!({
            "form": 1, "role": "milter", "program": "0.1.0", "step": 1, "epoch": u64::MAX, "every": 600, "in-step": true,
            "lag-seconds": last, "waiting-seconds": last, "uncovered": last, "mailings": [mailing]
        });
        serde_json::to_vec(&word).unwrap()
    };
    let server = fleet.aggregator("agg1");
    let _aggregator = server.start();
    for (member, last) in [("isp", 253_402_300_800), ("mx8", u64::MAX)] {
        let told = word(last);
        with_log(
            fleet,
            member,
            async |log| log.publish_state(told.clone()).await.unwrap(),
            async |log| log.publish_state(told.clone()).await.unwrap(),
        );
        for arguments in [
            &["fleet", "status", "--server"][..],
            &["status", "--server"],
            &["fleet", "status", "--server", "--json"],
        ] {
            let mut command = Command::new(program());
            let output = command.args(arguments).arg("--config").arg(server.config()).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!told.contains("panicked"), "{arguments:?}: {told}");
            assert!(!output.stdout.is_empty(), "{arguments:?}: {told}");
        }
        let output = Command::new(program())
            .args(["fleet", "status", "--server", "--config"])
            .arg(server.config())
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.contains("the last at 9999-12-31T23:59:59Z"), "{shown}");
    }
}

/// A milter with these additional keys in `[fleet]` and `[status]`.
fn milter(fleet: &Fleet, name: &str, keys: &str, page: &str) -> Site {
    let mut site = fleet.milter(name);
    site.extra = site.extra.replace("[sync]\n", &format!("{keys}[sync]\n"));
    site.extra += &format!("{STATUS}{page}");
    site
}

/// The fleet on the aggregator's page.
fn on_page(daemon: &Daemon) -> Value {
    let (_, body) = get(daemon, "/status.json");
    serde_json::from_str::<Value>(&body).unwrap()["status"]["daemon"]["fleet"].clone()
}

/// The output of `bulkmark fleet status --json` on a machine.
fn command(arguments: &[&str], config: &std::path::Path) -> Value {
    let output = Command::new(program())
        .args(["fleet", "status", "--json"])
        .args(arguments)
        .arg("--config")
        .arg(config)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn state<'a>(found: &'a Value, name: &str) -> &'a Value {
    let members = found["members"].as_array().into_iter().flatten();
    members.into_iter().find(|member| member["name"] == name).unwrap_or(&Value::Null)
}

/// Waits until this holds both on the page and in the command's output.
fn wait_for(what: &str, aggregator: (&Server, &Daemon), holds: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    wait_until(what, || {
        for found in [on_page(aggregator.1), command(&["--server"], &aggregator.0.config())] {
            if !holds(&found) {
                return Err(found.to_string());
            }
            last = found;
        }
        Ok(())
    });
    last
}

fn an_aggregator_knows_how_all_members_are(fleet: &Fleet) {
    let mut server = fleet.aggregator("agg1");
    server.status = "listen = \"127.0.0.1:0\"".to_owned();
    let agg = server.start();
    let (quiet, mut open) = (milter(fleet, "mx1", "", ""), milter(fleet, "mx2", "mailings = true\n", ""));
    let private = open.path("private");
    std::fs::write(&private, "sender board@club.test\n").unwrap();
    open.extra = open.extra.replace("[sync]\n", &format!("[sync]\nprivate = [\"{}\"]\n", private.display()));
    let (at_quiet, at_open) = (quiet.start(), open.start());
    let found = wait_for("all three to be well", (&server, &agg), |found| {
        ["mx1", "mx2", "agg1"].iter().all(|name| state(found, name)["state"] == "well")
    });
    for (name, role) in [("mx1", "milter"), ("mx2", "milter"), ("agg1", "aggregator")] {
        let member = state(&found, name);
        assert_eq!((&member["role"], &member["program"]), (&role.into(), &env!("CARGO_PKG_VERSION").into()));
    }
    // A member that never sent a state report is listed too.
    let states = [("milter", "well", 2), ("aggregator", "well", 1), ("milter", "silent", 0)];
    let absent = [("milter", "absent", MILTERS.len() - 2), ("aggregator", "absent", 1)];
    wait_until("the numbers of members", || {
        let counted = metrics(&agg);
        let is_so = |&(role, state, expected): &(&str, &str, usize)| {
            let name = format!("bulkmark_fleet_members{{role=\"{role}\",state=\"{state}\"}}");
            counted[&name] as usize == expected
        };
        if states.iter().chain(&absent).all(is_so) { Ok(()) } else { Err(format!("{counted:?}")) }
    });
    for (name, role) in [("mx3", "milter"), ("agg2", "aggregator")] {
        let member = state(&found, name);
        assert_eq!((&member["state"], &member["role"]), (&"absent".into(), &role.into()), "{found}");
    }

    // Both see bulk, and one of them reports it; no subject is reported, and no mailing that is private.
    let mut client = session(&at_open);
    for _ in 0..25 {
        let (sender, of) = ("board@club.test".to_owned(), Mail::raw(&letter(3)));
        assert!(client.message(&Mail { sender, ..of }).count().is_some());
    }
    send(&at_quiet, &letter(1), 25);
    send(&at_open, &letter(2), 25);
    let has = |found: &Value, count: usize| {
        found["mailings"].as_array().is_some_and(|mailings| mailings.len() == count)
    };
    let found = wait_for("a mailing", (&server, &agg), |found| has(found, 1));
    let mailing = &found["mailings"][0];
    assert_eq!((&mailing["members"], &mailing["subject"]), (&serde_json::json!(["mx2"]), &Value::Null));
    assert!(mailing["count"].as_u64().unwrap() >= 20, "{mailing}");

    // A subject is reported if the page may show it.
    assert!(at_open.terminate().success());
    open.extra += "show = [\"subjects\"]\n";
    let at_open = open.start();
    send(&at_open, &letter(2), 1);
    wait_for("a subject", (&server, &agg), |found| found["mailings"][0]["subject"].is_string());

    // The member that died is silent, and the others are not.
    at_quiet.kill();
    wait_for("a silent member", (&server, &agg), |found| {
        state(found, "mx1")["state"] == "silent" && state(found, "mx2")["state"] == "well"
    });
    let output = Command::new(program())
        .args(["fleet", "status", "--server", "--config"])
        .arg(server.config())
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(text.contains("  mx1 (milter, ") && text.contains("): SILENT; step "), "{text}");
    assert!(text.contains("  agg2 (aggregator): ABSENT; not heard for an hour, or never"), "{text}");

    // A milter learns nothing about other members.
    assert_eq!(command(&[], &open.config())["members"], Value::Null);
}
