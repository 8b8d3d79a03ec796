// SPDX-License-Identifier: GPL-3.0-or-later
//! Any message: what its signatures are held against is taken of it without a panic, and nothing is proven where nobody is asked.

#![no_main]

use bulkmark::lookup::Evidence;
use bulkmark_mail::RawMessage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(message) = RawMessage::exact_from_bytes(data) else { return };
    assert_eq!(Evidence::of(&message).is_some(), message.exact_header().is_some());
});
