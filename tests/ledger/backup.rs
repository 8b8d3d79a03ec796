// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark ledger backup`: a copy of one moment, made while the daemon runs, and restored as docs/ledger.md describes.

use bulkmark_testing::letters::{count, letter, send, wait_for, wait_for_empty_spool};
use bulkmark_testing::server::{Server, milter, wait_until_equal};
use bulkmark_testing::{Site, program};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Exit code and all output.
fn bulkmark(arguments: &[&str], paths: &[&Path]) -> (i32, String) {
    let output = Command::new(program()).args(arguments).args(paths).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// Makes a backup, and checks that it is sound.
fn backup(site: &Site, config: &Path, more: &[&str]) -> PathBuf {
    let file = site.path("backup.redb");
    let arguments = [&["ledger", "backup"], more, &["--config"]].concat();
    let (code, told) = bulkmark(&arguments, &[config, &file]);
    assert_eq!((code, &*told), (0, &*format!("{}\n", file.display())));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (code, told) = bulkmark(&["ledger", "verify"], &[&file]);
    assert!(code == 0 && told.ends_with(": sound\n"), "{told}");
    file
}

/// Restores a backup.
fn restore(site: &Site, file: &Path) {
    fs::copy(file, site.path("state/ledger.redb")).unwrap();
}

/// The backup is the same with the daemon and without it; an existing one stays until the new one is complete.
#[test]
fn a_copy_is_equal_cell_by_cell() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let daemon = site.start();
    for n in 0..30 {
        send(&daemon, &letter(n), n + 1);
    }
    let file = backup(&site, &site.config(), &[]);
    let running = site.path("running.redb");
    fs::rename(&file, &running).unwrap();
    let (code, told) = bulkmark(&["ledger", "diff"], &[&running, &site.path("state")]);
    assert!(code == 2 && told.contains("in use by another process"), "{told}");
    assert!(daemon.terminate().success());
    backup(&site, &site.config(), &[]);
    for copy in [&running, &file] {
        let (code, told) = bulkmark(&["ledger", "diff"], &[copy, &site.path("state")]);
        assert!(code == 0 && told.contains("all cells of 1 window are equal"), "{told}");
    }
    // A damaged ledger is reported, and does not overwrite an existing backup.
    fs::write(site.path("state/ledger.redb"), "no ledger").unwrap();
    let (code, told) = bulkmark(&["ledger", "backup", "--config"], &[&site.config(), &file]);
    assert!(code == 2 && told.contains("is damaged"), "{told}");
    assert!(!site.path("backup.redb.new").exists());
    restore(&site, &file);
    let _daemon = site.start();
    assert_eq!(count(&site, &letter(29)), 30);
}

/// While reports arrive constantly, each copy shows one moment: its checksums and its journal fit, and a daemon can continue with it.
#[test]
fn copies_under_load_are_of_one_moment() {
    let server = Server::new("");
    let site = milter(&[server.entry("mx", "report")]);
    let (running, daemon) = (server.start(), site.start());
    let (mut sent, mut known) = (0, 0);
    for _ in 0..6 {
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| (0..10).for_each(|_| send(&daemon, &letter(1), 3)));
            while !sending.is_finished() {
                backup(&server.site, &server.config(), &["--server"]);
                backup(&site, &site.config(), &[]);
            }
        });
        sent += 30;
        let copy = Site::new(&site.extra);
        copy.config();
        restore(&copy, &site.path("backup.redb"));
        let shown = count(&copy, &letter(1));
        assert!((known..=sent).contains(&shown), "{shown} of {sent}, after {known}");
        known = shown;
    }
    wait_for(&site, &letter(1), sent);
    wait_for_empty_spool(&site);
    drop(running);
}

/// A server that is restored from a backup has a peer: it takes another origin, and nothing is lost or counted twice.
#[test]
fn a_server_goes_on_from_a_backup() {
    let [one, two] = Server::peers("anonymous-reading = true");
    let (at_one, _at_two) = (one.start(), two.start());
    let (a, b) = (milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(1), 4);
    wait_for(&b, &letter(1), 4);
    let file = backup(&one.site, &one.config(), &["--server"]);
    send(&at_a, &letter(1), 3);
    wait_for(&b, &letter(1), 7);
    wait_for_empty_spool(&a);
    assert!(at_one.terminate().success());
    restore(&one.site, &file);
    let at_one = one.start();
    at_one.log.wait_for(0, "this ledger was restored from an old copy");
    send(&at_a, &letter(1), 2);
    send(&at_b, &letter(1), 1);
    for site in [&a, &b] {
        wait_for(site, &letter(1), 10);
    }
    wait_until_equal(&one, &two, 1);
}

/// Without a peer the server loses the reports since the backup, and logs it; its milters still follow it.
#[test]
fn a_server_without_a_peer_goes_on_from_a_backup() {
    let server = Server::new("");
    let a = milter(&[server.entry("a", "report")]);
    let (running, at_a) = (server.start(), a.start());
    send(&at_a, &letter(1), 4);
    wait_for_empty_spool(&a);
    let file = backup(&server.site, &server.config(), &["--server"]);
    send(&at_a, &letter(1), 3);
    wait_for_empty_spool(&a);
    assert!(running.terminate().success());
    restore(&server.site, &file);
    let _running = server.start();
    at_a.log.wait_for(0, "rows was taken over");
    wait_for(&a, &letter(1), 4);
    send(&at_a, &letter(1), 2);
    wait_for(&a, &letter(1), 6);
}

/// A milter that is restored from a backup does not repeat reports that it sent before.
#[test]
fn a_milter_goes_on_from_a_backup() {
    let server = Server::new("");
    let (a, b) = (milter(&[server.entry("a", "report")]), milter(&[server.entry("b", "report")]));
    let (_running, at_a, _at_b) = (server.start(), a.start(), b.start());
    send(&at_a, &letter(1), 4);
    wait_for_empty_spool(&a);
    let file = backup(&a, &a.config(), &[]);
    send(&at_a, &letter(1), 3);
    wait_for_empty_spool(&a);
    assert!(at_a.terminate().success());
    restore(&a, &file);
    let at_a = a.start();
    at_a.log.wait_for(0, "this spool was restored from an old copy");
    send(&at_a, &letter(1), 1);
    for site in [&a, &b] {
        wait_for(site, &letter(1), 8);
    }
}
