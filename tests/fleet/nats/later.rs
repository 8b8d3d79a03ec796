// SPDX-License-Identifier: GPL-3.0-or-later
//! An aggregator that sees the log's clock a year ahead.

use super::cluster::Fleet;
use bulkmark_sync::Link;
use bulkmark_sync::log::Settings;
use bulkmark_sync::log::nats::Nats;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// A connection of an aggregator through a proxy that moves the reported clock.
pub(super) async fn aggregator_later(fleet: &Fleet) -> Nats {
    let mut settings: Settings = fleet.settings("agg", None);
    settings.log = format!("nats://127.0.0.1:{}", a_year_later(fleet.cluster.nodes[0].port));
    Nats::new(&settings, Arc::new(Link::new(&settings.log))).await.unwrap()
}

/// A proxy in front of a node that moves the reported clock of the log by a year.
fn a_year_later(target: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", target)).unwrap();
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut &from, &mut &to));
            std::thread::spawn(move || tell_later(&server, &client));
        }
    });
    port
}

/// Forwards all bytes, with the next year in each `"ts":"2026-...`. A possible beginning of such a field waits for the rest.
fn tell_later(mut from: &TcpStream, mut to: &TcpStream) {
    const FIELD: &[u8] = b"\"ts\":\"";
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut piece) {
        bytes.extend_from_slice(&piece[..n]);
        let fields: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(FIELD)).collect();
        for at in fields {
            let year = at + FIELD.len()..at + FIELD.len() + 4;
            if let Some(digits) = bytes.get_mut(year)
                && let Some(year) = std::str::from_utf8(digits).ok().and_then(|year| year.parse::<u32>().ok())
                && year < 2100
            {
                // This field no longer matches, so it is not changed twice.
                digits.copy_from_slice((year + 1).to_string().as_bytes());
            }
        }
        let whole = bytes.len() - beginning(&bytes, FIELD);
        if to.write_all(&bytes[..whole]).is_err() {
            return;
        }
        bytes.drain(..whole);
    }
}

/// The number of final bytes that may be the beginning of such a field with its year.
fn beginning(bytes: &[u8], field: &[u8]) -> usize {
    let longest = (field.len() + 3).min(bytes.len());
    let is_one = |&n: &usize| {
        let end = &bytes[bytes.len() - n..];
        if n <= field.len() { field.starts_with(end) } else { end.starts_with(field) }
    };
    (1..=longest).rev().find(is_one).unwrap_or(0)
}
