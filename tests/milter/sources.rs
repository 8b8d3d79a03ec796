// SPDX-License-Identifier: GPL-3.0-or-later
//! The networks that a count comes from, and how the daemon and its commands report them; also two daemons with a server.

use bulkmark_testing::letters::letter;
use bulkmark_testing::milter::{Answer, Client, Mail, NO_HELO, NOREPLY_CONNECT, NOREPLY_HELO};
use bulkmark_testing::networks::strangers;
use bulkmark_testing::page;
use bulkmark_testing::server::Server;
use bulkmark_testing::{Daemon, Site, wait_until};
use serde_json::{Value, json};

/// Many copies come at once, to as many recipients.
const REFUSING: &str = "thresholds.min-messages = 1\n[actions]\nbulk = \"reject\"\nnear = \"reject\"\n";

fn hosts(number: usize) -> Vec<String> {
    strangers(number, |n| format!("198.51.{n}.7"))
}

/// Sends a message from this client to so many recipients.
fn send(daemon: &Daemon, ip: &str, raw: &[u8], recipients: usize) -> Answer {
    let mut client = Client::connect(daemon);
    client.client("client.example.org", ip);
    let recipients = (0..recipients).map(|n| format!("reader{n}@example.net")).collect();
    client.message(&Mail { recipients, ..Mail::raw(raw) })
}

/// The header from `host` on.
fn fields_of(answer: &Answer) -> &str {
    answer.header().split_once("; host=mx.test").expect("a verdict with a count").1
}

/// The answer of `bulkmark check` for a message from this client.
fn check(site: &Site, raw: &[u8], ip: Option<&str>) -> Value {
    let file = site.path("asked.eml");
    std::fs::write(&file, raw).unwrap();
    let mut command = std::process::Command::new(bulkmark_testing::program());
    command.args(["check", "--json", "--config"]).arg(site.config()).arg(&file);
    command.args(ip.iter().flat_map(|ip| ["--ip", ip]));
    let output = command.output().unwrap();
    bulkmark_testing::first_message(&output.stdout)
}

#[test]
fn header_log_metrics_and_commands_tell_what_was_held_back() {
    let site = Site::new(&format!("{REFUSING}[status]\nlisten = \"127.0.0.1:0\"\n"));
    let daemon = site.start();
    let [bank, stranger, third] = &hosts(3)[..] else { unreachable!() };
    let refused = send(&daemon, stranger, &letter(1), 20);
    assert!(refused.reply.starts_with("550 5.7.1 bulk mail refused (id "), "{refused:?}");
    daemon.log.wait_for(0, " verdict=bulk body=20 near=1 threshold=20 sources=0 own=16 signature=");
    let held = send(&daemon, bank, &letter(1), 1);
    assert_eq!((&*held.reply, fields_of(&held)), ("c", "; sources=1; own=1; held=sources"));
    daemon.log.wait_for(0, " sources=1 own=1 held=sources signature=");
    let metrics = page::metrics(&daemon);
    assert_eq!(metrics["bulkmark_messages_held_total"], 1.0);
    // A check gets the same answer, and changes nothing.
    for _ in 0..2 {
        let found = check(&site, &letter(1), Some(bank));
        let network = bank.replace(".7", ".0/24");
        let expected = json!({ "others": 1, "network": network, "own": 1, "min-sources": 3, "held": true });
        assert_eq!((&found["verdict"], &found["sources"]), (&json!("bulk"), &expected));
        let expected = json!({ "others": 2, "min-sources": 3, "held": true });
        assert_eq!(check(&site, &letter(1), None)["sources"], expected);
    }
    let found = check(&site, &letter(1), Some(stranger));
    assert_eq!(found["sources"]["own"], json!(16));
    // Copies from its own network alone are refused, even now that it also came from others.
    for n in 2..=20 {
        let reply = send(&daemon, bank, &letter(1), 1).reply;
        assert_eq!(reply == "c", n < 20, "copy {n}: {reply}");
    }
    assert_eq!(fields_of(&send(&daemon, third, &letter(1), 1)), "; sources=2; own=1; held=sources");
}

/// A letter to a whole club is refused only at its third copy.
#[test]
fn few_messages_are_marked_however_many_recipients_they_have() {
    let site = Site::new("[actions]\nbulk = \"reject\"\n[status]\nlisten = \"127.0.0.1:0\"\n");
    let daemon = site.start();
    let [club] = &hosts(1)[..] else { unreachable!() };
    for n in 1..=2 {
        let answer = send(&daemon, club, &letter(6), 22);
        assert_eq!(&*answer.reply, "c");
        assert!(fields_of(&answer).ends_with("; held=messages"), "{answer:?}");
        daemon.log.wait_for(0, &format!(" verdict=bulk body={} ", 22 * n));
    }
    assert_eq!(check(&site, &letter(6), Some(club))["held"], "messages");
    let metrics = page::metrics(&daemon);
    assert_eq!(metrics["bulkmark_messages_held_total"], 2.0);
    assert!(send(&daemon, club, &letter(6), 22).reply.starts_with("550 "));
}

#[test]
fn networks_are_those_of_ipv4_and_ipv6() {
    let site = Site::new(REFUSING);
    let daemon = site.start();
    // All of it from two networks, in different notations.
    let first = ["192.0.2.1", "::ffff:192.0.2.2", "2002:c000:203::1", "192.0.2.255"];
    let second = ["2001:db8:1:2::3", "2001:db8:1:ffff::1"];
    for ip in first.iter().chain(&second).cycle().take(24) {
        assert_eq!(send(&daemon, ip, &letter(2), 1).reply, "c", "{ip}");
    }
    let fields = fields_of(&send(&daemon, "2001:db8:1::9", &letter(2), 1)).to_owned();
    assert!(fields.starts_with("; sources=1; ") && fields.ends_with("; held=sources"), "{fields}");
}

/// A customer of an IPv6 provider has more than one /48; to others they are one network, like those of an IPv4 /24.
#[test]
fn networks_of_one_ipv6_provider_are_one() {
    let site = Site::new(REFUSING);
    let daemon = site.start();
    for n in 0..40 {
        let answer = send(&daemon, &format!("2001:db8:{:x}::{:x}", n % 16, n + 1), &letter(2), 1);
        assert_eq!(answer.reply, "c", "copy {n}");
    }
    let fields = fields_of(&send(&daemon, "198.51.100.7", &letter(2), 1)).to_owned();
    assert!(fields.starts_with("; sources=1; ") && fields.ends_with("; held=sources"), "{fields}");
}

#[test]
fn a_client_without_an_address_is_no_network() {
    let site = Site::new(&format!("exempt = [\"authenticated\"]\n{REFUSING}"));
    let daemon = site.start();
    let mut client = Client::connect(&daemon);
    client.stage(b'C', b"localhost\0U", NOREPLY_CONNECT);
    if client.options & NO_HELO == 0 {
        client.stage(b'H', b"client.test\0", NOREPLY_HELO);
    }
    for n in 1..=30 {
        let answer = client.message(&Mail::raw(&letter(3)));
        let expected = if n < 20 { "" } else { "; sources=0; own=unknown; held=sources" };
        assert_eq!((&*answer.reply, fields_of(&answer)), ("c", expected), "copy {n}");
    }
    let [a, b, ..] = &hosts(2)[..] else { unreachable!() };
    assert_eq!(fields_of(&send(&daemon, a, &letter(3), 1)), "; sources=0; own=1; held=sources");
    assert_eq!(fields_of(&send(&daemon, b, &letter(3), 1)), "; sources=1; own=1; held=sources");
}

#[test]
fn networks_need_not_matter() {
    let site = Site::new(&format!("thresholds.min-sources = 1\n{REFUSING}"));
    let daemon = site.start();
    let hosts = hosts(2);
    assert!(send(&daemon, &hosts[0], &letter(4), 25).reply.starts_with("550 "));
    assert!(send(&daemon, &hosts[1], &letter(4), 1).reply.starts_with("550 "));
    assert_eq!(check(&site, &letter(4), None).get("sources"), None);
}

/// The networks that one member of a federation saw are known to the others.
#[test]
fn members_tell_each_other_of_networks() {
    let server = Server::new("");
    let _server = server.start();
    let site = |name: &str| {
        let entry = server.entry(name, "report");
        Site::new(&format!("upstream = [{entry}]\n{REFUSING}[sync]\ninterval = \"20ms\"\n"))
    };
    let (a, b) = (site("a"), site("b"));
    let (at_a, at_b) = (a.start(), b.start());
    let [bank, strangers @ ..] = &hosts(4)[..] else { unreachable!() };
    for (n, stranger) in (1..).zip(strangers) {
        send(&at_a, stranger, &letter(5), 20);
        wait_until("what is known at the other", || {
            let found = check(&b, &letter(5), Some(bank));
            let others = &found["sources"]["others"];
            if *others == json!(n) { Ok(()) } else { Err(found.to_string()) }
        });
        let answer = send(&at_b, bank, &letter(5), 1);
        assert_eq!(answer.reply == "c", n < 3, "{n} networks: {answer:?}");
    }
    // The other site's copies add to the count of the bank's own ones.
    wait_until("the bank's copies", || {
        let found = check(&a, &letter(5), Some(bank));
        if found["sources"]["own"] == json!(3) { Ok(()) } else { Err(found.to_string()) }
    });
}
