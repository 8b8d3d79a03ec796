// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail forwarded by one's own mail servers: its client is the one that their Received field names.

use bulkmark_testing::milter::{Answer, Client, Mail};
use bulkmark_testing::networks::strangers;
use bulkmark_testing::{Daemon, Site, status};

const RELAYS: &str = "relays = [\"192.0.2.8\", \"2001:db8::/48\"]\n";

/// The field that a mail server at `by` writes for its client.
fn received(ip: &str, by: &str) -> String {
    format!(
        "from me.example (me.example [{ip}])\n\tby {by} (Postfix) with ESMTP id 4ID\n\tfor <x@box.test>; Sat, 1 Aug 2026 10:00:00 +0000"
    )
}

/// Sends a message with these Received fields, first one on top, from a client at `ip`. Returns the answer and the client of the log line.
fn send(daemon: &Daemon, id: &str, ip: &str, fields: &[String]) -> (Answer, String) {
    let mut client = Client::connect(daemon);
    client.client("relay.example.org", ip);
    let mut mail = Mail { id: id.to_owned(), ..Mail::text("one offer") };
    // Other fields may come above.
    let above = [(b"X-Filter".to_vec(), b"passed".to_vec())];
    let fields = fields.iter().map(|field| (b"Received".to_vec(), field.clone().into_bytes()));
    mail.headers = above.into_iter().chain(fields).chain(mail.headers).collect();
    let answer = client.message(&mail);
    let line = daemon.log.wait_for(0, &format!("{id}: client="));
    let client = line.split("client=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    (answer, client)
}

#[test]
fn the_first_client_that_is_no_relay_sent_it() {
    let site = Site::new(RELAYS);
    let daemon = site.start();
    let forged = received("203.0.113.66", "bank.example");
    let of = |id, ip, fields: &[String]| send(&daemon, id, ip, fields).1;
    let outside = received("203.0.113.5", "gateway.test");
    let from_relay = received("2001:db8::7", "inner.test");
    // Anybody may have written the fields below.
    assert_eq!(of("4A", "192.0.2.8", &[outside.clone(), forged.clone()]), "unknown[203.0.113.5]");
    assert_eq!(of("4B", "192.0.2.8", &[from_relay, outside.clone(), forged.clone()]), "unknown[203.0.113.5]");
    assert_eq!(of("4C", "2001:db8::9", &[outside.clone(), forged.clone()]), "unknown[203.0.113.5]");
    // A filter on the relay returned it.
    let filter = received("127.0.0.1", "gateway.test");
    let of_filter = &[filter.clone(), outside.clone(), forged.clone()];
    assert_eq!(of("4I", "192.0.2.8", of_filter), "unknown[203.0.113.5]");
    assert_eq!(of("4J", "192.0.2.8", &[filter]), "relay.example.org[192.0.2.8]");
    // A forged field that names a relay ends the search, too.
    let relay = received("192.0.2.8", "gateway.test");
    assert_eq!(
        of("4D", "192.0.2.8", &[outside.clone(), relay.clone(), forged.clone()]),
        "unknown[203.0.113.5]"
    );
    // A client that is no relay can write any field.
    assert_eq!(
        of("4E", "198.51.100.7", &[outside.clone(), forged.clone()]),
        "relay.example.org[198.51.100.7]"
    );
    assert_eq!(of("4F", "198.51.100.7", &[relay, outside]), "relay.example.org[198.51.100.7]");
    // A field without a client, or none at all: the relay itself sent it.
    let local =
        "by gateway.test (Postfix, from userid 0)\n\tid 4ID; Sat, 1 Aug 2026 10:00:00 +0000".to_owned();
    assert_eq!(of("4G", "192.0.2.8", &[local, forged]), "relay.example.org[192.0.2.8]");
    assert_eq!(of("4H", "192.0.2.8", &[]), "relay.example.org[192.0.2.8]");
}

#[test]
fn a_relay_in_exempt_networks_stays_exempt() {
    let site = Site::new(&format!("exempt-networks = [\"192.0.2.0/24\", \"203.0.113.0/24\"]\n{RELAYS}"));
    let daemon = site.start();
    let outside = received("198.51.100.7", "gateway.test");
    let exempt = "exempt; reason=network; host=mx.test";
    let (answer, client) = send(&daemon, "4A", "192.0.2.8", std::slice::from_ref(&outside));
    assert_eq!((&*answer.verdict(), &*client), (exempt, "relay.example.org[192.0.2.8]"));
    // A client behind a relay is known if the relay names it, not if another host does.
    let known = received("203.0.113.5", "gateway.test");
    let (answer, client) = send(&daemon, "4B", "2001:db8::7", std::slice::from_ref(&known));
    assert_eq!((&*answer.verdict(), &*client), (exempt, "unknown[203.0.113.5]"));
    let (answer, _) = send(&daemon, "4C", "2001:db8::7", &[outside, known]);
    assert_eq!(answer.verdict(), "clean; body=1; threshold=20; host=mx.test");
}

/// Copies from two networks are held back; those from many or from one are refused.
#[test]
fn copies_through_one_relay_come_from_the_networks_behind_it() {
    let last = |relays: &str, networks: usize| {
        let site = Site::new(&format!("{relays}[actions]\nbulk = \"reject\"\n"));
        let daemon = site.start();
        let hosts = strangers(networks, |n| format!("198.51.{n}.7"));
        let mut last = Answer::default();
        for (ip, n) in hosts.iter().cycle().zip(1..=24) {
            last = send(&daemon, &format!("4{n}N"), "192.0.2.8", &[received(ip, "gateway.test")]).0;
        }
        last
    };
    let held = last(RELAYS, 2);
    assert!(held.header().contains("; sources=1; ") && held.header().ends_with("; held=sources"), "{held:?}");
    assert!(last(RELAYS, 24).reply.starts_with("550 "));
    // Without `relays`, all come from the network of the relay.
    assert!(last("", 2).reply.starts_with("550 "));
}

/// The program reports a missing `relays` setting.
#[test]
fn a_network_that_brings_most_mail_of_many_senders_is_told() {
    let likely = |relays: &str| {
        let site = Site::new(relays);
        let daemon = site.start();
        let mut client = Client::connect(&daemon);
        client.client("relay.example.org", "192.0.2.8");
        let field = (b"Received".to_vec(), received("203.0.113.5", "gateway.test").into_bytes());
        for n in 0..220 {
            let mut mail = Mail { sender: format!("a@{}.example", n % 30), ..Mail::text(&format!("of {n}")) };
            mail.headers.insert(0, field.clone());
            client.message(&mail);
        }
        status(&site)["likely-relays"].clone()
    };
    assert_eq!(likely("")[0]["client"], "192.0.2.8");
    // The client behind it is also one network with many senders.
    assert_eq!(likely(RELAYS)[0]["client"], "203.0.113.5");
}
