// SPDX-License-Identifier: GPL-3.0-or-later
//! Requests to the HTTP interface: a query and header fields of any bytes are read without a panic, and a message's header ends at the same place
//! however its bytes are cut.

#![no_main]

use bulkmark::interfaces::{Head, asked};
use libfuzzer_sys::fuzz_target;

fn body(data: &[u8], size: usize) -> (bool, Vec<u8>) {
    let (mut head, mut body) = (Head::default(), Vec::new());
    for piece in data.chunks(size) {
        body.extend_from_slice(head.take(piece));
    }
    (head.is_whole(), body)
}

fuzz_target!(|data: &[u8]| {
    let [size, data @ ..] = data else { return };
    assert_eq!(body(data, usize::from(*size) + 1), body(data, data.len().max(1)));
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let query = lines.next().unwrap_or_default();
    let fields: Vec<_> = lines.map(str::to_owned).collect();
    let _ = asked(query, |name| fields.iter().skip(name.len()).take(2).cloned().collect());
});
