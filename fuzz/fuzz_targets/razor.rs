// SPDX-License-Identifier: GPL-3.0-or-later
//! Razor's protocol: any bytes are read without a panic, and have the same meaning however they are cut.

#![no_main]

use bulkmark::interfaces::razor::{Asked, Bad, Lines, Request};
use libfuzzer_sys::fuzz_target;

/// The requests in pieces of this size, and whether an incomplete one is left.
fn read(data: &[u8], size: usize) -> (Vec<Asked>, Result<bool, Bad>) {
    let (mut lines, mut asked) = (Lines::default(), Vec::new());
    let result = data.chunks(size).try_for_each(|piece| lines.take(piece, &mut asked));
    (asked, result.map(|()| lines.is_amid()))
}

fuzz_target!(|data: &[u8]| {
    let [size, data @ ..] = data else { return };
    let whole = read(data, data.len().max(1));
    assert_eq!(read(data, usize::from(*size) + 1), whole);
    for asked in &whole.0 {
        let requests = match asked {
            Asked::One(request) => std::slice::from_ref(request),
            Asked::Batch(requests) => requests,
        };
        assert!(requests.len() <= 1024);
        for request in requests {
            if let Request::Check(digest) | Request::Report(digest) | Request::Revoke(digest) = request {
                assert!(!digest.content().is_empty() && digest.content().is_ascii());
            }
        }
    }
});
