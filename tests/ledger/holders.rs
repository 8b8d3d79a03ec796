// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark ledger`: info, comparison and sums of whole ledgers, from files and from servers.

use bulkmark_testing::letters::{count, letter, send, wait_for_empty_spool};
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Site, program, wait_for_some, wait_until};
use std::path::Path;
use std::process::Command;

/// Exit code and all output.
fn ledger(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(program()).arg("ledger").args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn shown(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn file(site: &Site) -> String {
    shown(&site.path("state").join("ledger.redb"))
}

/// Two peers with different reports: their ledgers are equal cell by cell, over the network and on disk, though each one's local counts are
/// merged counts at the other.
#[test]
fn peers_are_equal_cell_by_cell() {
    let [one, two] = Server::peers("anonymous-reading = true");
    let (one_runs, two_runs) = (one.start(), two.start());
    let (a, b) = (milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    let (at_a, at_b) = (a.start(), b.start());
    for n in 0..20 {
        send(&at_a, &letter(n), n + 1);
        send(&at_b, &letter(n + 10), 3);
    }
    // Then all reports are in updates.
    for site in [&a, &b] {
        wait_for_empty_spool(site);
    }
    let text = wait_until("two servers", || {
        let (code, text) = ledger(&["verify", &one.url(), &two.url()]);
        // Each server has updates of both origins.
        let is_known = ledger(&["info", &one.url()]).1.matches("counted up to update").count() == 2;
        if code == 0 && is_known { Ok(text) } else { Err(text) }
    });
    assert!(text.contains("all cells of 1 window are equal"), "{text}");
    let (code, text) = ledger(&["diff", &file(&one.site), &two.url()]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("is in use by another process"), "{text}");

    drop((at_a, at_b));
    one_runs.kill();
    assert!(two_runs.terminate().success());
    let files = [file(&one.site), file(&two.site)];
    let (code, text) = ledger(&["verify", &files[0], &files[1]]);
    assert_eq!(code, 0, "{text}");

    // A report that only one server has is shown.
    let one_runs = one.start();
    let at_a = a.start();
    send(&at_a, &letter(99), 9);
    at_a.log.wait_for(0, "listens on");
    wait_for_some("a difference", || (ledger(&["diff", &one.url(), &files[1]]).0 != 0).then_some(()));
    drop(at_a);
    assert!(one_runs.terminate().success());
    let (code, text) = ledger(&["diff", &files[0], &files[1]]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains(" cells of 1 window differ, by 9 at most"), "{text}");
    assert!(text.contains(": counted up to update "), "{text}");

    let (code, text) = ledger(&["info", &files[0]]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("the ledger of a server, federation key "), "{text}");
    assert!(text.contains("false bulk at 20: "), "{text}");
}

/// Two sites are merged: their counts are added up, once.
#[test]
fn ledgers_of_two_sites_are_added_up() {
    let sites = [(); 2].map(|()| Site::new("exempt = [\"authenticated\"]\n"));
    for (site, times) in sites.iter().zip([4, 5]) {
        let daemon = site.start();
        send(&daemon, &letter(1), times);
        send(&daemon, &letter(times), 1);
        assert!(daemon.terminate().success());
    }
    let files = [file(&sites[0]), file(&sites[1])];
    let sum = Site::new("exempt = [\"authenticated\"]\n");
    sum.config();
    let state = shown(&sum.path("state"));
    let (code, text) = ledger(&["merge", &files[0], &files[1], "--output", &state]);
    assert_eq!(code, 0, "{text}");
    let daemon = sum.start();
    for (n, expected) in [(1, 9), (4, 1), (5, 1), (6, 0)] {
        assert_eq!(count(&sum, &letter(n)), expected);
    }
    send(&daemon, &letter(1), 1);
    assert_eq!(count(&sum, &letter(1)), 10);
    assert!(daemon.terminate().success());

    let (code, text) = ledger(&["merge", &files[0], &files[1], "--output", &state]);
    assert_eq!(code, 2);
    assert!(text.contains("ledger.redb already exists"), "{text}");
    // A merged ledger can be merged again.
    let third = Site::new("exempt = [\"authenticated\"]\n");
    let daemon = third.start();
    send(&daemon, &letter(6), 2);
    assert!(daemon.terminate().success());
    let all = Site::new("exempt = [\"authenticated\"]\n");
    all.config();
    let (code, text) = ledger(&["merge", &file(&sum), &file(&third), "--output", &shown(&all.path("state"))]);
    assert_eq!(code, 0, "{text}");
    let daemon = all.start();
    for (n, expected) in [(1, 10), (4, 1), (5, 1), (6, 2)] {
        assert_eq!(count(&all, &letter(n)), expected);
    }
    drop(daemon);
    let elsewhere = tempfile::tempdir().unwrap();
    let (code, text) = ledger(&["merge", &files[0], &files[0], "--output", &shown(elsewhere.path())]);
    assert_eq!(code, 2);
    assert!(text.contains("their sum would count these twice"), "{text}");
}

/// Two servers with different tokens: each is sent its own, in the order of the command line.
#[test]
fn each_server_is_sent_its_own_token() {
    let servers = Server::peers("");
    let _running = servers.each_ref().map(Server::start);
    let tokens = servers.each_ref().map(|server| {
        let path = server.site.path("reader.token");
        std::fs::write(&path, server.client(&["add", "--role", "read", "reader"])).unwrap();
        shown(&path)
    });
    let [one, two] = servers.each_ref().map(Server::url);
    let verify = |tokens: &[&str]| {
        let options = tokens.iter().flat_map(|token| ["--token-file", token]);
        let arguments: Vec<_> = ["verify", &one, &two].into_iter().chain(options).collect();
        ledger(&arguments)
    };
    wait_until("two servers", || match verify(&[&tokens[0], &tokens[1]]) {
        (0, _) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    for wrong in [&[&*tokens[0]][..], &[&tokens[1], &tokens[0]], &[]] {
        let (code, text) = verify(wrong);
        assert!(code == 2 && text.contains("401"), "{wrong:?}: {text}");
    }
}

/// Damage is found and reported.
#[test]
fn damage_is_found() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let daemon = site.start();
    send(&daemon, &letter(1), 30);
    assert!(daemon.terminate().success());
    let path = site.path("state").join("ledger.redb");
    let (code, text) = ledger(&["verify", &file(&site)]);
    assert_eq!((code, &*text), (0, &*format!("{}: sound\n", file(&site))));
    let mut bytes = std::fs::read(&path).unwrap();
    // Flips a bit in each page but the first, since any of them may be in use.
    bytes.chunks_mut(4096).skip(1).for_each(|page| page[40] ^= 0x10);
    std::fs::write(&path, bytes).unwrap();
    let (code, text) = ledger(&["verify", &file(&site)]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("is damaged"), "{text}");
    let (code, text) = ledger(&["info", "/nowhere/ledger.redb"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("cannot open the ledger /nowhere/ledger.redb: No such file"), "{text}");
}
