// SPDX-License-Identifier: GPL-3.0-or-later
//! A coded delta of any origin: an error, or a delta within its bounds that encodes to the same bytes again.

#![no_main]

use bulkmark_filter::{CELLS_PER_BLOCK, Delta};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [scale, blocks, limit, coded @ ..] = data else { return };
    // 1 to 2^32 blocks, as filters have them; 0 to 65,025 cells.
    let blocks = (usize::from(*blocks) + 1) << (scale % 25);
    let limit = usize::from(*limit).pow(2);
    let Ok(delta) = Delta::decode(coded, blocks, limit) else { return };
    assert_eq!(delta.encode(), coded);
    assert_eq!(delta.blocks(), blocks);
    assert!(delta.len() <= limit);
    assert!(delta.changes().is_sorted_by(|a, b| a.0 < b.0), "in order, none twice");
    assert!(delta.changes().all(|(cell, by)| cell / CELLS_PER_BLOCK < blocks && by > 0));
});
