// SPDX-License-Identifier: GPL-3.0-or-later
//! The layout: the number and size of cells in a block, and the cells of an element. The study of layouts gives the reasons for these
//! numbers (crates/study/docs/layout.md in the repository).

/// Bytes of a block: one cache line, so that the cells of a block cost one memory access.
pub const BLOCK_BYTES: usize = 64;

/// Bits of one cell. Five bits reach 31, enough for a threshold of 20 (Yan & Cho, section 4); with split storage four bits
/// make better use of the same memory.
pub const CELL_BITS: usize = 4;

/// The largest value of a cell. A cell that reaches it keeps it, and the rest is in split storage.
pub const CELL_MAX: u32 = (1 << CELL_BITS) - 1;

/// The number of cells of a block. [`Delta::changes`](crate::Delta::changes) numbers cells as block times this plus the index in the
/// block.
pub const CELLS_PER_BLOCK: usize = BLOCK_BYTES * 8 / CELL_BITS;

/// The number of blocks of an element.
pub(crate) const GROUPS: usize = 2;

/// The number of cells of an element in each of its blocks.
pub(crate) const CELLS_PER_GROUP: usize = 4;

/// The number of cells of an element (the paper's k): four in each of two blocks.
pub const CELLS_PER_ELEMENT: usize = GROUPS * CELLS_PER_GROUP;

/// The number of cells, among the four in an element's first block, that have further bits in split storage.
pub(crate) const SPLIT_CELLS: usize = 3;
