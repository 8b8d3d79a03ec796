// SPDX-License-Identifier: GPL-3.0-or-later
//! Guarantees to a milter by every engine that carries its counts to others: a server over HTTP, or a fleet's log in NATS or in PostgreSQL.
//! All three go through the same scenarios, with real daemons and kill -9. (The two logs have a stricter suite of their own,
//! `tests/fleet/conformance`. With TLS and more than one server: `tests/federation/tls.rs`, `tests/federation/together.rs`.)

mod rig;

use bulkmark_testing::letters::{count, letter, offer, send, wait_for, wait_for_empty_spool};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::reports::report;
use bulkmark_testing::{Daemon, status, wait_until};
use rig::{Engine, Rig};

/// Makes a test of each scenario for each engine.
macro_rules! on_all_engines {
    ($($scenario:ident),* $(,)?) => {
        on_all_engines! { @each http Http $($scenario)* }
        on_all_engines! { @each nats Nats $($scenario)* }
        on_all_engines! { @each postgres Postgres $($scenario)* }
    };
    (@each $name:ident $engine:ident $($scenario:ident)*) => {
        mod $name {
            $(#[test] fn $scenario() { super::$scenario(super::Engine::$engine); })*
        }
    };
}

on_all_engines! {
    an_answer_that_is_lost_counts_nothing_twice,
    a_kill_before_the_answer_counts_nothing_twice,
    kills_lose_nothing_and_double_nothing,
    who_was_away_goes_on_from_its_place,
    who_was_away_for_too_long_takes_a_snapshot,
    who_is_new_begins_with_a_snapshot,
    an_older_copy_loses_nothing_and_doubles_nothing,
    without_the_engine_mail_flows,
    user_reports_go_everywhere_and_are_withdrawn,
}

/// Whether a milter has loaded a snapshot since its start.
fn took_snapshot(daemon: &Daemon) -> bool {
    daemon.log.lines().iter().any(|line| line.contains("snapshot") && line.contains("was taken over"))
}

/// A batch is counted, but the milter gets no answer before its connections break. It sends the batch again.
fn an_answer_that_is_lost_counts_nothing_twice(engine: Engine) {
    lose_an_answer(engine, |rig| rig.let_answers_pass());
}

/// The same, and the engine is killed before it answers.
fn a_kill_before_the_answer_counts_nothing_twice(engine: Engine) {
    lose_an_answer(engine, |rig| {
        rig.kill();
        rig.let_answers_pass();
        rig.start_again();
    });
}

fn lose_an_answer(engine: Engine, harm: impl Fn(&Rig)) {
    let Some(rig) = Rig::start(engine) else { return };
    let [a, b] = [0, 1].map(|n| rig.milter(n));
    let (at_a, _at_b) = (a.start(), b.start());
    for round in 1..=2 {
        // A count that rises alone proves that all connections exist.
        send(&at_a, &letter(1), 1);
        wait_for(&b, &letter(1), round * 6 - 5);
        wait_for_empty_spool(&a);
        rig.keep_answers();
        // One indivisible report; later ones wait for its answer.
        let mut mail = Mail::raw(&letter(1));
        mail.recipients = (0..5).map(|n| format!("reader{n}@example.net")).collect();
        session(&at_a).message(&mail);
        wait_for(&b, &letter(1), round * 6);
        let waiting = status(&a)["ledger"]["spool"].as_u64();
        assert!(waiting.is_some_and(|waiting| waiting > 0), "the answer arrived");
        harm(&rig);
        wait_for_empty_spool(&a);
    }
    send(&at_a, &letter(1), 1);
    for site in [&a, &b] {
        wait_for(site, &letter(1), 13);
    }
}

/// Aggregators or servers, milters and the engine are killed again and again.
fn kills_lose_nothing_and_double_nothing(engine: Engine) {
    let Some(rig) = Rig::start(engine) else { return };
    let [a, b] = [0, 1].map(|n| rig.milter(n));
    let (mut at_a, mut at_b) = (a.start(), b.start());
    for round in 0..6 {
        send(&at_a, &letter(2), 10);
        send(&at_b, &letter(2), 5);
        match round % 3 {
            0 => {
                rig.kill_counting();
                send(&at_a, &letter(2), 5);
                rig.start_counting();
            }
            1 => {
                at_a.kill();
                at_a = a.start();
                send(&at_b, &letter(2), 5);
            }
            _ => {
                rig.kill();
                at_b.kill();
                send(&at_a, &letter(2), 5);
                rig.start_again();
                at_b = b.start();
            }
        }
    }
    for site in [&a, &b] {
        wait_for(site, &letter(2), 120);
        wait_for_empty_spool(site);
    }
    let c = rig.milter(2);
    let _at_c = c.start();
    for site in [&a, &b, &c] {
        wait_for(site, &letter(2), 120);
    }
}

/// It gets only the missing updates.
fn who_was_away_goes_on_from_its_place(engine: Engine) {
    let Some(rig) = Rig::start(engine) else { return };
    let [a, b] = [0, 1].map(|n| rig.milter(n));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(3), 4);
    wait_for(&b, &letter(3), 4);
    at_b.kill();
    for n in 3..6 {
        send(&at_a, &letter(n), 3);
        wait_for_empty_spool(&a);
    }
    let at_b = b.start();
    for (n, expected) in [(3, 7), (4, 3), (5, 3)] {
        wait_for(&b, &letter(n), expected);
    }
    assert!(!took_snapshot(&at_b), "{}", at_b.log.lines().join("\n"));
}

/// Its missing updates are no longer kept individually.
fn who_was_away_for_too_long_takes_a_snapshot(engine: Engine) {
    // In a fleet the first snapshot may, rarely, come before the milter is away.
    let is_shown = (0..3).any(|_| Rig::start(engine).is_none_or(|rig| is_away_for_too_long(&rig)));
    assert!(is_shown, "three times there was a snapshot at once");
}

fn is_away_for_too_long(rig: &Rig) -> bool {
    rig.end_counting();
    let [a, b] = [0, 1].map(|n| rig.milter(n));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(6), 3);
    rig.start_counting();
    wait_for(&b, &letter(6), 3);
    at_b.kill();
    if rig.has_snapshot() {
        return false;
    }
    rig.end_counting();
    send(&at_a, &letter(6), 4);
    rig.start_counting();
    wait_for_empty_spool(&a);
    let step = rig.snapshot();
    send(&at_a, &letter(7), 2);
    wait_for_empty_spool(&a);
    rig.forget(step);
    let at_b = b.start();
    wait_for(&b, &letter(6), 7);
    wait_for(&b, &letter(7), 2);
    assert!(took_snapshot(&at_b), "{}", at_b.log.lines().join("\n"));
    // It continues with later updates.
    send(&at_a, &letter(7), 1);
    send(&at_b, &letter(7), 1);
    for site in [&a, &b] {
        wait_for(site, &letter(7), 4);
    }
    true
}

fn who_is_new_begins_with_a_snapshot(engine: Engine) {
    let Some(rig) = Rig::start(engine) else { return };
    let a = rig.milter(0);
    let at_a = a.start();
    send(&at_a, &letter(8), 40);
    wait_for_empty_spool(&a);
    rig.snapshot();
    let b = rig.milter(1);
    let at_b = b.start();
    wait_for(&b, &letter(8), 40);
    assert!(took_snapshot(&at_b), "{}", at_b.log.lines().join("\n"));
    send(&at_a, &letter(8), 1);
    wait_for(&b, &letter(8), 41);
}

/// The engine is restored from an older copy. A server's peer, or the fleet's members, still know its lost counts.
fn an_older_copy_loses_nothing_and_doubles_nothing(engine: Engine) {
    let Some(rig) = Rig::start_double(engine) else { return };
    let [a, b] = [0, 1].map(|n| rig.milter(n));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(9), 5);
    wait_for(&b, &letter(9), 5);
    wait_for_empty_spool(&a);
    rig.save();
    send(&at_a, &letter(9), 6);
    send(&at_b, &letter(9), 2);
    for site in [&a, &b] {
        wait_for(site, &letter(9), 13);
        wait_for_empty_spool(site);
    }
    rig.put_back();
    send(&at_a, &letter(9), 4);
    send(&at_b, &letter(9), 1);
    let c = rig.milter(2);
    let _at_c = c.start();
    for site in [&a, &b, &c] {
        wait_for(site, &letter(9), 18);
        wait_for_empty_spool(site);
    }
    assert_eq!([&a, &b, &c].map(|site| count(site, &letter(9))), [18; 3]);
}

/// Each milter counts locally and logs the fault; when the engine is back, nothing is missing.
fn without_the_engine_mail_flows(engine: Engine) {
    let Some(rig) = Rig::start(engine) else { return };
    let [a, b] = [0, 1].map(|n| rig.milter(n));
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(10), 2);
    wait_for(&b, &letter(10), 2);
    rig.kill();
    send(&at_a, &letter(10), 3);
    assert_eq!(count(&a, &letter(10)), 5);
    send(&at_b, &letter(10), 4);
    assert_eq!(count(&b, &letter(10)), 6);
    wait_until("an error", || {
        let status = status(&a);
        if status["links"][0]["error"].is_string() { Ok(()) } else { Err(status.to_string()) }
    });
    rig.start_again();
    for site in [&a, &b] {
        wait_for(site, &letter(10), 9);
    }
}

/// Waits for this verdict on a message, with this weight of user reports.
#[track_caller]
fn wait_for_user_reports(site: &bulkmark_testing::Site, message: &[u8], expected: (&str, Option<&str>)) {
    wait_until("user reports", || {
        let (_, answer) = site.check(message);
        let told: serde_json::Value = serde_json::from_str(&answer).map_err(|e| format!("{e}: {answer}"))?;
        let found = (told["verdict"].as_str().unwrap_or_default(), told["spam"]["weight"].as_str());
        if found == expected { Ok(()) } else { Err(answer) }
    });
}

/// User reports at one milter make a message and its near copies spam at another; a contrary report, at either milter, withdraws them. Each
/// time a milter and the engine are killed; nothing counts twice.
fn user_reports_go_everywhere_and_are_withdrawn(engine: Engine) {
    let Some(rig) = Rig::start(engine) else { return };
    let [a, b] = [0, 1].map(|n| {
        let mut site = rig.milter(n);
        site.extra += "[user-reports]\ntrust = { new-reporter = 1.0, federation-weight = 1.0 }\n";
        site
    });
    let (mut at_a, at_b) = (a.start(), b.start());
    for (n, user) in ["anna", "bert", "carl"].into_iter().enumerate() {
        assert_eq!(report(&a, &["--user", user], &offer("Anna"))["refused"], serde_json::Value::Null);
        if n == 1 {
            at_a.kill();
            at_a = a.start();
        }
    }
    wait_for_user_reports(&b, &offer("Dora"), ("spam", Some("3")));
    let header = session(&at_b).message(&Mail::raw(&offer("Dora"))).header().to_owned();
    assert!(header.starts_with("spam; "), "{header}");
    // Reports made while the engine is down arrive when it is back.
    rig.kill();
    let answer = report(&a, &["--not-spam", "--user", "bert"], &offer("Anna"));
    assert_eq!(answer["taken-back"], answer["signatures"], "{answer}");
    at_a.kill();
    rig.start_again();
    at_a = a.start();
    wait_for_user_reports(&b, &offer("Dora"), ("clean", Some("2")));
    // A new reporter at another milter.
    let answer = report(&b, &["--not-spam", "--user", "emil"], &offer("Anna"));
    assert_eq!(answer["counted"], answer["signatures"], "{answer}");
    at_b.kill();
    let _at_b = b.start();
    for site in [&a, &b] {
        wait_for_user_reports(site, &offer("Dora"), ("clean", Some("1")));
        wait_for_empty_spool(site);
    }
    // A repeated report adds nothing, even after all that.
    let answer = report(&a, &["--user", "anna"], &offer("Anna"));
    assert_eq!(answer["known"], answer["signatures"], "{answer}");
    at_a.kill();
    let _at_a = a.start();
    wait_for_user_reports(&a, &offer("Dora"), ("clean", Some("1")));
}
