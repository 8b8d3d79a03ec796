// SPDX-License-Identifier: GPL-3.0-or-later
//! Chunks: the unit in which the cells of a filter are written and sent.

use crate::history::update::MAX_CELLS;
use bulkmark_filter::{BLOCK_BYTES, CELLS_PER_BLOCK};
use std::ops::Range;

/// Blocks that are written to disk together: 40,960 bytes, so that a chunk fits a 64 KiB page with its key and the overflow of bulk.
pub const CHUNK_BLOCKS: usize = 640;

/// The blocks of a chunk in a filter of `blocks` blocks.
pub fn blocks_of(chunk: usize, blocks: usize) -> Range<usize> {
    let first = chunk.saturating_mul(CHUNK_BLOCKS).min(blocks);
    first..first.saturating_add(CHUNK_BLOCKS).min(blocks)
}

/// Bytes of a cell's number and its overflow.
const BEYOND_BYTES: usize = 8;

/// The most bytes of a chunk: its blocks, and the overflow of each of their cells.
pub const MAX_CHUNK_BYTES: usize = CHUNK_BLOCKS * (BLOCK_BYTES + CELLS_PER_BLOCK * BEYOND_BYTES);

/// Blocks of a limited client's filter that are written together, coded; they have as many cells as an update may change.
pub const LAYER_BLOCKS: usize = MAX_CELLS / CELLS_PER_BLOCK;

/// The most coded bytes of so many blocks: a byte per cell is reached only by a filter full of large counts.
pub const MAX_LAYER_BYTES: usize = MAX_CELLS;

/// The blocks of a part of a limited client's filter of `blocks` blocks.
pub fn layer_blocks_of(part: u32, blocks: usize) -> Range<usize> {
    let first = (part as usize).saturating_mul(LAYER_BLOCKS).min(blocks);
    first..first.saturating_add(LAYER_BLOCKS).min(blocks)
}

/// The parts of a limited client's filter of `blocks` blocks.
pub fn layer_parts(blocks: usize) -> Range<u32> {
    0..u32::try_from(blocks.div_ceil(LAYER_BLOCKS)).unwrap_or(u32::MAX)
}
