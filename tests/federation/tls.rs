// SPDX-License-Identifier: GPL-3.0-or-later
//! TLS between servers and milters: trust, and certificates that change while connections continue.

use bulkmark_testing::authority::{Authority, https, tls_server};
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::server::milter;
use std::fs;

/// A reload applies a new certificate to new connections; existing ones continue.
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
    // The watcher trusts only the old authority, so its updates come over its old connection.
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

/// An untrusted server receives nothing; the milter logs the reason, and counts locally.
#[test]
fn who_is_not_trusted_is_told() {
    let (ours, strange) = (Authority::new("ours"), Authority::new("strange"));
    let cases = [
        ("an unknown authority", "127.0.0.1", false, "unknown issuer"),
        ("a certificate that is over", "127.0.0.1", true, "certificate expired"),
        ("a certificate for another name", "other.example.org", false, "not valid for name"),
    ];
    for (what, name, expired, told) in cases {
        let server = tls_server();
        let issuer = if told == "unknown issuer" { &strange } else { &ours };
        issuer.certify(&server, name, expired);
        let _daemon = server.start();
        let site = milter(&[ours.entry(&server, &https(&server), "mx")]);
        let daemon = site.start();
        let line = daemon.log.wait_for(0, &https(&server));
        assert!(line.contains("its certificate is not accepted: ") && line.contains(told), "{what}: {line}");
        send(&daemon, &letter(1), 2);
        wait_for(&site, &letter(1), 2);
    }
    // By the system's authorities, whose library would have a line for each attempt.
    let server = tls_server();
    strange.certify(&server, "127.0.0.1", false);
    let _daemon = server.start();
    let entry = ours.entry(&server, &https(&server), "mx");
    let (without, _) = entry.split_once(", ca-file").unwrap_or_else(|| panic!("{entry}"));
    let daemon = milter(&[format!("{without} }}")]).start();
    daemon.log.wait_for(0, "its certificate is not accepted: ");
    let lines = daemon.log.lines();
    assert!(!lines.iter().any(|line| line.contains("failed to verify")), "{lines:#?}");
}

/// HTTP where the server expects TLS: both sides go on, and the milter logs the answer that it got.
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

/// An unusable file stops the server at startup, with the file's name.
#[test]
fn a_server_without_a_key_does_not_start() {
    let server = tls_server();
    Authority::new("ours").certify(&server, "127.0.0.1", false);
    fs::remove_file(server.site.path("key.pem")).unwrap();
    let daemon = server.spawn();
    daemon.log.wait_for(0, "key.pem");
    assert!(!daemon.wait().success());
}

/// A server that is stopped closes its milters' connections properly; if it is killed, they log the consequence. Neither message uses the
/// terms of an HTTP library.
#[test]
fn a_server_that_goes_away_is_told_in_plain_words() {
    let authority = Authority::new("ours");
    let server = tls_server();
    authority.certify(&server, "127.0.0.1", false);
    let site = milter(&[authority.entry(&server, &https(&server), "mx")]);
    let (running, daemon) = (server.start(), site.start());
    let gone = |how: &str, since: usize| {
        // The last message is that nothing listens there.
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
