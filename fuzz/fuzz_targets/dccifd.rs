// SPDX-License-Identifier: GPL-3.0-or-later
//! The request before a message in dccifd's protocol: any bytes are read without a panic, and have the same meaning however they are
//! cut.

#![no_main]

use bulkmark::interfaces::dccifd::{Bad, Preamble, Request};
use libfuzzer_sys::fuzz_target;

/// The request in pieces of this size, and the number of the message's bytes that follow.
fn read(data: &[u8], size: usize) -> Result<Option<(Request, usize)>, Bad> {
    let mut preamble = Preamble::default();
    let mut taken = 0;
    for piece in data.chunks(size) {
        taken += piece.len();
        if let Some(rest) = preamble.take(piece)? {
            let left = data.len() - taken + rest.len();
            return Ok(Some((preamble.into_request(), left)));
        }
    }
    Ok(None)
}

fuzz_target!(|data: &[u8]| {
    let [size, data @ ..] = data else { return };
    let whole = read(data, data.len().max(1));
    assert_eq!(read(data, usize::from(*size) + 1), whole);
    if let Ok(Some((request, left))) = whole {
        assert!(left <= data.len() && !(request.spam && request.query));
        assert!(request.host.is_none() || request.client.is_some());
    }
});
