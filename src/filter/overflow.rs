// SPDX-License-Identifier: GPL-3.0-or-later
//! Split storage: what cells hold beyond their five bits (Yan & Cho, section 4).
//!
//! As in the paper, the filter is cut into chunks, and each has a table of its own for the further counts, keyed by the
//! cell's offset in the chunk. Unlike there, a cell needs no flag bit: the value 31 itself says that there may be more.
//! Few cells have more, so the tables are sorted lists that grow by a few entries.

use super::cells::CELLS_PER_BLOCK;
use std::collections::HashMap;

/// Blocks of one chunk: 40 * 102 cells, whose offsets fit 12 bits.
const CHUNK_BLOCKS: usize = 40;

/// Bits of the value in an entry; offset and value fill 32 bits.
const VALUE_BITS: u32 = 20;

/// The value of an entry whose real value is in the table of large ones.
const LARGE: u32 = (1 << VALUE_BITS) - 1;

/// Entries by which a full list grows. Doubling would leave half of the memory empty.
const GROWTH: usize = 4;

/// A cell: block and place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    pub(super) block: usize,
    pub(super) cell: u8,
}

impl Cell {
    const fn chunk(self) -> usize {
        self.block / CHUNK_BLOCKS
    }

    fn offset(self) -> u32 {
        let offset = self.block % CHUNK_BLOCKS * CELLS_PER_BLOCK + usize::from(self.cell);
        u32::try_from(offset).unwrap_or(u32::MAX)
    }
}

/// What saturated cells hold beyond 31.
#[derive(Debug, Clone, Default)]
pub(super) struct Overflow {
    /// For each chunk, `offset << 20 | value`, ascending.
    chunks: Vec<Vec<u32>>,
    large: HashMap<Cell, u32>,
}

impl Overflow {
    pub(super) fn new(blocks: usize) -> Self {
        Self { chunks: vec![Vec::new(); blocks.div_ceil(CHUNK_BLOCKS)], large: HashMap::new() }
    }

    /// Zero where there is no entry.
    pub(super) fn get(&self, cell: Cell) -> u32 {
        let chunk = &self.chunks[cell.chunk()];
        let offset = cell.offset();
        let at = chunk.partition_point(|entry| entry >> VALUE_BITS < offset);
        match chunk.get(at) {
            Some(entry) if entry >> VALUE_BITS == offset => self.value(cell, *entry),
            _ => 0,
        }
    }

    fn value(&self, cell: Cell, entry: u32) -> u32 {
        let value = entry & LARGE;
        if value == LARGE { self.large.get(&cell).copied().unwrap_or(LARGE) } else { value }
    }

    /// Raises a cell to a value, which must not be zero; one that is there already stays.
    pub(super) fn raise_to(&mut self, cell: Cell, value: u32) {
        let chunk = &mut self.chunks[cell.chunk()];
        let offset = cell.offset();
        if value >= LARGE {
            let large = self.large.entry(cell).or_default();
            *large = value.max(*large);
        }
        let entry = offset << VALUE_BITS | value.min(LARGE);
        let at = chunk.partition_point(|entry| entry >> VALUE_BITS < offset);
        match chunk.get_mut(at) {
            // Of two entries of one cell the larger one has the larger value.
            Some(old) if *old >> VALUE_BITS == offset => *old = entry.max(*old),
            _ => {
                if chunk.len() == chunk.capacity() {
                    chunk.reserve_exact(GROWTH);
                }
                chunk.insert(at, entry);
            }
        }
    }

    /// The entries of the blocks `range`, which must begin and end at chunks or the end of the filter; ascending.
    pub(super) fn entries(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = (Cell, u32)> {
        let chunks = range.start / CHUNK_BLOCKS..range.end.div_ceil(CHUNK_BLOCKS);
        chunks.flat_map(move |n| {
            self.chunks[n].iter().map(move |&entry| {
                let offset = (entry >> VALUE_BITS) as usize;
                let block = n * CHUNK_BLOCKS + offset / CELLS_PER_BLOCK;
                let cell = Cell { block, cell: u8::try_from(offset % CELLS_PER_BLOCK).unwrap_or(0) };
                (cell, self.value(cell, entry))
            })
        })
    }

    /// Bytes on the heap, without what the allocator adds.
    pub(super) fn heap_bytes(&self) -> usize {
        let lists: usize = self.chunks.iter().map(|c| c.capacity() * size_of::<u32>()).sum();
        lists
            + self.chunks.capacity() * size_of::<Vec<u32>>()
            + self.large.capacity() * size_of::<(Cell, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The lists behave as a map from cells to numbers, small and large.
        #[test]
        fn lists_are_a_map(writes in prop::collection::vec((0usize..90, 0u8..102, 1u32..40_000_000), 0..300)) {
            let mut overflow = Overflow::new(90);
            let mut model = BTreeMap::new();
            for (block, cell, value) in writes {
                overflow.raise_to(Cell { block, cell }, value);
                let highest = model.entry((block, cell)).or_insert(value);
                *highest = value.max(*highest);
            }
            for block in 0..90 {
                for cell in 0..102 {
                    let truth = model.get(&(block, cell)).copied().unwrap_or(0);
                    prop_assert_eq!(overflow.get(Cell { block, cell }), truth);
                }
            }
            let all: Vec<_> = overflow.entries(0..90).map(|(c, value)| ((c.block, c.cell), value)).collect();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        }
    }
}
