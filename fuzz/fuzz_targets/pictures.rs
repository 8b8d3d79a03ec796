// SPDX-License-Identifier: GPL-3.0-or-later
//! Any bytes as an enclosed picture: read without a panic, in bounded time and memory, and as the same picture under any header.

#![no_main]

use bulkmark_mail::RawMessage;
use bulkmark_signature::near::{Near, Scheme, under};
use bulkmark_types::FederationKey;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static KEY: LazyLock<FederationKey> = LazyLock::new(FederationKey::public);

/// The size below which a file is ignored.
const SMALL: usize = 1024;

/// The separator of the parts. An input that contains it has two parts, which is equally useful.
const BOUNDARY: &str = "-a-boundary-that-no-picture-has-";

fn near(bytes: &[u8], media: &str) -> Near {
    let page = "Content-Type: text/html\n\n<img src='cid:p'>";
    let head = format!(
        "Content-Type: multipart/related; boundary=\"{BOUNDARY}\"\n\n--{BOUNDARY}\n{page}\n--{BOUNDARY}\n\
         Content-Type: {media}\nContent-ID: <p>\n\n"
    );
    // Of a truncated picture, the available part counts.
    let rest = vec![0; SMALL.saturating_sub(bytes.len())];
    let end = format!("\n--{BOUNDARY}--\n");
    let raw = [head.as_bytes(), bytes, &rest, end.as_bytes()].concat();
    let message = RawMessage::from_bytes(&raw);
    under(&message, &KEY, &Scheme::SHIPPED)
}

fuzz_target!(|bytes: &[u8]| {
    let found = near(bytes, "image/png");
    assert!(found.reported().count() <= 8);
    assert_eq!(near(bytes, "application/octet-stream"), found);
});
