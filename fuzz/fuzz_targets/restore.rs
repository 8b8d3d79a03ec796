// SPDX-License-Identifier: GPL-3.0-or-later
//! The cells of a filter from a ledger: refused, or a filter that can be added to and whose own bytes give the same filter again.

#![no_main]

use bulkmark_filter::{Counting, Refined};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [blocks, times, bytes @ ..] = data else { return };
    let blocks = usize::from(*blocks % 64) + 1;
    let mut filter = Refined::new(blocks).unwrap();
    if !filter.restore(0..blocks, bytes) {
        assert_eq!(filter.bytes(0..blocks), vec![0; 64 * blocks], "nothing is changed");
        return;
    }
    let mut again = Refined::new(blocks).unwrap();
    assert!(again.restore(0..blocks, &filter.bytes(0..blocks)));
    assert_eq!(again.bytes(0..blocks), filter.bytes(0..blocks));

    let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
    let (before, times) = (filter.count(element), u32::from(*times));
    let after = filter.add(element, times);
    assert_eq!(after, filter.count(element));
    assert!(after >= before.saturating_add(times), "{before} and {times} are {after}");
});
