// SPDX-License-Identifier: GPL-3.0-or-later
//! The cells of an element: all are inside the filter, and all can be reached.

mod common;

use bulkmark::filter::{CELLS_PER_BLOCK, Probe};
use common::random::element;
use proptest::prelude::*;

/// The paper's figures 1 and 2: with cells cut from a digest some cells are never reached. Here each one is, by both
/// halves, and evenly.
#[test]
fn every_cell_is_reached_evenly() {
    for blocks in [1, 2, 3, 97, 1000] {
        let cells = blocks * CELLS_PER_BLOCK;
        for half in 0..2 {
            let mut hits = vec![0u32; cells];
            for i in 0..cells as u64 * 40 {
                let probe = Probe::new(element(i), blocks);
                for cell in probe.cells[half] {
                    hits[probe.blocks[half] * CELLS_PER_BLOCK + usize::from(cell)] += 1;
                }
            }
            // 160 hits are expected in each cell; 8 standard deviations either side.
            assert!(hits.iter().all(|&h| (59..=261).contains(&h)), "{blocks} blocks, half {half}");
        }
    }
}

proptest! {
    #[test]
    fn cells_are_inside_the_filter(element: u128, blocks in 1usize..=u32::MAX as usize) {
        let probe = Probe::new(element, blocks);
        prop_assert!(probe.blocks.iter().all(|&b| b < blocks));
        prop_assert!(probe.cells.iter().flatten().all(|&c| usize::from(c) < CELLS_PER_BLOCK));
    }
}
