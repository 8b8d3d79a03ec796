// SPDX-License-Identifier: GPL-3.0-or-later
//! The cells of an element: all are inside the filter, and all can be reached.

use crate::random::element;
use bulkmark_filter::{CELLS_PER_BLOCK, Probe};
use md5::Md5;
use proptest::prelude::*;
use sha1::{Digest, Sha1};

/// The number of chunks that a digest is cut into: the paper's k = 8 hashes.
const CHUNKS: usize = 8;

/// The chunks of a digest of 8 * `BITS` bits, as numbers.
fn chunks<D: Digest, const BITS: usize>(number: u64) -> [usize; CHUNKS] {
    let digest = D::digest(number.to_le_bytes());
    assert_eq!(digest.len() * 8, CHUNKS * BITS);
    let bit = |i: usize| usize::from(digest[i / 8] >> (7 - i % 8) & 1);
    std::array::from_fn(|chunk| (0..BITS).fold(0, |value, i| value << 1 | bit(chunk * BITS + i)))
}

/// Returns how many of `m` cells are reached if `elements` digests are cut into chunks: if each chunk is a cell of the
/// whole filter (figure 1), and if each has its own eighth of it (figure 2).
fn reached_by_chunks<D: Digest, const BITS: usize>(m: usize, elements: u64) -> [usize; 2] {
    let (mut common, mut own) = (vec![false; m], vec![false; m]);
    let part = m / CHUNKS;
    for number in 0..elements {
        for (i, chunk) in chunks::<D, BITS>(number).into_iter().enumerate() {
            common[chunk % m] = true;
            own[i * part + chunk % part] = true;
        }
    }
    [common, own].map(|cells| cells.iter().filter(|&&reached| reached).count())
}

/// The paper's figures 1 and 2, the *utilisable size*: a chunk of a digest of 128 bits is a number of 16 bits and names
/// 65,536 cells, however large the filter is and whatever is added; of 160 bits, 2^20 cells. A larger filter has cells
/// that no element reaches.
#[test]
fn chunks_of_a_digest_leave_cells_unreached() {
    // So many that each chunk of 16 bits has occurred: exactly the 65,536 cells are reached.
    let m = 1 << 20;
    assert_eq!(reached_by_chunks::<Md5, 16>(m, 150_000)[0], 1 << 16);
    let [common, own] = reached_by_chunks::<Md5, 16>(m, 300_000);
    assert_eq!(common, 1 << 16, "no element reaches more");
    // Each eighth has 2^17 cells, of which at most 2^16 are reached.
    assert!((500_000..=CHUNKS << 16).contains(&own), "{own}");

    // All cells of a filter that is no larger are reached.
    assert_eq!(reached_by_chunks::<Md5, 16>(1 << 12, 20_000), [1 << 12; 2]);

    let [common, _] = reached_by_chunks::<Sha1, 20>(1 << 21, 300_000);
    assert!((900_000..=1 << 20).contains(&common), "{common}");
    let part = (1 << 24) / CHUNKS;
    assert!(
        (0..1000).flat_map(chunks::<Sha1, 20>).all(|chunk| chunk % part < 1 << 20),
        "half of each eighth"
    );
}

/// The same filter sizes with [`Probe`]: for each cell of each block there is an element that has it, at each index that an
/// element's cells have. The element is constructed: a fraction of 2^64 whose digits are the block and
/// four times the cell.
#[test]
fn probes_reach_every_cell_of_as_large_a_filter() {
    let reaching = |block: usize, cell: usize, blocks: usize| {
        let number = (0..4).fold(block as u128, |number, _| number * CELLS_PER_BLOCK as u128 + cell as u128);
        let digits = blocks as u128 * (CELLS_PER_BLOCK as u128).pow(4);
        // The least fraction of 2^64 that begins with these digits.
        (number << 64).div_ceil(digits)
    };
    // 2^20 and 2^21 cells, and a number that is no power of two.
    for blocks in [(1 << 20) / CELLS_PER_BLOCK, (1 << 21) / CELLS_PER_BLOCK, 12_345] {
        for block in 0..blocks {
            for cell in 0..CELLS_PER_BLOCK {
                let word = reaching(block, cell, blocks);
                let probe = Probe::new(word << 64 | word, blocks);
                assert_eq!(probe.blocks, [block; 2]);
                assert!(
                    probe.cells.as_flattened().iter().all(|&c| usize::from(c) == cell),
                    "{block}, {cell}"
                );
            }
        }
    }
}

/// Random elements reach each cell evenly, by both halves.
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
