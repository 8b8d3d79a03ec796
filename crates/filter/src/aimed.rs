// SPDX-License-Identifier: GPL-3.0-or-later
//! A million cells directed at few regions, in each kind of filter and by each operation: the cost stays proportional to their
//! number.

use crate::work::touched;
use crate::{Counting, Delta, Merged, Refined, Sparse};

const BLOCKS: usize = 68_360;
const CELLS: usize = 1 << 20;

/// The largest number of places for one cell.
const MAX_PLACES: usize = 64;

/// A delta that raises all cells of 8,192 blocks by 16: an update of eight kilobytes.
fn dense() -> Delta {
    Delta::from_changes(BLOCKS, (0..CELLS).map(|cell| (cell + 128 * 5000, 16))).unwrap()
}

fn bounded<T>(operation: &str, work: impl FnOnce() -> T) -> T {
    let (made, places) = touched(work);
    assert!(places < MAX_PLACES * CELLS, "{operation}: {places} places for {CELLS} cells");
    made
}

#[test]
fn an_update_of_dense_blocks() {
    let delta = dense();
    assert!(delta.encode().len() < 9000);
    let mut merged = Merged::new(BLOCKS).unwrap();
    bounded("merged", || merged.apply(&delta).unwrap());
    bounded("merged again", || merged.apply(&delta).unwrap());
    let mut sparse = Sparse::new(BLOCKS).unwrap();
    bounded("sparse", || sparse.apply(&delta).unwrap());
    bounded("sparse again", || sparse.apply(&delta).unwrap());
    assert_eq!((sparse.used(), sparse.get(128 * 5000)), (CELLS, 32));
    assert!(sparse.memory() < 3 * CELLS * 4, "{}", sparse.memory());

    // Restoring from bytes, and merging a snapshot.
    let mut again = Refined::new(BLOCKS).unwrap();
    let bytes = merged.bytes(0..BLOCKS);
    assert!(bounded("load", || again.restore(0..BLOCKS, &bytes)));
    assert!(bounded("snapshot", || merged.merge_bytes(0..BLOCKS, &bytes)));
    assert_eq!(again.bytes(0..BLOCKS), bytes);
}

/// Elements whose further cells lie in one region: 43 of them take all cells of a block.
#[test]
fn elements_of_one_region() {
    let element = |n: usize| {
        let (block, first) = (n / 43 % 1024, n % 43 * 3);
        let half = |block: usize, cells: [usize; 4]| {
            let mut fraction = 1u128 << 63;
            for cell in cells.into_iter().rev() {
                fraction = (((cell % 128) as u128) * (1 << 64) + fraction) / 128;
            }
            (((block as u128) << 64) + fraction) / BLOCKS as u128
        };
        let second = 40_000 + n % 20_000;
        half(block, [first, first + 1, first + 2, first + 64]) << 64 | half(second, [n, n + 1, n + 2, n + 3])
    };
    let mut filter = Refined::new(BLOCKS).unwrap();
    bounded("additions", || {
        for n in 0..CELLS / 3 {
            filter.add(element(n), 200);
        }
    });
    let honest = |n: u128| n.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
    let ((), places) = touched(|| {
        for n in 0..8192 {
            filter.add(honest(n), 20);
        }
    });
    assert!(places < 8192 * 3 * MAX_PLACES, "{places} places for 8,192 honest ones");
    assert!((0..CELLS / 3).step_by(997).all(|n| filter.count(element(n)) >= 200));
}
