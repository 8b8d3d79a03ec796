// SPDX-License-Identifier: GPL-3.0-or-later
//! From cells to a signature that has them. A probe is linear, so it can be inverted (docs/filter.md, "Probes").

use bulkmark_filter::{CELLS_AT_CAPACITY, CELLS_PER_BLOCK, Counting, Probe, Refined};

/// The number of blocks of a first slice for so many signatures.
///
/// # Panics
/// Where there is no memory for one.
pub fn blocks(capacity: u32) -> usize {
    Refined::sized(capacity, CELLS_AT_CAPACITY).expect("memory for a filter").blocks()
}

/// A signature with these cells of these two blocks in a filter of so many blocks.
///
/// # Panics
/// When there are no such blocks or cells.
#[must_use]
pub fn signature(blocks: usize, places: [(usize, [u8; 4]); 2]) -> u128 {
    let [high, low] = places.map(|(block, cells)| half(blocks, block, cells));
    let found = u128::from(high) << 64 | u128::from(low);
    let probe = Probe::new(found, blocks);
    assert_eq!((probe.blocks, probe.cells), (places.map(|p| p.0), places.map(|p| p.1)));
    found
}

/// The digits of the place are those of `w * blocks * 128^4 / 2^64`; the smallest w that has them.
fn half(blocks: usize, block: usize, cells: [u8; 4]) -> u64 {
    let cells_per_block = CELLS_PER_BLOCK as u128;
    let of_block = |number: u128, cell: &u8| number * cells_per_block + u128::from(*cell);
    let place = cells.iter().fold(block as u128, of_block);
    let places = blocks as u128 * cells_per_block.pow(4);
    u64::try_from((place << 64).div_ceil(places)).expect("a block that there is")
}

/// All orders of four cells.
#[must_use]
pub fn orders(cells: [u8; 4]) -> Vec<[u8; 4]> {
    let mut found = Vec::new();
    for a in 0..4 {
        for b in (0..4).filter(|b| *b != a) {
            for c in (0..4).filter(|c| ![a, b].contains(c)) {
                found.push([cells[a], cells[b], cells[c], cells[6 - a - b - c]]);
            }
        }
    }
    found
}
