// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 12, and idle connections of row 13: clients of a milter that keep it busy for the others.

use crate::common::milter::{Client, Mail, session};
use crate::common::random::Random;
use crate::common::{Daemon, Site};
use crate::{Outcome, Scale};
use std::time::{Duration, Instant};

/// The longest time that a small message may wait behind others.
const SHORT: Duration = Duration::from_secs(1);

/// How soon a connection must be taken where others have all that there are and say nothing.
const PATIENCE: Duration = Duration::from_secs(45);

/// A page of so many bytes and of words that nobody else uses.
fn page(random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut text = "Subject: a page\r\nContent-Type: text/html\r\n\r\n<html><body>".to_owned();
    while text.len() < bytes {
        text += &format!(
            "<p class=\"a\"><b>{:x}</b> {:x} <i>{:x}</i></p>\r\n",
            random.next(),
            random.next(),
            random.next()
        );
    }
    text.into_bytes()
}

fn site() -> (Site, Daemon) {
    let site = Site::new("exempt-loopback = false\n");
    let daemon = site.start();
    (site, daemon)
}

pub(crate) fn large_messages(_: Scale) -> Outcome {
    let (_site, daemon) = site();
    let mut random = Random::new(1);
    let mut large: Vec<Client> = (0..100)
        .map(|_| {
            let mut client = session(&daemon);
            client.begin(&Mail::raw(&page(&mut random, 250_000)));
            client.flush();
            client
        })
        .collect();
    let mut small = session(&daemon);
    small.begin(&Mail::text("a small one of few words that comes behind the large ones"));
    small.flush();
    for client in &mut large {
        client.send(b'E', b"");
        client.flush();
    }
    let began = Instant::now();
    let answer = small.end();
    let waited = began.elapsed();
    assert!(answer.count().is_some(), "{answer:?}");
    Outcome::new(
        "100 messages of 250 kB end at once",
        format!("a small one waits {:.2} s", waited.as_secs_f64()),
        waited <= SHORT,
    )
}

pub(crate) fn idle_connections(_: Scale) -> Outcome {
    let (_site, daemon) = site();
    let _idle: Vec<_> = (0..1000).map(|_| Client::connect(&daemon)).collect();
    let began = Instant::now();
    let other = std::thread::scope(|scope| {
        scope.spawn(|| session(&daemon).message(&Mail::text("somebody else's message")).count()).join()
    });
    let waited = began.elapsed();
    let what = if other.is_ok() { "waits" } else { "has waited in vain for" };
    let came = format!("another {what} {:.1} s", waited.as_secs_f64());
    let kept = other.is_ok() && waited <= PATIENCE;
    Outcome::new("1,000 milter connections that negotiated and say nothing", came, kept)
}
