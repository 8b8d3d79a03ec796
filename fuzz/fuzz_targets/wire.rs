// SPDX-License-Identifier: GPL-3.0-or-later
//! Data from the network: batches, receipts, streams, updates, rows and vectors of any bytes are refused, or encode to the same
//! bytes again.

#![no_main]

use bulkmark_counts::{Row, Update, Vector};
use bulkmark_sync::wire::{self, Frames, Reports, SnapshotHead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [piece, data @ ..] = data else { return };
    // A fuzzer does not find the checksum.
    let sealed = [data, &crc32(data)].concat();
    if let Ok(reports) = Reports::decode(&sealed) {
        let again = Reports::decode(&reports.encode());
        assert_eq!(again, Ok(reports));
    }
    let _ = wire::decode_receipt(&sealed);
    if let Ok(update) = Update::decode(data) {
        assert_eq!(update.encode(), data);
    }
    if let Some(row) = Row::decode(data) {
        assert_eq!(row.encode(), data);
    }
    if let Some(head) = SnapshotHead::decode(data) {
        assert_eq!(SnapshotHead::decode(&head.encode()), Some(head));
    }
    if let Some(vector) = wire::decode_alive(data) {
        assert!(Update::decode(data).is_err(), "no update is taken for a sign of life");
        assert_eq!(wire::decode_alive(&wire::encode_alive(&vector)), Some(vector));
    }
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(vector) = text.parse::<Vector>()
    {
        assert_eq!(vector.to_string().parse(), Ok(vector));
    }
    let mut frames = Frames::new(wire::UPDATES);
    for piece in data.chunks(usize::from(*piece) + 1) {
        frames.push(piece);
        while let Ok(Some(_)) = frames.take() {}
    }
});

fn crc32(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
}
