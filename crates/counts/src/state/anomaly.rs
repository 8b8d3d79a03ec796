// SPDX-License-Identifier: GPL-3.0-or-later
//! Detection of made-up signatures. Signatures are hashes, so their cells are random. Signatures that were made up to cover many cells, or
//! all cells of some blocks, or the cells of a victim, have too many cells, or too few.

use bulkmark_filter::CELLS_PER_BLOCK;
use std::fmt;

/// The fewest signatures for a result.
pub const LEAST_SIGNATURES: u64 = 1000;

/// Standard deviations from the expected number. At six, one window in 500 million of honest clients is reported.
const DEVIATIONS: f64 = 6.0;

/// Cells of an element in each of its two blocks.
const PER_BLOCK: f64 = 4.0;

/// The deviation that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anomaly {
    what: &'static str,
    signatures: u64,
    found: u64,
    expected: u64,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, signatures, found, expected } = self;
        write!(f, "{signatures} signatures take {found} {what}, where hashes take about {expected}")
    }
}

/// Checks the cells of `signatures` signatures in a filter of `blocks` blocks: they take `cells` cells in `touched` blocks.
///
/// The number of signatures that touch a block has a Poisson distribution with the mean `l = 2n / B`. So a block is touched with the chance
/// `1 - exp(-l)`, and a cell of it is not taken with the chance `E((127/128)^(4 G)) = exp(-l (1 - (127/128)^4))`.
pub fn anomaly(signatures: u64, blocks: usize, cells: usize, touched: usize) -> Option<Anomaly> {
    let (all, per_block) = (blocks as f64, CELLS_PER_BLOCK as f64);
    let load = 2.0 * signatures as f64 / all;
    let taken = 1.0 - ((per_block - 1.0) / per_block).powf(PER_BLOCK);
    // For blocks, this is the variance of the number of occupied places after so many random choices. For cells, a bound: the chance that
    // one falls on another, of its own group of four or of other groups.
    let empty = (-load).exp();
    let variance = all * (empty - (1.0 + load) * empty * empty);
    let of_blocks = (all * (1.0 - empty), variance);
    let drawn = 2.0 * PER_BLOCK * signatures as f64;
    let expected_cells = all * per_block * (1.0 - (-load * taken).exp());
    let of_cells = (expected_cells, 2.0 * (drawn - expected_cells) + drawn / per_block);
    let looks = [("blocks", touched, of_blocks), ("cells", cells, of_cells)];
    let significant = looks.into_iter().find(|&(_, found, (expected, variance))| {
        // A difference of one is never significant.
        (found as f64 - expected).abs() > DEVIATIONS * variance.max(1.0).sqrt() + 1.0
    });
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of cells")]
    significant.map(|(what, found, (expected, _))| Anomaly {
        what,
        signatures,
        found: found as u64,
        expected: expected as u64,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bulkmark_filter::Sparse;
    use std::collections::BTreeSet;

    /// Random bits, as in signatures.
    pub(crate) fn element(n: u64) -> u128 {
        let half = |i: u64| {
            let z = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            u128::from(z ^ (z >> 31))
        };
        half(2 * n + 1) << 64 | half(2 * n + 2)
    }

    fn look(blocks: usize, elements: impl IntoIterator<Item = u128>) -> Option<Anomaly> {
        let filter = Sparse::new(blocks).unwrap();
        let (mut cells, mut touched, mut signatures) = (BTreeSet::new(), BTreeSet::new(), 0);
        for element in elements {
            signatures += 1;
            cells.extend(filter.cells_of(element));
            touched.extend(filter.cells_of(element).into_iter().map(|cell| cell / CELLS_PER_BLOCK));
        }
        anomaly(signatures, blocks, cells.len(), touched.len())
    }

    #[test]
    fn honest_signatures_are_no_anomaly() {
        for (blocks, n) in
            [(700, 1000), (700, 10_000), (7000, 1000), (7000, 6250), (7000, 100_000), (70_000, 62_500)]
        {
            for seed in 0..3 {
                let found = look(blocks, (0..n).map(|i| element(seed * 1_000_000 + i)));
                assert_eq!(found, None, "{n} in {blocks} blocks: {}", found.unwrap());
            }
        }
    }

    /// Inverts the linear probe: half of an element with these cells of a block.
    fn half(blocks: usize, block: usize, cells: [u8; 4]) -> u64 {
        let mut fraction = 1u128 << 63;
        for cell in cells.into_iter().rev() {
            fraction = ((u128::from(cell) << 64) + fraction) / 128;
        }
        u64::try_from((((block as u128) << 64) + fraction) / blocks as u128).unwrap()
    }

    #[test]
    fn made_up_signatures_are_an_anomaly() {
        let blocks = 7000;
        let of = |a, b| {
            u128::from(half(blocks, a, [1, 2, 3, 4])) << 64 | u128::from(half(blocks, b, [5, 6, 7, 8]))
        };
        assert_eq!(Sparse::new(blocks).unwrap().cells_of(of(5, 6))[0], 5 * 128 + 1);
        // All cells of a few blocks.
        let whole = (0..100usize).flat_map(|block| {
            (0u8..128).step_by(4).map(move |first| {
                let cells = [first, first + 1, first + 2, first + 3];
                u128::from(half(blocks, 2 * block, cells)) << 64
                    | u128::from(half(blocks, 2 * block + 1, cells))
            })
        });
        assert_eq!(look(blocks, whole).unwrap().what, "blocks");
        // No cell twice.
        let apart = (0..3500usize).map(|n| {
            let first = 4 * u8::try_from(n / 3500).unwrap();
            let cells = [first, first + 1, first + 2, first + 3];
            u128::from(half(blocks, 2 * n % blocks, cells)) << 64
                | u128::from(half(blocks, (2 * n + 1) % blocks, cells))
        });
        assert!(look(blocks, apart).is_some());
        // The cells of a few victims repeatedly.
        assert!(look(blocks, (0..2000).map(|n| of(n % 3, n % 5))).is_some());
    }
}
