// SPDX-License-Identifier: GPL-3.0-or-later
//! TLS between servers and milters: whom is trusted, and certificates that change while connections go on.

use bulkmark_testing::authority::{Authority, https, tls_server};
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::server::milter;
use std::fs;

/// A reload takes a new certificate for new connections, and those that are there go on.
#[test]
fn a_certificate_changes_while_connections_go_on() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let server = tls_server();
    old.certify(&server, "127.0.0.1", false);
    let daemon = server.start();
    let before = milter(&[old.entry(&server, &https(&server), "before")]);
    let at_before = before.start();
    send(&at_before, &letter(1), 3);
    let watcher = milter(&[old.entry(&server, &https(&server), "watcher")]);
    let at_watcher = watcher.start();
    wait_for(&watcher, &letter(1), 3);

    new.certify(&server, "127.0.0.1", false);
    assert!(daemon.reload().contains("certificate and key were read again"), "{:?}", daemon.log.lines());
    let after = milter(&[new.entry(&server, &https(&server), "after")]);
    let at_after = after.start();
    send(&at_after, &letter(1), 4);
    // The watcher trusts the old authority only: what it hears comes over its old connection.
    wait_for(&watcher, &letter(1), 7);
    wait_for(&after, &letter(1), 7);
    assert!(
        !at_watcher.log.lines().iter().any(|line| line.contains("certificate")),
        "{:?}",
        at_watcher.log.lines()
    );

    fs::write(server.site.path("key.pem"), "no key").unwrap();
    let told = daemon.reload();
    assert!(told.contains("key.pem: ") && told.contains("the old certificate stays in force"), "{told}");
    let still = milter(&[new.entry(&server, &https(&server), "still")]);
    let _at_still = still.start();
    wait_for(&still, &letter(1), 7);
}

/// Whoever cannot be trusted is not told anything; the milter says why, and counts for itself.
#[test]
fn who_is_not_trusted_is_told() {
    let (ours, strange) = (Authority::new("ours"), Authority::new("strange"));
    let cases = [
        ("an unknown authority", "127.0.0.1", false, "UnknownIssuer"),
        ("a certificate that is over", "127.0.0.1", true, "certificate expired"),
        ("a certificate for another name", "other.example.org", false, "not valid for name"),
    ];
    for (what, name, expired, told) in cases {
        let server = tls_server();
        let issuer = if told == "UnknownIssuer" { &strange } else { &ours };
        issuer.certify(&server, name, expired);
        let _daemon = server.start();
        let site = milter(&[ours.entry(&server, &https(&server), "mx")]);
        let daemon = site.start();
        let line = daemon.log.wait_for(0, &https(&server));
        assert!(line.contains(told), "{what}: {line}");
        send(&daemon, &letter(1), 2);
        wait_for(&site, &letter(1), 2);
    }
}

/// HTTP where the server speaks TLS: both sides go on, and the milter says what came.
#[test]
fn plain_http_to_tls_is_refused() {
    let authority = Authority::new("ours");
    let server = tls_server();
    authority.certify(&server, "127.0.0.1", false);
    let _daemon = server.start();
    let site = milter(&[server.entry("mx", "report")]);
    let daemon = site.start();
    daemon.log.wait_for(0, &format!("{}: the connection broke: ", server.url()));
    send(&daemon, &letter(1), 2);
    wait_for(&site, &letter(1), 2);
}

/// What cannot be used ends the server at its start, with the file's name.
#[test]
fn a_server_without_a_key_does_not_start() {
    let server = tls_server();
    Authority::new("ours").certify(&server, "127.0.0.1", false);
    fs::remove_file(server.site.path("key.pem")).unwrap();
    let daemon = server.spawn();
    daemon.log.wait_for(0, "key.pem");
    assert!(!daemon.wait().success());
}

/// A server that is stopped takes leave of its milters; of one that is killed they say what that is for them. Neither is told in
/// the words of a library for those who write servers.
#[test]
fn a_server_that_goes_away_is_told_in_plain_words() {
    let authority = Authority::new("ours");
    let server = tls_server();
    authority.certify(&server, "127.0.0.1", false);
    let site = milter(&[authority.entry(&server, &https(&server), "mx")]);
    let (running, daemon) = (server.start(), site.start());
    let gone = |how: &str, since: usize| {
        // What is said in the end is that nobody is there.
        daemon.log.wait_for(since, "Connection refused");
        let lines = daemon.log.lines().split_off(since);
        let strange = ["close_notify", "docs.rs", "rustls"];
        let foreign = lines.iter().any(|line| strange.iter().any(|word| line.contains(word)));
        assert!(!foreign, "{how}: {lines:#?}");
        lines
    };
    send(&daemon, &letter(1), 2);
    wait_for(&site, &letter(1), 2);
    assert!(running.terminate().success());
    let told = gone("stopped", 0);
    assert!(!told.iter().any(|line| line.contains("cut off")), "it took leave: {told:#?}");
    let running = server.start();
    daemon.log.wait_for(told.len(), "it answers again");
    let seen = daemon.log.lines().len();
    running.kill();
    gone("killed", seen);
}
