// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 12, and idle connections of row 13: clients of a milter that keep it busy at others' cost.

use super::{Outcome, Scale};
use bulkmark_samples::encode::base64;
use bulkmark_testing::milter::{Client, Mail, session};
use bulkmark_testing::{Daemon, Site};
use std::time::{Duration, Instant};

/// The longest time that a small message may wait behind others.
const SHORT: Duration = Duration::from_secs(1);

/// The time within which a connection must be accepted when silent ones hold all places.
const PATIENCE: Duration = Duration::from_secs(45);

/// A picture of one colour, with many pixels in few bytes.
fn picture() -> Vec<u8> {
    let (width, height) = (2000, 2000);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&vec![0x40; 3 * (width * height) as usize]).unwrap();
    drop(writer);
    bytes
}

/// A message of about `bytes` bytes: a page with as many pictures as fit.
fn album(bytes: usize) -> Vec<u8> {
    let picture = base64(&picture());
    let mut text = "Subject: an album\r\nContent-Type: multipart/related; boundary=b\r\n\r\n--b\r\n\
                    Content-Type: text/html\r\n\r\n<p>Here they are:"
        .to_owned();
    let pictures = bytes / picture.len();
    (0..pictures).for_each(|n| text += &format!("<img src=\"cid:{n}\">"));
    for n in 0..pictures {
        text += &format!(
            "\r\n--b\r\nContent-Type: image/png\r\nContent-ID: <{n}>\r\nContent-Transfer-Encoding: base64\r\n\r\n{picture}"
        );
    }
    format!("{text}\r\n--b--\r\n").into_bytes()
}

fn site() -> (Site, Daemon) {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let daemon = site.start();
    (site, daemon)
}

pub(crate) fn large_messages(_: Scale) -> Outcome {
    let (_site, daemon) = site();
    let album = album(250_000);
    let mut large: Vec<Client> = (0..100)
        .map(|_| {
            let mut client = session(&daemon);
            client.begin(&Mail::raw(&album));
            client.flush();
            client
        })
        .collect();
    let mut small = session(&daemon);
    small.begin(&Mail::text("a small one of few words that comes behind the large ones"));
    small.flush();
    let began = Instant::now();
    for client in &mut large {
        client.send(b'E', b"");
        client.flush();
    }
    let answer = small.end();
    let waited = began.elapsed();
    assert!(answer.count().is_some(), "{answer:?}");
    Outcome::new(
        format!("100 messages of {} kB, all pictures, end at once", album.len() / 1000),
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
