// SPDX-License-Identifier: GPL-3.0-or-later
//! High load: large messages, and silent connections. Neither delays others.

use bulkmark_testing::milter::{ALL_ACTIONS, ALL_OPTIONS, Client, Mail, session};
use bulkmark_testing::{Daemon, Site};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The number of large messages sent at once.
const LARGE: usize = 12;

/// The memory of all messages together.
const MEMORY: usize = 256 << 20;

/// A message of so many bytes of words.
fn text(bytes: usize, seed: usize) -> Mail {
    let mut text = String::new();
    let mut n = seed as u64 + 1;
    while text.len() < bytes {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text += &format!("word{} ", n >> 40);
        if n >> 60 == 0 {
            text += "\r\n";
        }
    }
    Mail::text(&text)
}

#[test]
fn a_small_message_does_not_wait_for_large_ones() {
    let site = Site::new("verdict-deadline = \"4m\"\n");
    let daemon = site.start();
    let mut small = session(&daemon);
    assert_eq!(small.message(&Mail::text("before")).count(), Some(1));
    let mut large: Vec<Client> = (0..LARGE).map(|_| session(&daemon)).collect();
    for (n, client) in large.iter_mut().enumerate() {
        client.begin(&text(250_000, n));
        client.flush();
    }
    let order = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in &mut large {
            client.send(b'E', b"");
            client.flush();
        }
        let ends: Vec<_> = large
            .iter_mut()
            .map(|client| {
                scope.spawn(|| {
                    assert_eq!(client.answer().unwrap().count(), Some(1));
                    order.fetch_add(1, Ordering::SeqCst)
                })
            })
            .collect();
        assert_eq!(small.message(&Mail::text("meanwhile")).count(), Some(1));
        let before = order.fetch_add(1, Ordering::SeqCst);
        assert!(before <= LARGE / 3, "{before} of {LARGE} large messages were answered first");
        let places: Vec<usize> = ends.into_iter().map(|end| end.join().unwrap()).collect();
        assert_eq!(places.len(), LARGE);
    });
}

fn crowded() -> (Site, Daemon) {
    let site = Site::new("max-connections = 3\nidle-timeout = \"1s\"\n");
    let daemon = site.start();
    (site, daemon)
}

/// Three clients: one that never sends anything, one without a message, and one that never ends its message.
fn silent(daemon: &Daemon) -> [Client; 3] {
    let mut within = session(daemon);
    within.macros(b'M', &[("i", "4SILENT")]);
    within.send(b'M', b"<a@example.org>\0");
    within.flush();
    let mut between = session(daemon);
    between.flush();
    [Client::open(daemon), between, within]
}

#[test]
fn silent_connections_make_room() {
    let (_site, daemon) = crowded();
    let mut held = silent(&daemon);
    let mut served: Vec<Client> = Vec::new();
    for n in 0..3 {
        let mut client = session(&daemon);
        assert_eq!(client.message(&Mail::text(&format!("message {n}"))).count(), Some(1), "client {n}");
        served.push(client);
    }
    assert!(held.iter_mut().all(Client::is_closed));
    let line = daemon.log.wait_for(0, "as many as max-connections allows");
    assert!(line.contains("3 connections are open"), "{line}");
    // An active connection is not the one to be closed.
    let mut busy = served.pop().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut clients: Vec<_> = (0..4).map(|_| session(&daemon)).collect();
            clients.iter_mut().last().unwrap().message(&Mail::text("the last")).count()
        });
        while !other.is_finished() {
            assert!(busy.message(&Mail::text("again and again")).count().is_some());
        }
        assert_eq!(other.join().unwrap(), Some(1));
    });
}

#[test]
fn nobody_is_closed_while_nobody_waits() {
    let (_site, daemon) = crowded();
    let mut clients = [session(&daemon), session(&daemon)];
    let mut unheard = Client::open(&daemon);
    let silence = Instant::now();
    while silence.elapsed() < Duration::from_secs(3) {
        assert!(clients[0].message(&Mail::text("meanwhile")).count().is_some());
    }
    assert!(clients[1].message(&Mail::text("at last")).count().is_some());
    unheard.negotiate(6, ALL_ACTIONS, ALL_OPTIONS);
}

/// Many long recipients take as much memory as a message, and have room only where messages have: all processes of the machine together
/// cannot make the milter grow beyond it.
#[test]
fn recipients_count_as_memory_of_messages() {
    let site = Site::new("");
    let daemon = site.start();
    // Bodies that never end leave room for the recipients of two messages.
    let body = vec![b'x'; 31 << 20];
    let mut large: Vec<Client> = (0..8).map(|_| session(&daemon)).collect();
    for client in &mut large {
        client.begin(&Mail { body: body.clone(), ..Mail::text("") });
    }
    let recipient = |n: usize| format!("{n:064}@{}.example", "y".repeat(240));
    let mail = Mail { recipients: (0..10_000).map(recipient).collect(), ..Mail::text("of many recipients") };
    let of_recipients =
        mail.recipients.iter().map(|recipient| recipient.len() + size_of::<String>()).sum::<usize>();
    assert!((2..3).contains(&((MEMORY - 8 * body.len()) / of_recipients)));
    let mut clients = [(); 3].map(|()| session(&daemon));
    for client in &mut clients {
        client.begin(&mail);
    }
    let [_, _, third] = &mut clients;
    let verdict = third.end().verdict();
    assert!(verdict.starts_with("unknown; reason=overloaded;"), "{verdict}");
    drop(large);
    drop(clients);
    bulkmark_testing::wait_until("room", || {
        let verdict = session(&daemon).message(&mail).verdict();
        if verdict.contains("body=") { Ok(()) } else { Err(verdict) }
    });
}
