// SPDX-License-Identifier: GPL-3.0-or-later
//! One block: 102 cells of 5 bits, packed into one 64-byte cache line.

/// Bits of one cell (Yan & Cho, section 4: five bits reach 31, enough for a threshold of 20).
pub const CELL_BITS: usize = 5;

/// The largest value of a cell; a cell that reached it stays there.
pub const CELL_MAX: u8 = (1 << CELL_BITS) - 1;

/// Bytes of a block: one cache line, so that the cells of a block cost one memory access.
pub(super) const BYTES: usize = 64;

/// Cells of a block: 102 * 5 = 510 of its 512 bits.
pub const CELLS_PER_BLOCK: usize = BYTES * 8 / CELL_BITS;

/// One cache line of packed cells. Cell `i` occupies the bits `5 i .. 5 i + 5`, least significant bit first.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Block(pub(super) [u8; BYTES]);

impl Block {
    pub(super) const EMPTY: Self = Self([0; BYTES]);

    /// Byte and shift at which the 16-bit window that holds cell `i` begins. The last window starts one byte early so
    /// that it ends inside the block: the shift is then at most 9, and 9 + 5 bits still fit.
    const fn window(i: usize) -> (usize, usize) {
        let bit = i * CELL_BITS;
        let byte = if bit / 8 < BYTES - 1 { bit / 8 } else { BYTES - 2 };
        (byte, bit - byte * 8)
    }

    /// The value of cell `i`, which must be below [`CELLS_PER_BLOCK`].
    pub(super) fn get(&self, i: usize) -> u8 {
        let (byte, shift) = Self::window(i);
        let window = u16::from_le_bytes([self.0[byte], self.0[byte + 1]]);
        let [low, _] = (window >> shift).to_le_bytes();
        low & CELL_MAX
    }

    /// Sets cell `i`, which must be below [`CELLS_PER_BLOCK`], to a value of at most [`CELL_MAX`].
    pub(super) fn set(&mut self, i: usize, value: u8) {
        let (byte, shift) = Self::window(i);
        let window = u16::from_le_bytes([self.0[byte], self.0[byte + 1]]);
        let cleared = window & !(u16::from(CELL_MAX) << shift);
        let [low, high] = (cleared | u16::from(value) << shift).to_le_bytes();
        (self.0[byte], self.0[byte + 1]) = (low, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Packed cells behave as an array of small numbers: what is set is read back and no neighbour moves.
        #[test]
        fn packed_cells_are_an_array(writes in prop::collection::vec((0..CELLS_PER_BLOCK, 0..=CELL_MAX), 0..400)) {
            let mut block = Block::EMPTY;
            let mut model = [0u8; CELLS_PER_BLOCK];
            for (i, value) in writes {
                block.set(i, value);
                model[i] = value;
            }
            for (i, value) in model.iter().enumerate() {
                prop_assert_eq!(block.get(i), *value);
            }
        }
    }
}
