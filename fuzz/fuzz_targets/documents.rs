// SPDX-License-Identifier: GPL-3.0-or-later
//! Any bytes as an attached document: read without a panic, in bounded time and memory, and as the same document under any header.

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
const BOUNDARY: &str = "-a-boundary-that-no-document-has-";

fn near(bytes: &[u8], media: &str) -> Near {
    let head = format!(
        "Content-Type: multipart/mixed; boundary=\"{BOUNDARY}\"\n\n--{BOUNDARY}\n\nSee below\n--{BOUNDARY}\n\
         Content-Type: {media}\nContent-Disposition: attachment\n\n"
    );
    // Large enough to be read. No part of it is a comment of a ZIP file.
    let rest = vec![b' '; SMALL.saturating_sub(bytes.len())];
    let end = format!("\n--{BOUNDARY}--\n");
    let raw = [head.as_bytes(), bytes, &rest, end.as_bytes()].concat();
    let message = RawMessage::from_bytes(&raw);
    under(&message, &KEY, &Scheme::SHIPPED)
}

fuzz_target!(|bytes: &[u8]| {
    let found = near(bytes, "application/pdf");
    assert!(found.reported().count() <= 8);
    assert_eq!(near(bytes, "application/zip"), found);
});
