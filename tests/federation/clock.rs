// SPDX-License-Identifier: GPL-3.0-or-later
//! The clock of a server or a milter is two days off: both sides log it and share nothing until the clock is right; then all count the
//! same.

use bulkmark_testing::clock::Clock;
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::server::{Server, milter, wait_until_equal};
use bulkmark_testing::{status, wait_until};

/// Longer than any test takes.
const DAY: u64 = 86_400;

/// The server's refusal of a client whose clock differs by `offset` (two days).
fn refusal(offset: &str) -> String {
    format!("other clock: the client's is 2 days {offset} the server's; at most 5 minutes are tolerated")
}

/// A server and a milter whose clock differs from the right time by `offset`, beside another server and two milters with the right time.
/// `counts`: whether reports made under the wrong clock count under the right one.
fn a_server_with_a_wrong_clock(offset: &str, server: &str, others: &str, counts: bool) {
    let [mut one, two] = Server::peers("anonymous-reading = true");
    let (a, b) =
        (milter(&[one.entry("a", "report"), two.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    let mut beside = milter(&[one.entry("beside", "report")]);
    let Some(clock) = Clock::of(&mut one.site, offset) else { return };
    beside.environment = one.site.environment.clone();
    let (one_runs, two_runs) = (one.start(), two.start());
    let (at_a, at_b, at_beside) = (a.start(), b.start(), beside.start());

    // Both sides log the other's name and the difference.
    at_a.log.wait_for(0, &format!("{}: 409 Conflict: {}", one.url(), refusal(others)));
    one_runs.log.wait_for(0, &format!("client a is refused: {}", refusal(others)));
    two_runs.log.wait_for(0, &format!("{}: 409 Conflict: {}", one.url(), refusal(others)));
    one_runs.log.wait_for(0, &format!("client two is refused: {}", refusal(others)));
    one_runs.log.wait_for(0, &format!("{}: 409 Conflict: {}", two.url(), refusal(server)));
    two_runs.log.wait_for(0, &format!("client one is refused: {}", refusal(server)));
    // Members with the right time continue among themselves, and so do those with the wrong one.
    send(&at_a, &letter(1), 5);
    send(&at_b, &letter(1), 3);
    send(&at_beside, &letter(1), 4);
    wait_for(&a, &letter(1), 8);
    wait_for(&b, &letter(1), 8);
    wait_for(&beside, &letter(1), 4);
    wait_until("the server beside", || {
        let spool = status(&beside)["ledger"]["spool"].clone();
        if spool == 0 { Ok(()) } else { Err(spool.to_string()) }
    });

    clock.set("+0");
    let expected = if counts { 12 } else { 8 };
    for site in [&a, &b, &beside] {
        wait_for(site, &letter(1), expected);
    }
    send(&at_beside, &letter(1), 2);
    send(&at_a, &letter(1), 1);
    for site in [&a, &b, &beside] {
        wait_for(site, &letter(1), expected + 3);
    }
    wait_until_equal(&one, &two, 2);
}

/// Its counts meanwhile belong to a window that has yet to begin, and count from then on.
#[test]
fn a_server_that_is_ahead() {
    a_server_with_a_wrong_clock("+2d", "ahead of", "behind", false);
}

#[test]
fn a_server_that_is_behind() {
    a_server_with_a_wrong_clock("-2d", "behind", "ahead of", true);
}

/// A milter's clock goes wrong while reports wait for the server: they are not dropped as too old.
fn a_milter_with_a_wrong_clock(offset: &str, side: &str) {
    let server = Server::new("");
    let (mut a, b) = (milter(&[server.entry("a", "report")]), milter(&[server.entry("b", "report")]));
    let Some(clock) = Clock::of(&mut a, "+0") else { return };
    let at_a = a.start();
    send(&at_a, &letter(2), 5);
    assert!(at_a.terminate().success());
    clock.set(offset);
    let (daemon, _at_b) = (server.start(), b.start());
    let at_a = a.start();
    at_a.log.wait_for(0, &format!("{}: 409 Conflict: {}", server.url(), refusal(side)));
    daemon.log.wait_for(0, &format!("client a is refused: {}", refusal(side)));
    send(&at_a, &letter(2), 3);
    // By then the milter has looked for reports that waited for too long.
    at_a.log.wait_for(0, "this machine's clock may be wrong: no report is dropped for its age");
    wait_for(&a, &letter(2), 8);
    clock.set("+0");
    wait_for(&b, &letter(2), 8);
    wait_for(&a, &letter(2), 8);
    let dropped = |line: &String| line.contains("were dropped");
    assert!(!at_a.log.lines().iter().any(dropped), "{:?}", at_a.log.lines());
    // Once more, while it is connected.
    let skip = at_a.log.lines().len();
    clock.set(offset);
    at_a.log.wait_for(skip, &format!("{}: 409 Conflict: {}", server.url(), refusal(side)));
    // The clock has no influence on the time since the last news from a server.
    let found = status(&a);
    assert!(found["staleness-seconds"].as_u64().unwrap() < DAY, "{found}");
    assert!(found["links"][0]["heard-seconds-ago"].as_u64().unwrap() < DAY, "{found}");
}

#[test]
fn a_milter_that_is_ahead() {
    a_milter_with_a_wrong_clock("+2d", "ahead of");
}

#[test]
fn a_milter_that_is_behind() {
    a_milter_with_a_wrong_clock("-2d", "behind");
}
