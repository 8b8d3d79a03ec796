// SPDX-License-Identifier: GPL-3.0-or-later
//! From an element to its cells.

use crate::cells::Group;
use crate::layout::{CELLS_PER_BLOCK, CELLS_PER_GROUP, GROUPS};

/// The cells of one element in a filter of a given number of blocks.
///
/// Each 64-bit half of the element, read as a fraction of 2^64, is multiplied by the number of blocks: the whole part
/// is the block, and the remainder is multiplied by 128 for the first cell, its remainder for the second, and so on.
/// So every cell of every block is reachable as long as blocks * 128^4 stays below 2^64, which is the paper's
/// requirement of a full *utilisable size* (section 3): at 2^32 blocks (256 GiB) 4 bits remain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The two blocks, which may be the same.
    pub blocks: [usize; GROUPS],
    /// Four cells in each block; some may coincide, so they form a set (H2 of the paper).
    pub cells: [[u8; CELLS_PER_GROUP]; GROUPS],
}

impl Probe {
    /// Computes the cells of `element` in a filter of `blocks` blocks (at least one, at most 2^32).
    #[inline]
    #[must_use]
    pub fn new(element: u128, blocks: usize) -> Self {
        let (high, low) = halves(element);
        let (a, cells_a) = half(high, blocks);
        let (b, cells_b) = half(low, blocks);
        Self { blocks: [a, b], cells: [cells_a, cells_b] }
    }

    /// Returns all eight cells, by block.
    #[inline]
    pub(crate) fn groups(&self) -> impl Iterator<Item = Group<'_>> + Clone {
        self.blocks.iter().zip(&self.cells).map(|(&block, cells)| Group { block, cells })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a block is below the number of blocks, a cell below 128"
)]
#[inline]
fn half(word: u64, blocks: usize) -> (usize, [u8; CELLS_PER_GROUP]) {
    let (block, mut rest) = scale(word, blocks as u64);
    let cells = std::array::from_fn(|_| {
        let (cell, remainder) = scale(rest, CELLS_PER_BLOCK as u64);
        rest = remainder;
        cell as u8
    });
    (block as usize, cells)
}

/// Returns `fraction / 2^64 * n` as its whole part, below `n`, and the remaining fraction.
#[inline]
pub(crate) const fn scale(fraction: u64, n: u64) -> (u64, u64) {
    halves(fraction as u128 * n as u128)
}

/// Returns the upper and the lower 64 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "that is its purpose")]
pub(crate) const fn halves(bits: u128) -> (u64, u64) {
    ((bits >> 64) as u64, bits as u64)
}
