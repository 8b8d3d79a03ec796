// SPDX-License-Identifier: GPL-3.0-or-later
//! Any message: the evidence for its signatures is read without a panic, and exists exactly if the header was kept.

#![no_main]

use bulkmark::lookup::Evidence;
use bulkmark_mail::RawMessage;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let message = RawMessage::exact_from_bytes(data);
    assert_eq!(Evidence::of(&message).is_some(), message.exact_header().is_some());
});
