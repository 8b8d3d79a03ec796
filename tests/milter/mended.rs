// SPDX-License-Identifier: GPL-3.0-or-later
//! Packets that the library cannot parse, but that must not cost an MTA its message: each is repaired, logged and counted, and the message
//! is judged.

use bulkmark_testing::milter::*;
use bulkmark_testing::random::Random;
use bulkmark_testing::{Daemon, Site, page};

const STATUS: &str = "[status]\nlisten = \"127.0.0.1:0\"\n";

fn mended(daemon: &Daemon) -> f64 {
    page::metrics(daemon)["bulkmark_milter_protocol_errors_total{effect=\"mended\"}"]
}

/// Opens a session that announces its client by this packet.
fn client_of(daemon: &Daemon, family: u8, address: &str, options: u32) -> Client {
    let mut client = Client::negotiated(daemon, 6, ALL_ACTIONS, options);
    let payload = [b"mail.client.example\0", &[family, 0, 25][..], address.as_bytes(), b"\0"].concat();
    client.stage(b'C', &payload, NOREPLY_CONNECT);
    client
}

/// Sendmail writes `IPv6:` before a client's address. Log and white list use the usual form of the address.
#[test]
fn addresses_as_mail_servers_write_them() {
    let site = Site::new(&format!("exempt-networks = [\"2001:db8:ee::/48\"]\n{STATUS}"));
    let daemon = site.start();
    let mail = Mail::text("from everywhere");
    let addresses = [
        (b'6', "IPv6:2001:db8:0:0:0:0:0:25", "2001:db8::25"),
        (b'6', "ipv6:2001:db8::26", "2001:db8::26"),
        (b'4', "IPv4:192.0.2.27", "192.0.2.27"),
        (b'6', "fe80::28%eth0", "fe80::28"),
        (b'6', "::ffff:192.0.2.29", "192.0.2.29"),
        (b'6', "192.0.2.30", "192.0.2.30"),
        (b'4', "2001:db8::31", "2001:db8::31"),
    ];
    for (count, (family, address, shown)) in (1..).zip(addresses) {
        for options in [0, ALL_OPTIONS] {
            let answer = client_of(&daemon, family, address, options).message(&mail);
            assert_eq!(answer.count(), Some(2 * count - u32::from(options == 0)), "{address}");
            daemon.log.wait_for(0, &format!("[{shown}]"));
        }
    }
    let exempt = client_of(&daemon, b'6', "IPv6:2001:db8:ee::1", ALL_OPTIONS).message(&mail);
    assert!(exempt.header().starts_with("exempt; reason=network"), "{exempt:?}");
    assert_eq!(mended(&daemon), 0.0, "this is how Sendmail is");
}

/// A client without a readable address does not count as local: the message is judged.
#[test]
fn clients_whose_address_cannot_be_read() {
    let site = Site::new(STATUS);
    let daemon = site.start();
    let mail = Mail::text("from nowhere");
    let clients = [(b'4', ""), (b'6', "IPv6:"), (b'4', "nonsense"), (b'X', "192.0.2.7"), (b'6', "1.2.3.4.5")];
    for (count, (family, address)) in (1..).zip(clients) {
        assert_eq!(
            client_of(&daemon, family, address, ALL_OPTIONS).message(&mail).count(),
            Some(count),
            "{address}"
        );
        daemon.log.wait_for(
            0,
            &format!("the client's address \"{address}\" of family {} cannot be read", char::from(family)),
        );
    }
    for (count, payload) in (6..).zip([&b"host"[..], b"host\0", b"host\0X", b"host\x004\0\x19nonsense"]) {
        let mut client = Client::connect(&daemon);
        client.stage(b'C', payload, NOREPLY_CONNECT);
        assert_eq!(client.message(&mail).count(), Some(count), "{payload:?}");
    }
    assert_eq!(mended(&daemon), 9.0);
    // The MTA itself reports no address: local mail.
    let local = client_of(&daemon, b'U', "", ALL_OPTIONS).message(&mail);
    assert!(local.header().starts_with("exempt; reason=loopback"), "{local:?}");
}

/// Stages of a message, with and without answers.
#[test]
fn stages_of_a_message() {
    let site = Site::new(STATUS);
    let daemon = site.start();
    let mail = Mail::text("not well formed");
    let mut count = 0;
    for options in [0, ALL_OPTIONS] {
        for (kind, payload, unanswered) in [
            (b'L', &b"name only"[..], NOREPLY_HEADER),
            (b'L', b"\0value\0", NOREPLY_HEADER),
            (b'L', b"name\0value", NOREPLY_HEADER),
            (b'L', b"", NOREPLY_HEADER),
            (b'R', b"<b@example.net>", NOREPLY_RCPT),
            (b'R', b"", NOREPLY_RCPT),
        ] {
            let mut client = client_of(&daemon, b'4', "192.0.2.7", options);
            client.stage(b'M', b"<a@example.net>", NOREPLY_MAIL);
            client.stage(b'R', b"<c@example.net>\0", NOREPLY_RCPT);
            client.stage(kind, payload, unanswered);
            for (name, value) in &mail.headers {
                client.stage(b'L', &[name, &[0][..], value, &[0]].concat(), NOREPLY_HEADER);
            }
            client.send(b'D', b"");
            client.stage(b'N', b"", 0x4_0000);
            client.stage(b'B', b"", NOREPLY_BODY);
            client.stage(b'B', &mail.body, NOREPLY_BODY);
            client.stage(b'B', b"", NOREPLY_BODY);
            // One copy for each recipient.
            count += 1 + u32::from(kind == b'R');
            assert_eq!(client.end().count(), Some(count), "{:?} {payload:?} {options}", char::from(kind));
            // The session goes on.
            count += 1;
            assert_eq!(client.message(&mail).count(), Some(count));
        }
    }
    assert!(!daemon.log.lines().iter().any(|line| line.contains("is closed, and its message")));
}

/// Some MTAs send a body in pieces of a megabyte and more if allowed; the last piece may come with the end of the message.
#[test]
fn chunks_of_a_megabyte_and_more() {
    let site = Site::new(STATUS);
    let daemon = site.start();
    let body = |size: usize| {
        let mut random = Random::new(size as u64);
        let mut word = || char::from(b'a' + random.below(26) as u8).to_string().repeat(1 + random.below(9));
        (0..size / 35).map(|_| [(); 6].map(|()| word()).join(" ") + "\r\n").collect::<String>().into_bytes()
    };
    for (size, begin) in [(900_000, 0), (1_200_000, 1), (3_500_000, 2)] {
        for (n, options) in (0..).zip([0, ALL_OPTIONS]) {
            let mail = Mail { body: Vec::new(), ..Mail::text("long") };
            let body = body(size + 1000);
            let mut client = client_of(&daemon, b'4', "192.0.2.7", options);
            client.begin(&mail);
            client.stage(b'B', &body, NOREPLY_BODY);
            let answer = client.end();
            assert_eq!(answer.count(), Some(3 * n + 1), "{size} {options} {answer:?}");
            client.begin(&mail);
            client.send(b'E', &body);
            assert_eq!(client.answer().unwrap().count(), Some(3 * n + 2), "{size} {options}");
            // The same as for pieces of the usual size.
            assert_eq!(client.message(&Mail { body, ..mail }).count(), Some(3 * n + 3));
        }
        assert!(mended(&daemon) >= f64::from(begin));
    }
    let mut client = session(&daemon);
    client.begin(&Mail { body: Vec::new(), ..Mail::text("x") });
    client.stage(b'B', &body(100), NOREPLY_BODY);
    client.end();
    let field = [b"X-Long\0", &[b'x'; 3 << 20][..], b"\0"].concat();
    let mail = Mail::text("below a long field");
    client.stage(b'M', b"<a@example.net>\0", NOREPLY_MAIL);
    client.stage(b'R', b"<b@example.net>\0", NOREPLY_RCPT);
    client.stage(b'L', &field, NOREPLY_HEADER);
    client.stage(b'N', b"", 0x4_0000);
    client.stage(b'B', &mail.body, NOREPLY_BODY);
    client.end();
    daemon.log.wait_for(0, "its session continues: a header field is longer than 256 KiB");
}

/// An MTA that offers no actions is asked for none; its mail is counted all the same.
#[test]
fn no_actions_or_no_options_are_offered() {
    let site = Site::new("[traps]\nrecipients = [\"trap@example.org\"]\ndiscard = true\n");
    let daemon = site.start();
    let mail = Mail::text("to nobody who marks");
    for (actions, options) in [(0, 0x7F), (0, ALL_OPTIONS), (ALL_ACTIONS, 0)] {
        let mut client = Client::negotiated(&daemon, 6, actions, options);
        client.client("client.example.org", "192.0.2.7");
        let answer = client.message(&mail);
        assert_eq!((answer.added.len(), &*answer.reply), (usize::from(actions != 0), "c"));
    }
    assert_eq!(session(&daemon).message(&mail).count(), Some(4));
}
