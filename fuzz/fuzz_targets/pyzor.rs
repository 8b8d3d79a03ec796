// SPDX-License-Identifier: GPL-3.0-or-later
//! A datagram for the Pyzor interface: any bytes are read without a panic, and the signed part does not contain a signature.

#![no_main]

use bulkmark::interfaces::pyzor::Request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let request = Request::read(data);
    assert!(!request.user().is_empty() && request.thread.len() <= 16);
    let _ = request.is_of_this_version();
    let digests = request.digests();
    if let (Ok(digests), Ok(Some(first))) = (digests, request.digest()) {
        assert_eq!(digests.first(), Some(&first));
    }
    let signed = request.signed();
    assert!(signed.len() <= data.len());
    assert_eq!(Request::read(signed.as_bytes()).signature, "");
});
