// SPDX-License-Identifier: GPL-3.0-or-later
//! Small cells, packed into cache lines.

use crate::blocks::{Block, Blocks};
use crate::cells::{Cell, Cells, Group};
use crate::layout::BLOCK_BYTES;
use crate::params::ParameterError;
use std::ops::Range;

/// Cells of `BITS` bits, 4 to 8, that keep their largest value once they reach it.
///
/// Cell `i` of a block has the bits `BITS * i` and up, least significant first; the bits left at the end of a block are not
/// used.
pub struct Packed<const BITS: usize> {
    blocks: Blocks,
}

impl<const BITS: usize> Packed<BITS> {
    /// The number of cells of a block.
    pub const PER_BLOCK: usize = {
        assert!(BITS >= 4 && BITS <= 8);
        BLOCK_BYTES * 8 / BITS
    };

    const LARGEST: u8 = u8::MAX >> (8 - BITS);

    /// Returns zeros in `blocks` blocks of 64 bytes.
    ///
    /// # Errors
    /// If `blocks` is 0 or above 2^32, or the machine lacks the memory.
    pub fn new(blocks: usize) -> Result<Self, ParameterError> {
        Ok(Self { blocks: Blocks::new(blocks)? })
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.blocks.len() * BLOCK_BYTES
    }

    /// Prefetches a block.
    #[inline]
    pub fn prefetch(&self, block: usize) {
        self.blocks.prefetch(block);
    }

    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.blocks[range].as_flattened()
    }

    pub(crate) fn bytes_mut(&mut self, range: Range<usize>) -> Option<&mut [u8]> {
        self.blocks.get_mut(range).map(<[Block]>::as_flattened_mut)
    }

    /// Whether all cells of a block are zero.
    pub(crate) fn is_empty(&self, block: usize) -> bool {
        self.blocks[block] == [0; BLOCK_BYTES]
    }

    /// Returns a copy of a block.
    pub(crate) fn block(&self, block: usize) -> Block {
        self.blocks[block]
    }

    /// Returns the values of the cells of a block.
    pub(crate) fn values(&self, block: usize) -> impl Iterator<Item = u8> {
        values::<BITS>(&self.blocks[block])
    }
}

impl<const BITS: usize> Cells for Packed<BITS> {
    const MAX: u32 = Self::LARGEST as u32;

    #[inline]
    fn get(&self, at: Cell) -> u32 {
        value::<BITS>(&self.blocks[at.block], at.cell.into()).into()
    }

    #[inline]
    fn set(&mut self, at: Cell, value: u32) {
        set_value::<BITS>(&mut self.blocks[at.block], at.cell.into(), value);
    }

    #[inline]
    fn least(&self, group: Group<'_>) -> u32 {
        let block = &self.blocks[group.block];
        group.cells.iter().fold(u8::MAX, |least, &cell| least.min(value::<BITS>(block, cell.into()))).into()
    }

    #[inline]
    fn raise_to(&mut self, group: Group<'_>, target: u32) {
        let target = u8::try_from(target).unwrap_or(u8::MAX).min(Self::LARGEST);
        let block = &mut self.blocks[group.block];
        for &cell in group.cells {
            update::<BITS>(block, cell.into(), |value| value + lacking::<BITS>(value, target));
        }
    }
}

/// Returns the values of all cells of a block.
pub(crate) fn values<const BITS: usize>(block: &Block) -> impl Iterator<Item = u8> {
    (0..Packed::<BITS>::PER_BLOCK).map(move |i| value::<BITS>(block, i))
}

/// Returns the value of cell `i`, which is below [`Packed::PER_BLOCK`].
#[inline]
pub(crate) fn value<const BITS: usize>(block: &Block, i: usize) -> u8 {
    let [low, ..] = if 64 % BITS == 0 {
        let (word, shift) = word::<BITS>(i);
        (u64::from_le_bytes(block.as_chunks().0[word]) >> shift).to_le_bytes()
    } else {
        let (byte, shift) = window::<BITS>(i);
        u64::from(u16::from_le_bytes([block[byte], block[byte + 1]]) >> shift).to_le_bytes()
    };
    low & Packed::<BITS>::LARGEST
}

/// Sets cell `i` to a value, or to its largest one.
#[inline]
pub(crate) fn set_value<const BITS: usize>(block: &mut Block, i: usize, value: u32) {
    let value = u8::try_from(value).unwrap_or(u8::MAX).min(Packed::<BITS>::LARGEST);
    update::<BITS>(block, i, |_| value);
}

/// Sets cell `i` to the result of `new`, which must not exceed the largest value.
#[inline]
fn update<const BITS: usize>(block: &mut Block, i: usize, new: impl Fn(u8) -> u8) {
    let old = value::<BITS>(block, i);
    let change = u64::from(old ^ new(old));
    if 64 % BITS == 0 {
        // Whole words: a store that a later load only partly overlaps would hold it up.
        let (word, shift) = word::<BITS>(i);
        let word = &mut block.as_chunks_mut().0[word];
        *word = (u64::from_le_bytes(*word) ^ change << shift).to_le_bytes();
    } else {
        let (byte, shift) = window::<BITS>(i);
        let [low, high, ..] = (change << shift).to_le_bytes();
        block[byte] ^= low;
        block[byte + 1] ^= high;
    }
}

/// Returns how much a value is below the target; zero if it is not.
///
/// The difference is masked by its own sign. For a maximum, compilers emit a jump, and no branch predictor can know which cells are
/// below the target.
#[inline]
fn lacking<const BITS: usize>(value: u8, target: u8) -> u8 {
    let difference = (u16::from(target) | 1 << BITS) - u16::from(value);
    let [low, ..] = (difference & (difference >> BITS).wrapping_neg()).to_le_bytes();
    low & Packed::<BITS>::LARGEST
}

/// Returns the number of the 64-bit word of cell `i`, and its index there; for cells that fill words.
#[inline]
const fn word<const BITS: usize>(i: usize) -> (usize, usize) {
    let cells = 64 / BITS;
    (i / cells % (BLOCK_BYTES / 8), i % cells * BITS)
}

/// Returns the byte and shift at which the 16-bit window of cell `i` begins. The last window starts one byte early so that it
/// ends inside the block.
#[inline]
const fn window<const BITS: usize>(i: usize) -> (usize, usize) {
    let bit = i * BITS;
    let byte = if bit / 8 < BLOCK_BYTES - 1 { bit / 8 } else { BLOCK_BYTES - 2 };
    (byte, bit - byte * 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Packed cells behave as an array of small numbers: written values are read back and no neighbour changes.
    fn is_an_array<const BITS: usize>(writes: Vec<(usize, u8)>) -> Result<(), TestCaseError> {
        let mut packed = Packed::<BITS>::new(1).unwrap();
        let mut model = vec![0u32; Packed::<BITS>::PER_BLOCK];
        for (i, value) in writes {
            let (i, value) = (i % model.len(), u32::from(value & Packed::<BITS>::LARGEST));
            let cell = u8::try_from(i).unwrap();
            if value % 2 == 0 {
                packed.set(Cell { block: 0, cell }, value);
                model[i] = value;
            } else {
                packed.raise_to(Group { block: 0, cells: &[cell] }, value);
                model[i] = value.max(model[i]);
            }
        }
        let values: Vec<u32> = packed.values(0).map(u32::from).collect();
        prop_assert_eq!(values, model);
        Ok(())
    }

    proptest! {
        #[test]
        fn cells_are_an_array(writes in prop::collection::vec((0usize..128, any::<u8>()), 0..400)) {
            is_an_array::<4>(writes.clone())?;
            is_an_array::<5>(writes.clone())?;
            is_an_array::<8>(writes)?;
        }
    }

    #[test]
    fn invalid_sizes_are_refused_by_name() {
        let refused = |blocks| Packed::<4>::new(blocks).err().map(|e| e.to_string());
        assert_eq!(refused(0).as_deref(), Some("blocks is 0, expected 1 to 4294967296"));
        assert_eq!(refused((1 << 32) + 1).as_deref(), Some("blocks is 4294967297, expected 1 to 4294967296"));
    }
}
