// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon under miltertest(8), which plays the MTA on the wire. Each script in tests/miltertest/ is one course of
//! events, and runs on TCP and on a Unix socket.

use bulkmark_testing::{Daemon, Site, skip};
use std::path::Path;
use std::process::Command;

/// Runs a script against daemons with this configuration.
#[track_caller]
fn run(script: &str, extra: &str) {
    if Command::new("miltertest").arg("-V").output().is_err() {
        return skip("miltertest is missing; run tests/mta/install as root");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/miltertest").join(script);
    for site in [Site::new(extra), Site::unix(extra)] {
        let daemon = site.start();
        let output = Command::new("miltertest")
            .current_dir(script.parent().unwrap())
            .args(["-D", &format!("socket={}", socket(&daemon)), "-s"])
            .arg(&script)
            .output()
            .unwrap();
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        let log = daemon.log.lines().join("\n");
        assert!(output.status.success() && told.contains("passed"), "on {}:\n{told}\n{log}", daemon.address);
    }
}

/// The address in libmilter's notation.
fn socket(daemon: &Daemon) -> String {
    match daemon.address.strip_prefix("inet:") {
        Some(address) => {
            let (host, port) = address.rsplit_once(':').unwrap();
            format!("inet:{port}@{host}")
        }
        None => daemon.address.clone(),
    }
}

#[test]
fn an_mta_that_offers_everything_is_asked_for_what_is_needed() {
    run("negotiate-all.lua", "");
}

#[test]
fn an_mta_of_protocol_version_2_is_served() {
    run("negotiate-version-2.lua", "");
}

#[test]
fn an_mta_that_takes_no_changes_still_has_its_messages_counted() {
    run("negotiate-no-actions.lua", "[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n");
}

#[test]
fn an_ordinary_message_gets_the_header() {
    run("message.lua", "");
}

#[test]
fn a_message_after_an_abort_on_the_same_connection_is_judged_alone() {
    run("abort.lua", "");
}

#[test]
fn rejected_bulk_gets_the_reply() {
    run("reject.lua", "[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n");
}

#[test]
fn tempfailed_bulk_gets_the_reply() {
    run("tempfail.lua", "[thresholds]\nbody = 2\n[actions]\nbulk = \"tempfail\"\n");
}

#[test]
fn discarded_bulk_is_discarded() {
    run("discard.lua", "[thresholds]\nbody = 1\n[actions]\nbulk = \"discard\"\n");
}

#[test]
fn quarantined_bulk_is_quarantined_and_gets_the_header() {
    run("quarantine.lua", "[thresholds]\nbody = 1\n[actions]\nbulk = \"quarantine\"\n");
}

#[test]
fn forged_headers_are_deleted() {
    run("forged.lua", "");
}
