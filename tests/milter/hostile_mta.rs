// SPDX-License-Identifier: GPL-3.0-or-later
//! Bytes at the milter's port that are not the milter protocol: that connection ends, others go on.

use bulkmark_testing::milter::*;
use bulkmark_testing::page;
use bulkmark_testing::{Site, random::Random};
use std::process::Command;

/// Packets after which the stream cannot be parsed any more, before and after the negotiation.
#[test]
fn garbage_ends_its_connection_only() {
    let site = Site::new("[status]\nlisten = \"127.0.0.1:0\"\n");
    let mut daemon = site.start();
    let mut witness = session(&daemon);
    let mut random = Random::new(6);
    let noise: Vec<u8> = (0..4096).map(|_| random.next() as u8 | 0x80).collect();
    let cases: [(&str, &[u8]); 8] = [
        ("another protocol", b"GET / HTTP/1.0\r\n\r\n"),
        ("noise", &noise),
        ("the longest length", b"\xFF\xFF\xFF\xFFOxxxx"),
        ("just too long", b"\x00\x10\x00\x02Mxxxx"),
        ("a hello of TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01"),
        ("an unknown command", b"\x00\x00\x00\x01Z"),
        ("a body out of place", b"\x00\x00\x00\x04Bxyz\x00\x00\x00\x01Z"),
        ("no length at all", b"\x00\x00\x00\x00Z"),
    ];
    for (i, (name, bytes)) in cases.into_iter().enumerate() {
        for negotiated in [false, true] {
            let mut client = if negotiated { Client::connect(&daemon) } else { Client::open(&daemon) };
            client.raw(bytes);
            assert!(client.is_closed(), "{name}, negotiated: {negotiated}");
        }
        let count = 1 + i as u32;
        assert_eq!(witness.message(&Mail::text("from a witness")).count(), Some(count), "{name}");
    }
    for payload in [&b""[..], b"xy", b"\0\0\0\x06\0\0"] {
        let mut client = Client::open(&daemon);
        client.send(b'O', payload);
        assert!(client.is_closed(), "a negotiation of {} bytes", payload.len());
    }
    assert_eq!(witness.message(&Mail::text("from a witness")).count(), Some(9));
    // Each of them is logged and counted.
    let errors = page::metrics(&daemon)["bulkmark_milter_protocol_errors_total{effect=\"ended\"}"];
    assert_eq!(errors, 19.0);
    daemon.log.wait_for(0, "is closed, and its message not judged: a packet begins with the byte 0x2f");
    daemon.log.wait_for(0, "is closed, and its message not judged: the offer is too short");
    assert!(daemon.child.try_wait().unwrap().is_none());
    assert!(!daemon.log.lines().iter().any(|line| line.contains("panicked")));
    assert!(daemon.terminate().success());
}

/// The connection breaks: within a packet, within a message, before the answer. No unfinished message is counted; one whose end arrived
/// may be.
#[test]
fn connections_that_break_off() {
    let site = Site::new("");
    let daemon = site.start();
    let mail = Mail::text("broken off");
    for stage in 0..30 {
        let mut client = session(&daemon);
        match stage % 5 {
            0 => client.raw(b"\x00\x00"),
            1 => client.raw(b"\x00\x00\x10\x00Mhalf a packet"),
            2 => client.begin(&Mail { body: Vec::new(), ..mail.clone() }),
            3 => client.begin(&mail),
            _ => {
                client.begin(&mail);
                client.raw(b"\x00\x00\x00");
            }
        }
        client.try_flush();
    }
    assert_eq!(session(&daemon).message(&mail).count(), Some(1));
    assert!(daemon.terminate().success(), "no message was left behind as being received");
}

/// Commands in an order that no MTA uses: ignored or answered, and the connection still accepts a proper message.
#[test]
fn commands_out_of_order() {
    let site = Site::new("");
    let daemon = site.start();
    let mut random = Random::new(7);
    let payload = |kind: u8| -> &'static [u8] {
        match kind {
            b'C' => b"host\x004\0\x19192.0.2.7\0",
            b'H' => b"helo\0",
            b'M' | b'R' => b"<a@example.org>\0",
            b'L' => b"Subject\0s\0",
            b'B' => b"a body of eight words, or a few more than that\r\n",
            b'U' => b"NOOP\0",
            b'D' => b"Mi\x004TEST\0",
            _ => b"",
        }
    };
    for _ in 0..60 {
        let mut client = Client::connect(&daemon);
        for _ in 0..random.below(30) {
            let kind = b"CHMRTLNBEADU"[random.below(12)];
            client.send(kind, payload(kind));
        }
        // The answers in between are not known; so the protocol's own command closes this connection.
        client.send(b'Q', b"");
        assert!(client.is_closed());
    }
    let mut client = session(&daemon);
    for kind in b"BENTLR" {
        client.send(*kind, payload(*kind));
    }
    assert_eq!(client.message(&Mail::text("in order at last")).count(), Some(1));
    assert!(daemon.terminate().success());
}

/// Silent connections, before and after the negotiation, do not slow down others.
#[test]
fn idle_connections_do_not_matter() {
    let site = Site::new("");
    let daemon = site.start();
    let idle: Vec<_> =
        (0..200).map(|i| if i % 2 == 0 { Client::open(&daemon) } else { Client::connect(&daemon) }).collect();
    let mut client = session(&daemon);
    for count in 1..=5 {
        assert_eq!(client.message(&Mail::text("beside idle ones")).count(), Some(count));
    }
    // Nor do they delay the shutdown.
    drop(client);
    assert!(daemon.terminate().success());
    drop(idle);
}

/// Without free descriptors, open connections go on, and new ones are served when others end.
#[test]
fn too_many_connections_for_the_system() {
    let site = Site::new("");
    let config = site.config();
    let mut command = Command::new("bash");
    command
        .args(["-c", "ulimit -n 64 && exec \"$0\" milter --config \"$1\"", bulkmark_testing::program()])
        .arg(&config);
    let mut daemon = site.spawn_by(&mut command).listening();
    let mut witness = session(&daemon);
    assert_eq!(witness.message(&Mail::text("before")).count(), Some(1));
    let crowd: Vec<_> = (0..100).map(|_| Client::open(&daemon)).collect();
    daemon.log.wait_for(0, "cannot take a connection: Too many open files");
    assert_eq!(witness.message(&Mail::text("before")).count(), Some(2), "counting needs no descriptor");
    assert!(daemon.child.try_wait().unwrap().is_none());
    drop(crowd);
    assert_eq!(session(&daemon).message(&Mail::text("after")).count(), Some(1));
    assert!(daemon.terminate().success());
}
