// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark join`: a site registers by itself, reads, and counts fully once it is approved.

use super::attack::client::Http;
use bulkmark_testing::letters::{count, letter, send, wait_for, wait_for_empty_spool};
use bulkmark_testing::server::{Server, milter, parameters};
use bulkmark_testing::standin::{StandIn, answer};
use bulkmark_testing::{Site, program, wait_until};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A milter without upstream.
fn alone() -> Site {
    milter(&[])
}

fn join(site: &Site, url: &str, more: &[&str]) -> Output {
    let args = ["join", url, "--name", "mx.example.net", "--contact", "postmaster@example.net", "--json"];
    // As in the directory of the configuration.
    let config = site.config();
    let mut command = Command::new(program());
    command.args(args).args(more).arg("--config").arg(config.file_name().unwrap());
    command.current_dir(config.parent().unwrap()).output().unwrap()
}

/// The name under which the site is registered, and its files.
fn joined(site: &Site, server: &Server) -> (String, PathBuf, PathBuf) {
    let output = join(site, &server.url(), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let path = |name: &str| PathBuf::from(told[name].as_str().unwrap());
    (told["name"].as_str().unwrap().to_owned(), path("token-file"), path("piece"))
}

/// The files in the milter's configuration directory.
fn files(site: &Site) -> Vec<String> {
    let names = |path: &Path| -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let directory = site.config().parent().unwrap().to_owned();
    let pieces = names(&site.config().with_extension("d"));
    names(&directory).into_iter().chain(pieces).filter(|name| name.contains("127.0.0.1")).collect()
}

/// A false server's name for the site reaches neither the terminal nor the command that the administrator passes on; and no file stays.
#[test]
fn a_false_server_says_nothing_on_the_terminal() {
    for (name, token) in [
        ("mx\\u001b]0;x\\u0007-1", "t"),
        ("mx; reboot", "t"),
        ("mx-1", "two\\nlines"),
        ("mx-1", ""),
        ("", "t"),
    ] {
        let fields = format!("bulkmark-parameters: {}\r\n", parameters());
        let body = format!("{{\"name\":\"{name}\",\"token\":\"{token}\",\"counts\":true}}");
        let stand_in = StandIn::new(0, move |_| Some(answer("200 OK", &fields, body.as_bytes())));
        let site = alone();
        let output = join(&site, &format!("http://127.0.0.1:{}", stand_in.port), &[]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("expected a client's name and one word"), "{name}: {error}");
        assert!(
            output.stdout.is_empty() && !error.trim_end().contains(|c: char| c.is_control()),
            "{error:?}"
        );
        assert_eq!(files(&site), [""; 0]);
    }
}

/// The reports of all unapproved sites together count at most as one partner's; an approved site has its own share.
#[test]
fn unapproved_sites_weigh_as_much_as_one_partner() {
    let server = Server::new("registration = \"open\"");
    let reader = milter(&[server.entry("reader", "read")]);
    let running = server.start();
    let reads = reader.start();
    let sites = [alone(), alone()];
    let names = sites.each_ref().map(|site| joined(site, &server));
    assert_ne!(names[0].0, names[1].0);
    assert_eq!(names[0].1.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    running.log.wait_for(0, &format!("the site {} registered from 127.0.0.1", names[0].0));
    let daemons = sites.each_ref().map(Site::start);
    for (site, daemon) in sites.iter().zip(&daemons) {
        send(daemon, &letter(1), 20);
        wait_for_empty_spool(site);
    }
    wait_for(&reader, &letter(1), 5);
    let list = server.client(&["list"]);
    assert!(list.contains("\n2 wait for approval: ") && !list.contains("mx.example.net"), "{list}");
    let waiting = server.client(&["list", "--unapproved"]);
    assert!(waiting.lines().nth(1).unwrap().ends_with("postmaster@example.net"), "{waiting}");
    server.client(&["approve", &names[0].0]);
    send(&daemons[0], &letter(1), 20);
    wait_for(&reader, &letter(1), 10);
    let audit = server.client(&["audit"]);
    let line = audit.lines().last().unwrap();
    assert!(line.contains(&format!("{} approved, by ", names[0].0)), "{audit}");
    assert!(line.contains("registered from 127.0.0.1"), "{audit}");
    // The reports of the unapproved sites are withdrawn, those of the approved site are not.
    server.client(&["remove", "--unapproved"]);
    wait_for(&reader, &letter(1), 5);
    daemons[1].log.wait_for(0, "401 Unauthorized: the token is not valid");
    assert!(reads.log.lines().iter().all(|line| !line.contains("panicked")));
}

/// With "approve" a site can read at once; its reports wait at its milter until the operator approves it.
#[test]
fn reports_wait_for_approval() {
    let server = Server::new("registration = \"approve\"");
    let own = milter(&[server.entry("own", "report")]);
    let (_running, others) = (server.start(), own.start());
    let site = alone();
    let (name, ..) = joined(&site, &server);
    let daemon = site.start();
    send(&others, &letter(1), 7);
    wait_for(&site, &letter(1), 7);
    send(&daemon, &letter(1), 2);
    daemon.log.wait_for(0, "403 Forbidden: the server's operator has not approved this client yet");
    assert_eq!(count(&own, &letter(1)), 7);
    server.client(&["approve", "--max-influence", "3", &name]);
    wait_for(&own, &letter(1), 9);
    assert!(server.client(&["list"]).lines().any(|line| line.starts_with(&name)));
    let again = server.try_client(&["approve", &name]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("needs no approval"));
}

/// A site that failed to register keeps its previous files; a registered one does not join a second time.
#[test]
fn a_refused_site_is_as_it_was() {
    let server = Server::new("");
    let running = server.start();
    let site = alone();
    let refused = |site: &Site, text: &str, code: i32| {
        let output = join(site, &server.url(), &[]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains(text) && output.status.code() == Some(code), "{told}");
    };
    refused(&site, "no site may register here by itself", 2);
    drop(running);
    refused(&site, "try again later", 75);
    assert_eq!(files(&site), [""; 0]);
    let mut server = server;
    "registration = \"approve\"".clone_into(&mut server.extra);
    "window = \"2d\"".clone_into(&mut server.ledger);
    fs::remove_file(server.site.path("state/ledger.redb")).unwrap();
    let _running = server.start();
    let output = join(&site, &server.url(), &[]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("window is 172800 at the server and 86400 at the client"), "{told}");
    assert_eq!(files(&site), [""; 0]);
}

/// A token expires: the operator is warned before, the client is refused, and an extension admits it again.
#[test]
fn tokens_end_and_are_extended() {
    let server = Server::new("");
    let token = server.client(&["add", "--own", "mx", "--expires", "90d"]);
    let _running = server.start();
    let ask = || Http::new(server.port, token.trim()).ask("GET /v1/status", "", b"");
    let told: serde_json::Value = serde_json::from_str(&ask().body).unwrap();
    assert!(told["token-expires"].as_u64().is_some(), "{told}");
    assert!(server.client(&["list"]).contains("  expires "));
    server.client(&["set", "mx", "--expires", "0s"]);
    wait_until("a refusal", || {
        let answer = ask();
        if (answer.status, &*answer.error) == (401, "token-invalid") {
            Ok(())
        } else {
            Err(answer.status.to_string())
        }
    });
    assert!(ask().body.contains("has expired") && server.client(&["list"]).contains("  expired "));
    let doctor = Command::new(program())
        .args(["doctor", "--server", "--config"])
        .arg(server.config())
        .output()
        .unwrap();
    let told = String::from_utf8(doctor.stdout).unwrap();
    assert!(told.contains("tokens of 1 expire soon or have expired: mx at "), "{told}");
    server.client(&["set", "mx", "--expires", "never"]);
    assert_eq!(ask().status, 200);
}
