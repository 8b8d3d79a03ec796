// SPDX-License-Identifier: GPL-3.0-or-later
//! Servers and milters together: real processes, real sockets, kill -9. Tests that apply to fleets as well are in `tests/fleet/engines`.

use bulkmark_testing::letters::{count, letter, send, wait_for};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::server::{Server, milter, wait_until_equal};
use bulkmark_testing::{Site, status, wait_until};

/// After twenty copies at one mail server, the next copy at another is bulk.
#[test]
fn what_one_saw_the_other_knows() {
    let server = Server::new("");
    let daemon = server.start();
    let (a, b) = (milter(&[server.entry("a", "report")]), milter(&[server.entry("b", "report")]));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(1), 20);
    wait_for(&b, &letter(1), 20);
    let answer = session(&at_b).message(&Mail::raw(&letter(1)));
    assert!(answer.verdict().starts_with("bulk; body=21;"), "{}", answer.verdict());
    wait_for(&a, &letter(1), 21);
    assert!(daemon.terminate().success());
    // Counts persist over restarts and without a server.
    assert!(at_b.terminate().success());
    let _at_b = b.start();
    assert_eq!(count(&b, &letter(1)), 21);
}

/// Two servers that are peers, each with a milter; one is away for a while.
#[test]
fn peers_become_equal() {
    let [one, two] = Server::peers("");
    let (_one_runs, two_runs) = (one.start(), two.start());
    let (a, b) = (milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(3), 7);
    send(&at_b, &letter(3), 5);
    wait_for(&a, &letter(3), 12);
    wait_for(&b, &letter(3), 12);
    two_runs.kill();
    send(&at_a, &letter(3), 4);
    send(&at_b, &letter(3), 3);
    let _two_runs = two.start();
    wait_for(&a, &letter(3), 19);
    wait_for(&b, &letter(3), 19);
}

/// The first server is gone: the milter follows the second, and reports for the first are not lost.
#[test]
fn another_server_takes_over() {
    let [one, two] = Server::peers("");
    let (one_runs, _two_runs) = (one.start(), two.start());
    let a = milter(&[one.entry("a", "report"), two.entry("a", "report")]);
    let b = milter(&[two.entry("b", "report")]);
    let (at_a, _at_b) = (a.start(), b.start());
    send(&at_a, &letter(4), 6);
    wait_for(&b, &letter(4), 6);
    one_runs.kill();
    send(&at_a, &letter(4), 6);
    let _one_runs = one.start();
    wait_for(&b, &letter(4), 12);
    wait_for(&a, &letter(4), 12);
}

/// Clients that are not allowed, or have other parameters, are refused; both sides log it, and mail flows.
#[test]
fn refusals_are_told() {
    let server = Server::new("");
    let _daemon = server.start();
    let entry = server.entry("a", "report");
    server.client(&["remove", "a"]);
    let site = milter(&[entry]);
    let daemon = site.start();
    daemon.log.wait_for(0, "401 Unauthorized: the token is not valid");
    send(&daemon, &letter(5), 3);
    assert_eq!(count(&site, &letter(5)), 3, "own reports count at once");

    let entry = server.entry("b", "report");
    let other = Site::new(&format!(
        "exempt = [\"authenticated\"]\nupstream = [{entry}]\n[ledger]\nwindow = \"6h\"\n"
    ));
    let daemon = other.start();
    daemon.log.wait_for(0, "other parameters: window is 86400 at the server and 21600 at the client");
}

/// A partner's `upstream` entry.
fn partner(server: &Server, name: &str, more: &[&str]) -> String {
    let token = server.client(&[&["add", "--partner", name], more].concat());
    let path = server.site.path(name);
    std::fs::write(&path, token).unwrap();
    format!("{{ url = \"{}\", token-file = \"{}\" }}", server.url(), path.display())
}

/// A partner cannot make a signature bulk alone, not even over restarts of the server. Its reports are withdrawn everywhere, also at
/// servers that were away at that time.
#[test]
fn the_influence_of_a_partner_is_bounded_and_taken_back() {
    let server = Server::new("");
    let daemon = server.start();
    let small = milter(&[partner(&server, "small", &[])]);
    let large = milter(&[server.entry("large", "report")]);
    let away = milter(&[server.entry("away", "report")]);
    let (at_small, at_large, at_away) = (small.start(), large.start(), away.start());
    send(&at_small, &letter(6), 30);
    wait_for(&large, &letter(6), 5);
    daemon.kill();
    let daemon = server.start();
    send(&at_small, &letter(6), 30);
    send(&at_small, &letter(60), 30);
    wait_for(&large, &letter(60), 5);
    assert_eq!(count(&large, &letter(6)), 5);
    send(&at_large, &letter(6), 30);
    for site in [&small, &away] {
        wait_for(site, &letter(6), 35);
    }
    at_away.kill();
    server.client(&["remove", "--with-counts", "small"]);
    wait_for(&large, &letter(6), 30);
    wait_for(&large, &letter(60), 0);
    daemon.kill();
    let _daemon = server.start();
    let at_away = away.start();
    wait_for(&away, &letter(6), 30);
    send(&at_away, &letter(61), 3);
    wait_for(&large, &letter(61), 3);
    let late = milter(&[server.entry("late", "read")]);
    let _at_late = late.start();
    wait_for(&late, &letter(61), 3);
    assert_eq!([6, 60].map(|n| count(&late, &letter(n))), [30, 0], "a snapshot does not bring it back");
}

/// A partner whose quota is exhausted is refused with this reason, and its further reports wait; others are served.
#[test]
fn a_quota_holds_back_what_is_new() {
    let server = Server::new("");
    let daemon = server.start();
    let small = milter(&[partner(&server, "small", &["--quota", "0.002%"])]);
    let large = milter(&[server.entry("large", "report")]);
    let (at_small, at_large) = (small.start(), large.start());
    for n in 70..90 {
        send(&at_small, &letter(n), 1);
    }
    daemon.log.wait_for(0, "client small is refused: its quota of different signatures is used up");
    send(&at_large, &letter(90), 4);
    wait_for(&small, &letter(90), 4);
    let told = server.client(&["list"]);
    assert!(
        told.lines()
            .any(|line| line.starts_with("small") && line.contains("partner") && line.contains("0.002%")),
        "{told}"
    );
    server.client(&["set", "--quota", "100%", "small"]);
    wait_for(&large, &letter(89), 1);
}

/// A copy of a server's directory; the returned function restores it.
fn backup(server: &Server) -> impl Fn() {
    let (file, copy) = (server.site.path("state/ledger.redb"), server.site.path("backup"));
    std::fs::copy(&file, &copy).unwrap();
    move || {
        std::fs::copy(&copy, &file).unwrap();
    }
}

/// A server is restored from an old copy: it gets the missing updates from its peer, continues under another origin, and all are equal
/// again. Its later reports are counted once.
#[test]
fn a_restored_server_becomes_equal() {
    let [one, two] = Server::peers("anonymous-reading = true");
    let (one_runs, _two_runs) = (one.start(), two.start());
    let (a, b) = (milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(8), 5);
    wait_for(&b, &letter(8), 5);
    assert!(one_runs.terminate().success());
    let restore = backup(&one);
    let one_runs = one.start();
    send(&at_a, &letter(8), 6);
    send(&at_b, &letter(8), 2);
    wait_for(&b, &letter(8), 13);
    one_runs.kill();
    restore();
    let one_runs = one.start();
    one_runs.log.wait_for(0, "this ledger was restored from an old copy");
    wait_for(&a, &letter(8), 13);
    send(&at_a, &letter(8), 4);
    wait_for(&a, &letter(8), 17);
    wait_for(&b, &letter(8), 17);
    // This survives a restart.
    one_runs.kill();
    let one_runs = one.start();
    send(&at_a, &letter(8), 1);
    wait_for(&b, &letter(8), 18);
    wait_for(&a, &letter(8), 18);
    let restored = |line: &String| line.contains("was restored");
    assert!(!one_runs.log.lines().iter().any(restored), "{:?}", one_runs.log.lines());
    wait_until_equal(&one, &two, 1);
}

/// A server without peers is restored from an old copy: counts that no other server keeps are lost; its milters notice, and continue from
/// the server's counts.
#[test]
fn milters_of_a_restored_server_begin_anew() {
    let server = Server::new("");
    let daemon = server.start();
    let (a, b) = (milter(&[server.entry("a", "report")]), milter(&[server.entry("b", "report")]));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(9), 5);
    wait_for(&b, &letter(9), 5);
    assert!(daemon.terminate().success());
    let restore = backup(&server);
    let daemon = server.start();
    for expected in 6..10 {
        send(&at_a, &letter(9), 1);
        wait_for(&b, &letter(9), expected);
    }
    // An unacknowledged report would be sent again to the restored server, which does not know that it counted it.
    wait_until("an empty spool", || match status(&a)["ledger"]["spool"].as_u64() {
        Some(0) => Ok(()),
        spool => Err(format!("{spool:?}")),
    });
    daemon.kill();
    restore();
    let _daemon = server.start();
    wait_for(&b, &letter(9), 5);
    wait_for(&a, &letter(9), 5);
    send(&at_b, &letter(9), 3);
    wait_for(&a, &letter(9), 8);
    wait_for(&b, &letter(9), 8);
}
