// SPDX-License-Identifier: GPL-3.0-or-later
//! The data in a fleet's log: batches, steps and parts of snapshots of any bytes are refused, or encode to the same bytes again.

#![no_main]

use bulkmark_counts::{FleetAssembly, Settings, SpoolBatch, Step};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // A fuzzer does not find kind and checksum.
    let sealed = |kind: &[u8]| {
        let bytes = [kind, data].concat();
        [&bytes[..], &crc32fast::hash(&bytes).to_le_bytes()].concat()
    };
    let bytes = sealed(b"BMFB\x01");
    if let Some(carried) = SpoolBatch::decode(&bytes) {
        assert_eq!(carried.encode(), bytes);
    }
    let bytes = sealed(b"BMFS\x01");
    if let Ok(step) = Step::decode(&bytes) {
        assert_eq!(step.encode(), bytes);
    }
    let mut assembly = FleetAssembly::new(&Settings::default());
    if assembly.push(&sealed(b"BMFP\x01\0\0\0\0")).is_ok() {
        assert!(assembly.push(&sealed(b"BMFP\x01\0\0\0\0")).is_err(), "no part comes twice");
    }
    let _ = (SpoolBatch::decode(data), Step::decode(data), assembly.push(data));
});
