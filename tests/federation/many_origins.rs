// SPDX-License-Identifier: GPL-3.0-or-later
//! Ten thousand origins: their list does not fit into a URL, and was refused in a stream.

use bulkmark_counts::{Chain, Mark, Origin, Past, Vector};
use bulkmark_sync::wire::{UPDATES, encode_alive, encode_past, frame};
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::server::{Server, milter, parameters};
use bulkmark_testing::standin::{StandIn, endless};
use bulkmark_testing::{status, wait_until};

const ORIGINS: u64 = 10_000;

/// A server that knows many origins whose counts have all expired.
fn peer() -> StandIn {
    let mark = Mark { version: 3, chain: Chain([5; 16]) };
    let origins: Vec<_> = (1..=ORIGINS).map(|n| Origin(n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    let mut vector = Vector::new();
    origins.iter().for_each(|&origin| vector.set(origin, mark));
    let past: Vec<_> = origins.iter().map(|&origin| Past { origin, mark, over_at: 1 }).collect();
    let stream = [UPDATES, &frame(&encode_alive(&vector))[..], &frame(&encode_past(&past))].concat();
    let fields = format!("Bulkmark-Parameters: {}\r\n", parameters());
    StandIn::new(0, move |_| Some(endless(&fields, &stream, &frame(b""))))
}

/// A server takes them over, and a milter that follows it is up to date and continues to count.
#[test]
fn a_federation_of_ten_thousand_origins() {
    let peer = peer();
    let mut server = Server::new("");
    server.extra = format!("peer = [{{ url = \"http://127.0.0.1:{}\" }}]", peer.port);
    let entries = ["a", "b"].map(|name| server.entry(name, "report"));
    let _runs = server.start();
    let [a, b] = entries.map(|entry| milter(&[entry]));
    let (_at_a, at_b) = (a.start(), b.start());
    wait_until("all origins at a milter", || {
        let status = status(&a);
        let known = status["ledger"]["origins"].as_u64().unwrap_or(0);
        let error = &status["links"][0]["error"];
        if known >= ORIGINS && error.is_null() { Ok(()) } else { Err(format!("{known} origins, {error}")) }
    });
    send(&at_b, &letter(1), 5);
    wait_for(&a, &letter(1), 5);
}
