// SPDX-License-Identifier: GPL-3.0-or-later
//! Milters with a partial copy beside milters with a full one: real processes, real sockets, kill -9.

use bulkmark_mail::RawMessage;
use bulkmark_signature::{Settings, signatures};
use bulkmark_testing::held::{answer_of, from, held, lonely, wait_for_held};
use bulkmark_testing::letters::{count, letter, offer, send};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::networks::strangers;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::standin::{StandIn, answer};
use bulkmark_testing::{Daemon, Site, program, status, wait_until};
use bulkmark_types::{ClientNetwork, FederationKey, source_count};
use std::process::Command;

/// A milter with a partial copy that follows these servers.
fn partial(entries: &[String]) -> Site {
    let mut site = milter(entries);
    site.extra += "copy = \"partial\"\n";
    site
}

/// Waits until a milter has everything its server sends, and the server has all of the milter's reports.
fn wait_in_step(site: &Site) {
    wait_until("a milter in step", || {
        let status = status(site);
        let is_in_step = status["links"][0]["behind"] == 0 && status["ledger"]["spool"] == 0;
        if is_in_step { Ok(()) } else { Err(status.to_string()) }
    });
}

/// Full and partial copies give the same count for a letter.
#[track_caller]
fn assert_alike(full: &Site, partial: &Site, letter: &[u8]) {
    assert_eq!(answer_of(full, "check", letter), answer_of(partial, "check", letter));
}

/// A partial copy holds bulk and asks for other counts; without a server the header names the missing part.
#[test]
fn bulk_is_held_and_the_rest_is_not() {
    let server = Server::new("");
    let daemon = server.start();
    let (a, full) = (milter(&[server.entry("a", "report")]), milter(&[server.entry("full", "report")]));
    let partial = partial(&[server.entry("partial", "report")]);
    let (at_a, _at_full, at_partial) = (a.start(), full.start(), partial.start());
    at_partial.log.wait_for(0, "its list of bulk was taken over");
    let letters = [letter(1), lonely(), letter(3), letter(4)];
    for (letter, times) in letters.iter().zip([30, 9, 10]) {
        send(&at_a, letter, times);
    }
    [&a, &full, &partial].into_iter().for_each(wait_in_step);
    assert_eq!(letters.each_ref().map(|letter| held(&partial, letter)), [30, 0, 10, 0]);
    assert_eq!(letters.each_ref().map(|letter| held(&full, letter)), [30, 9, 10, 0]);
    letters.iter().for_each(|letter| assert_alike(&full, &partial, letter));
    // An unknown count is shown as a lower bound.
    let verdict = |n: usize| session(&at_partial).message(&Mail::raw(&letters[n])).header().to_owned();
    assert_eq!(verdict(0), "bulk; body=31; near=31; threshold=20; host=mx.test; sources=0; own=20");
    assert_eq!(verdict(1), "clean; body=1+; near=1+; threshold=20; host=mx.test");
    // The count rises at the server, and from there on the milter holds it.
    wait_for_held(&partial, &lonely(), 10);
    assert!(daemon.terminate().success());
    assert!(verdict(2).starts_with("clean; body=11; near="), "{}", verdict(2));
    assert!(verdict(0).starts_with("bulk; body=32; "), "{}", verdict(0));
    let bulk = &status(&partial)["ledger"]["bulk"];
    assert_eq!((&bulk["bound"], &bulk["left-out"]), (&10.into(), &0.into()), "{bulk}");
}

/// The server, a sender and the milter with a partial copy are killed repeatedly; in the end each count is right.
#[test]
fn kills_lose_nothing_and_double_nothing() {
    let server = Server::new("");
    let mut daemon = server.start();
    let (a, full) = (milter(&[server.entry("a", "report")]), milter(&[server.entry("full", "report")]));
    let partial = partial(&[server.entry("partial", "report")]);
    let (mut at_a, _at_full, mut at_partial) = (a.start(), full.start(), partial.start());
    let rounds = 6;
    for round in 0..rounds {
        send(&at_a, &letter(4), 7);
        send(&at_partial, &letter(4), 5);
        send(&at_partial, &letter(5), 2);
        match round % 3 {
            0 => {
                daemon.kill();
                send(&at_partial, &letter(4), 3);
                daemon = server.start();
            }
            1 => {
                at_partial.kill();
                at_partial = partial.start();
            }
            _ => {
                at_a.kill();
                at_a = a.start();
            }
        }
    }
    let expected = rounds * 12 + 2 * 3;
    [&a, &full, &partial].into_iter().for_each(wait_in_step);
    wait_for_held(&full, &letter(4), expected);
    wait_for_held(&partial, &letter(4), expected);
    assert_eq!((held(&partial, &letter(5)), held(&full, &letter(5))), (rounds * 2, rounds * 2));
    assert_alike(&full, &partial, &letter(4));
}

/// A milter was away while others counted, and a server was restarted: only the missing entries are sent.
#[test]
fn whoever_was_away_gets_what_it_lacks() {
    let server = Server::new("");
    let daemon = server.start();
    let (a, partial) =
        (milter(&[server.entry("a", "report")]), partial(&[server.entry("partial", "report")]));
    let (at_a, at_partial) = (a.start(), partial.start());
    send(&at_a, &letter(6), 12);
    wait_for_held(&partial, &letter(6), 12);
    at_partial.kill();
    for n in 7..10 {
        send(&at_a, &letter(n), 11);
        wait_in_step(&a);
    }
    daemon.kill();
    let daemon = server.start();
    send(&at_a, &letter(6), 8);
    wait_in_step(&a);
    assert!(daemon.terminate().success());
    let _daemon = server.start();
    let at_partial = partial.start();
    wait_for_held(&partial, &letter(6), 20);
    assert_eq!([7, 8, 9].map(|n| held(&partial, &letter(n))), [11; 3]);
    send(&at_a, &letter(9), 1);
    wait_for_held(&partial, &letter(9), 12);
    let is_list = |line: &String| line.contains("its list of bulk was taken over");
    assert!(!at_partial.log.lines().iter().any(is_list), "{:?}", at_partial.log.lines());
}

/// A server that was restored from an old copy has another list, though its numbers are the same.
#[test]
fn a_restored_server_is_noticed() {
    let server = Server::new("");
    let daemon = server.start();
    let (a, partial) =
        (milter(&[server.entry("a", "report")]), partial(&[server.entry("partial", "report")]));
    let (at_a, at_partial) = (a.start(), partial.start());
    send(&at_a, &letter(10), 12);
    wait_for_held(&partial, &letter(10), 12);
    assert!(daemon.terminate().success());
    let (file, copy) = (server.site.path("state/ledger.redb"), server.site.path("backup"));
    std::fs::copy(&file, &copy).unwrap();
    let daemon = server.start();
    for expected in 13..16 {
        send(&at_a, &letter(10), 1);
        wait_for_held(&partial, &letter(10), expected);
    }
    // An unacknowledged report would be sent again to the restored server, which does not know that it counted it.
    wait_in_step(&a);
    daemon.kill();
    std::fs::copy(&copy, &file).unwrap();
    let daemon = server.start();
    wait_for_held(&partial, &letter(10), 12);
    send(&at_a, &letter(10), 2);
    wait_for_held(&partial, &letter(10), 14);
    wait_in_step(&a);
    // The same while the milter is away, so that the number of its last note now belongs to another note.
    at_partial.kill();
    daemon.kill();
    std::fs::copy(&copy, &file).unwrap();
    let _daemon = server.start();
    wait_in_step(&a);
    send(&at_a, &letter(18), 11);
    wait_in_step(&a);
    for _ in 0..6 {
        send(&at_a, &letter(10), 1);
        wait_in_step(&a);
    }
    let _at_partial = partial.start();
    wait_for_held(&partial, &letter(18), 11);
}

/// Bulk at one of two servers reaches milters with a partial copy at the other. A count that rose at both before they exchanged updates is
/// known one message later.
#[test]
fn peers_tell_each_other_of_bulk() {
    let [one, two] = Server::peers("");
    let (one_runs, two_runs) = (one.start(), two.start());
    let (a, b) = (milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    let partial = partial(&[one.entry("partial", "report")]);
    let (at_a, at_b, at_partial) = (a.start(), b.start(), partial.start());
    at_partial.log.wait_for(0, "its list of bulk was taken over");
    // The other server begins its list when this one asks for it.
    wait_until("the other's list", || {
        let mut status = Command::new(program());
        let output =
            status.args(["status", "--server", "--json", "--config"]).arg(two.config()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        if text.contains("\"bulk\":{") { Ok(()) } else { Err(text) }
    });
    // Some copies here, the rest there: only the other server sees that it is bulk.
    send(&at_a, &letter(11), 4);
    wait_in_step(&a);
    wait_until("the other's count", || match held(&b, &letter(11)) {
        4 => Ok(()),
        n => Err(n.to_string()),
    });
    send(&at_b, &letter(11), 8);
    wait_for_held(&partial, &letter(11), 12);
    // The servers do not exchange updates while both count.
    two_runs.signal("STOP");
    send(&at_a, &letter(12), 7);
    wait_in_step(&a);
    one_runs.signal("STOP");
    two_runs.signal("CONT");
    send(&at_b, &letter(12), 7);
    wait_until("the other's batch", || match status(&b)["ledger"]["spool"].as_u64() {
        Some(0) => Ok(()),
        spool => Err(format!("{spool:?}")),
    });
    one_runs.signal("CONT");
    wait_until("the sum", || match held(&b, &letter(12)) {
        14 => Ok(()),
        n => Err(n.to_string()),
    });
    send(&at_a, &letter(12), 1);
    wait_for_held(&partial, &letter(12), 15);
    // From here on every message is announced, whichever server counts it.
    send(&at_b, &letter(12), 1);
    wait_for_held(&partial, &letter(12), 16);
}

/// A partner's reports are part of the announced counts, and leave with the partner.
#[test]
fn what_a_partner_brought_is_taken_back() {
    let server = Server::new("");
    let _daemon = server.start();
    let token = server.client(&["add", "--partner", "small"]);
    std::fs::write(server.site.path("small"), token).unwrap();
    let token_file = server.site.path("small").display().to_string();
    let small = milter(&[format!("{{ url = \"{}\", token-file = \"{token_file}\" }}", server.url())]);
    let a = milter(&[server.entry("a", "report")]);
    let partial = partial(&[server.entry("partial", "report")]);
    let (at_small, at_a, at_partial) = (small.start(), a.start(), partial.start());
    at_partial.log.wait_for(0, "its list of bulk was taken over");
    send(&at_small, &letter(13), 30);
    wait_in_step(&small);
    send(&at_a, &letter(13), 7);
    wait_for_held(&partial, &letter(13), 12);
    server.client(&["remove", "--with-counts", "small"]);
    wait_for_held(&partial, &letter(13), 0);
    send(&at_a, &letter(13), 5);
    wait_for_held(&partial, &letter(13), 12);
}

const REFUSING: &str = "[actions]\nbulk = \"reject\"\nnear = \"reject\"\n";

/// A milter with a partial copy refuses a mailing from many networks at the same copy as one with a full copy. While the server does not
/// answer, it only marks the mailing, and mail flows.
#[test]
fn refusals_are_those_of_a_full_milter() {
    let server = Server::new("");
    let daemon = server.start();
    let refusing = |mut site: Site| {
        site.extra += REFUSING;
        site
    };
    let full = refusing(milter(&[server.entry("full", "report")]));
    let partial = refusing(partial(&[server.entry("partial", "report")]));
    let (at_full, at_partial) = (full.start(), partial.start());
    at_partial.log.wait_for(0, "its list of bulk was taken over");
    let hosts = strangers(20, |n| format!("198.51.{n}.7"));
    for (n, host) in hosts.iter().enumerate() {
        let reply = from(if n % 2 == 0 { &at_full } else { &at_partial }, host, &letter(14)).reply;
        [&full, &partial].into_iter().for_each(wait_in_step);
        assert_eq!(reply == "c", n < 19, "copy {}: {reply}", n + 1);
    }
    let refused = [&at_full, &at_partial].map(|daemon| from(daemon, &hosts[0], &letter(14)).reply);
    assert!(refused.iter().all(|reply| reply.starts_with("550 ")), "{refused:?}");
    // No server reports the networks.
    daemon.signal("STOP");
    let marked = from(&at_partial, "203.0.113.9", &letter(14));
    assert!(marked.header().ends_with("; sources=unknown; held=sources"), "{}", marked.header());
    at_partial.log.wait_for(0, "counts below 10 are not known for 5 s");
    daemon.signal("CONT");
}

/// A server without support for partial copies answers so, and the milter logs the remedy; mail is counted locally.
#[test]
fn an_older_server_is_named() {
    let server = Server::new("");
    let head = format!("Bulkmark-Parameters: {}\r\n", bulkmark_testing::server::parameters());
    let old = StandIn::new(0, move |_| Some(answer("404 Not Found", &head, b"")));
    drop(server);
    let site = partial(&[format!("{{ url = \"http://127.0.0.1:{}\" }}", old.port)]);
    let daemon = site.start();
    daemon
        .log
        .wait_for(0, "needs a server that tells bulk apart (/v1/bulk), and this one is older; upgrade it");
    send(&daemon, &letter(15), 3);
    assert_eq!(count(&site, &letter(15)), 3);
}

/// From a full copy to a partial one and back: the counts are there again once the server sent them.
#[test]
fn what_is_held_may_change() {
    let server = Server::new("");
    let _daemon = server.start();
    let entries = [server.entry("a", "report")];
    let mut site = milter(&entries);
    let first = partial(&[server.entry("first", "report")]);
    let at_first = first.start();
    at_first.log.wait_for(0, "its list of bulk was taken over");
    let daemon = site.start();
    send(&daemon, &letter(16), 14);
    send(&daemon, &letter(17), 3);
    wait_for_held(&site, &letter(16), 14);
    let cells = |site: &Site| status(site)["ledger"]["slices"].as_array().map(Vec::len);
    assert_eq!(cells(&site), Some(1));
    assert!(daemon.terminate().success());
    site.extra = site.extra.replace("[sync]\n", "[sync]\ncopy = \"partial\"\n");
    let daemon = site.start();
    daemon.log.wait_for(0, "its list of bulk was taken over");
    wait_for_held(&site, &letter(17), 0);
    assert_eq!((held(&site, &letter(16)), cells(&site)), (14, Some(0)));
    assert!(daemon.terminate().success());
    site.extra = site.extra.replace("copy = \"partial\"\n", "");
    let _daemon = site.start();
    wait_for_held(&site, &letter(17), 3);
    wait_for_held(&site, &letter(16), 14);
    assert_eq!(status(&site)["ledger"].get("bulk"), None);
}

/// A mailing from one network that reaches only milters with a partial copy is refused at the same copy as with full ones: they report the
/// same networks, though they learn later that these matter.
#[test]
fn networks_are_told_from_a_quarter_on() {
    let server = Server::new("");
    let _daemon = server.start();
    let sites = ["a", "b"].map(|name| {
        let mut site = partial(&[server.entry(name, "report")]);
        site.extra += REFUSING;
        site
    });
    let daemons = sites.each_ref().map(Site::start);
    for daemon in &daemons {
        daemon.log.wait_for(0, "its list of bulk was taken over");
    }
    let wait_for_network = |expected: u64| {
        for site in &sites {
            wait_until("what is known of the network", || {
                let found = own_network(site, &lonely());
                if found == expected { Ok(()) } else { Err(format!("{found} instead of {expected}")) }
            });
        }
    };
    // Below half of the threshold nothing is held yet; the fifth copy and all later ones are counted for their network.
    for n in 1..=9 {
        assert_eq!(from(&daemons[0], "203.0.113.7", &lonely()).reply, "c", "copy {n}");
    }
    wait_for_network(5);
    for n in 10..=20u64 {
        sites.iter().for_each(wait_in_step);
        let reply = from(&daemons[(n % 2) as usize], "203.0.113.7", &lonely()).reply;
        assert_eq!(reply == "c", n < 20, "copy {n}: {reply}");
        wait_for_network(n - 4);
    }
}

/// Messages that came while the server was away are looked up when it is back: no network is forgotten.
#[test]
fn networks_are_told_when_the_server_is_back() {
    let server = Server::new("");
    let daemon = server.start();
    let mut site = partial(&[server.entry("a", "report")]);
    site.extra += REFUSING;
    let milter = site.start();
    milter.log.wait_for(0, "its list of bulk was taken over");
    let wait_for_network = |expected: u64| {
        wait_until("what is known of the network", || {
            let found = asked_network(&site, &lonely());
            if found == Some(expected) { Ok(()) } else { Err(format!("{found:?} instead of {expected}")) }
        });
    };
    for n in 1..=9 {
        assert_eq!(from(&milter, "203.0.113.7", &lonely()).reply, "c", "copy {n}");
    }
    wait_for_network(5);
    daemon.kill();
    for n in 10..=14 {
        assert_eq!(from(&milter, "203.0.113.7", &lonely()).reply, "c", "copy {n}");
    }
    milter.log.wait_for(0, "are looked at again for their networks when the server answers");
    let _daemon = server.start();
    wait_for_network(10);
}

/// The server's count of copies of this letter from one network, which anybody with the key can ask.
fn own_network(site: &Site, letter: &[u8]) -> u64 {
    asked_network(site, letter).expect("the server answers")
}

/// The same, or `None` while the server does not answer.
fn asked_network(site: &Site, letter: &[u8]) -> Option<u64> {
    let key = FederationKey::public();
    let raw = RawMessage::from_bytes(letter);
    let body = signatures(&raw, &key, &Settings::default()).body.unwrap();
    let asked = source_count(&key, body, &ClientNetwork::of("203.0.113.7".parse().unwrap()));
    let control = site.path("control.sock");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shares = runtime.block_on(bulkmark::control::counts(&control, &[asked], true)).unwrap();
    shares[0].asked.map(Into::into)
}

/// User reports from before the list began are unknown, both to the verdict and to `check`; the next user report brings the full count.
#[test]
fn what_was_said_before_the_list_began_is_told_with_the_next_word() {
    let server = Server::new("");
    let _daemon = server.start();
    let [mut full, mut partial] =
        [milter(&[server.entry("full", "report")]), partial(&[server.entry("partial", "report")])];
    for site in [&mut full, &mut partial] {
        site.extra += "[user-reports]\ntrust = { federation-weight = 1.0, new-reporter = 1.0 }\n";
    }
    let _at_full = full.start();
    let call_spam = |user: &str| {
        let file = full.path("said.eml");
        std::fs::write(&file, letter(20)).unwrap();
        let control = full.path("control.sock");
        let mut command = Command::new(program());
        let output = command
            .args(["report", "add", "--user", user, "--control"])
            .arg(control)
            .arg(file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let weight = |site: &Site| {
        let (_, answer_of) = site.check(&letter(20));
        serde_json::from_str::<serde_json::Value>(&answer_of).unwrap()["spam"]["weight"].clone()
    };
    ["anna", "bert", "carl"].into_iter().for_each(call_spam);
    wait_in_step(&full);
    let at_partial = partial.start();
    at_partial.log.wait_for(0, "its list of bulk was taken over");
    wait_in_step(&partial);
    assert_eq!((weight(&full), weight(&partial)), ("3".into(), serde_json::Value::Null));
    let verdict = || session(&at_partial).message(&Mail::raw(&letter(20))).header().to_owned();
    assert!(verdict().starts_with("clean; body=1"), "{}", verdict());
    call_spam("dora");
    wait_until("all that was said", || {
        if weight(&partial) == "4" { Ok(()) } else { Err(weight(&partial).to_string()) }
    });
    assert!(verdict().starts_with("spam; body="), "{}", verdict());
}

/// `bulkmark allow` at a milter with a partial copy holds there and at a milter with a full one, and the other way round, also for copies
/// that differ.
#[test]
fn orders_hold_with_a_partial_copy() {
    let server = Server::new("");
    let _running = server.start();
    let at_four = |mut site: Site| {
        site.extra += &format!("{REFUSING}[thresholds]\nbody = 4\nnear = 4\nmin-sources = 1\n");
        site
    };
    let full = at_four(milter(&[server.entry("full", "report")]));
    let partial = at_four(partial(&[server.entry("partial", "report")]));
    let (at_full, at_partial) = (full.start(), partial.start());
    at_partial.log.wait_for(0, "its list of bulk was taken over");
    let wait_for = |daemon: &Daemon, letter: &[u8], wanted: &str| {
        wait_until(wanted, || {
            let answer = session(daemon).message(&Mail::raw(letter));
            let told = format!("{} {:?}", answer.reply, answer.added);
            if told.contains(wanted) { Ok(()) } else { Err(told) }
        });
    };
    for (site, daemon, other, name, letters) in [
        (&partial, &at_partial, &at_full, "partial", ["Anna", "Berta", "Carla"].map(offer)),
        (&full, &at_full, &at_partial, "full", [letter(21), letter(21), letter(21)]),
    ] {
        wait_for(other, &letters[0], "550 ");
        wait_for(daemon, &letters[1], "550 ");
        let file = site.path("letter.eml");
        std::fs::write(&file, &letters[0]).unwrap();
        let mut allow = Command::new(program());
        let output =
            allow.args(["allow", "--config"]).arg(site.path("milter.toml")).arg(&file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let here = session(daemon).message(&Mail::raw(&letters[2]));
        assert!(here.reply == "c" && here.header().ends_with("; held=allowed"), "{here:?}");
        wait_for(other, &letters[2], &format!("; held=allowed; allowed-by={name}"));
    }
}
