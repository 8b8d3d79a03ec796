// SPDX-License-Identifier: GPL-3.0-or-later
//! The layout: how many cells of how many bits a block has, and which of them an element gets. Why these numbers, the
//! study of layouts tells (crates/study/docs/layout.md in the repository).

/// Bytes of a block: one cache line, so that the cells of a block cost one memory access.
pub const BLOCK_BYTES: usize = 64;

/// Bits of one cell. Five reach 31, enough for a threshold of 20 (Yan & Cho, section 4); with split storage four are
/// the better use of the same memory.
pub const CELL_BITS: usize = 4;

/// The largest value of a cell. A cell that reached it stays there, and what comes on top is in split storage.
pub const CELL_MAX: u32 = (1 << CELL_BITS) - 1;

/// Cells of a block. [`Delta::changes`](crate::Delta::changes) numbers cells as block times this plus the place in the
/// block.
pub const CELLS_PER_BLOCK: usize = BLOCK_BYTES * 8 / CELL_BITS;

/// Blocks of an element.
pub(crate) const GROUPS: usize = 2;

/// Cells of an element in each of its blocks.
pub(crate) const CELLS_PER_GROUP: usize = 4;

/// Cells of an element (the paper's k): four in each of two blocks.
pub const CELLS_PER_ELEMENT: usize = GROUPS * CELLS_PER_GROUP;

/// Of the four cells of an element's first block, those that have further bits in split storage.
pub(crate) const SPLIT_CELLS: usize = 3;
