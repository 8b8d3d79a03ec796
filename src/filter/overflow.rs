// SPDX-License-Identifier: GPL-3.0-or-later
//! Split storage: what cells hold beyond their four bits (Yan & Cho, section 4).
//!
//! As in the paper, the filter is cut into chunks, and each has a table of its own for the further counts, keyed by the
//! cell's offset in the chunk. Unlike there, a cell needs no flag bit: the value 15 itself says that there may be more.
//! Few cells have more, so the tables are sorted lists that grow by a few entries.

use super::blocks::prefetch;
use super::cells::{Cell, Group};
use super::split::CELLS_PER_BLOCK;
use std::collections::HashMap;
use std::ops::Range;

/// Blocks of one chunk: 32 * 128 cells, whose offsets fit 12 bits.
const CHUNK_BLOCKS: usize = 32;

/// Bits of the value in an entry; offset and value fill 32 bits.
const VALUE_BITS: u32 = 20;

/// The value of an entry whose real value is in the table of large ones.
const LARGE: u32 = (1 << VALUE_BITS) - 1;

/// Entries by which a full list grows. Doubling would leave half of the memory empty.
const GROWTH: usize = 4;

/// What saturated cells hold beyond 15.
#[derive(Debug, Clone, Default)]
pub(super) struct Overflow {
    /// For each chunk, `offset << 20 | value`, ascending.
    chunks: Vec<Vec<u32>>,
    large: HashMap<Cell, u32>,
}

fn offset(at: Cell) -> u32 {
    let offset = at.block % CHUNK_BLOCKS * CELLS_PER_BLOCK + usize::from(at.cell);
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Where the entry of an offset is or would be, from `start` on, before which all offsets are smaller. The entries of a
/// block are few and beside one another.
fn find(chunk: &[u32], start: usize, offset: u32) -> Result<usize, usize> {
    let mut at = start;
    while let Some(entry) = chunk.get(at) {
        if entry >> VALUE_BITS >= offset {
            return if entry >> VALUE_BITS == offset { Ok(at) } else { Err(at) };
        }
        at += 1;
    }
    Err(at)
}

/// Entries in half a cache line.
const HALF_LINE: usize = 8;

/// Where in the list of a chunk the cells of a block are likely to begin.
fn guess(chunk: &[u32], block: usize) -> usize {
    chunk.len() * (block % CHUNK_BLOCKS) / CHUNK_BLOCKS
}

impl Overflow {
    pub(super) fn new(blocks: usize) -> Self {
        Self { chunks: vec![Vec::new(); blocks.div_ceil(CHUNK_BLOCKS)], large: HashMap::new() }
    }

    /// The list in which the cells of a block are, and where they begin in it. Blocks have about as many entries each, so
    /// the search begins where they would be and walks: that is one or two cache lines, where halving the list again
    /// and again would touch one for each step.
    fn list(&self, block: usize) -> (&[u32], usize) {
        let chunk = &self.chunks[block / CHUNK_BLOCKS];
        let first = offset(Cell { block, cell: 0 });
        let mut at = guess(chunk, block);
        while at > 0 && chunk[at - 1] >> VALUE_BITS >= first {
            at -= 1;
        }
        while chunk.get(at).is_some_and(|entry| entry >> VALUE_BITS < first) {
            at += 1;
        }
        (chunk, at)
    }

    /// Asks the processor to fetch where the list of a block is.
    pub(super) fn prefetch_list(&self, block: usize) {
        prefetch(&self.chunks[block / CHUNK_BLOCKS]);
    }

    /// Asks the processor to fetch about the place in the list at which the cells of a block are.
    pub(super) fn prefetch_entries(&self, block: usize) {
        let chunk = &self.chunks[block / CHUNK_BLOCKS];
        let at = guess(chunk, block);
        for near in [at.saturating_sub(HALF_LINE), at + HALF_LINE] {
            if let Some(entry) = chunk.get(near.min(chunk.len().saturating_sub(1))) {
                prefetch(entry);
            }
        }
    }

    /// Zero where there is no entry.
    pub(super) fn get(&self, cell: Cell) -> u32 {
        self.least(Group { block: cell.block, cells: &[cell.cell] })
    }

    /// The smallest value of these cells.
    pub(super) fn least(&self, group: Group<'_>) -> u32 {
        let (chunk, start) = self.list(group.block);
        self.least_of(chunk, start, group)
    }

    #[inline]
    fn least_of(&self, chunk: &[u32], start: usize, group: Group<'_>) -> u32 {
        let value = |&cell: &u8| {
            let cell = Cell { block: group.block, cell };
            find(chunk, start, offset(cell)).map_or(0, |at| self.value(cell, chunk[at]))
        };
        group.cells.iter().map(value).min().unwrap_or(0)
    }

    fn value(&self, cell: Cell, entry: u32) -> u32 {
        let value = entry & LARGE;
        if value == LARGE { self.large.get(&cell).copied().unwrap_or(LARGE) } else { value }
    }

    /// Raises these cells to their smallest value plus `times`; what is there already stays. Returns that.
    pub(super) fn add(&mut self, group: Group<'_>, times: u32) -> u32 {
        let (chunk, start) = self.list(group.block);
        let target = self.least_of(chunk, start, group).saturating_add(times);
        if times > 0 {
            self.raise(start, group, target);
        }
        target
    }

    /// Raises these cells to a value, which must not be zero; what is there already stays.
    pub(super) fn raise_to(&mut self, group: Group<'_>, value: u32) {
        let (_, start) = self.list(group.block);
        self.raise(start, group, value);
    }

    fn raise(&mut self, start: usize, group: Group<'_>, value: u32) {
        let chunk = &mut self.chunks[group.block / CHUNK_BLOCKS];
        for &cell in group.cells {
            let cell = Cell { block: group.block, cell };
            if value >= LARGE {
                let large = self.large.entry(cell).or_default();
                *large = value.max(*large);
            }
            let entry = offset(cell) << VALUE_BITS | value.min(LARGE);
            match find(chunk, start, offset(cell)) {
                // Of two entries of one cell the larger one has the larger value.
                Ok(at) => chunk[at] = entry.max(chunk[at]),
                Err(at) => {
                    if chunk.len() == chunk.capacity() {
                        chunk.reserve_exact(GROWTH);
                    }
                    chunk.insert(at, entry);
                }
            }
        }
    }

    /// The entries of the blocks `range`, which must begin and end at chunks or the end of the filter; ascending.
    pub(super) fn entries(&self, range: Range<usize>) -> impl Iterator<Item = (Cell, u32)> {
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
        fn lists_are_a_map(writes in prop::collection::vec((0usize..90, 0u8..128, 1u32..40_000_000), 0..300)) {
            let mut overflow = Overflow::new(90);
            let mut model = BTreeMap::new();
            for (block, cell, value) in writes {
                overflow.raise_to(Group { block, cells: &[cell] }, value);
                let highest = model.entry((block, cell)).or_insert(value);
                *highest = value.max(*highest);
            }
            for block in 0..90 {
                for cell in 0..128 {
                    let truth = model.get(&(block, cell)).copied().unwrap_or(0);
                    prop_assert_eq!(overflow.get(Cell { block, cell }), truth);
                }
            }
            let all: Vec<_> = overflow.entries(0..90).map(|(c, value)| ((c.block, c.cell), value)).collect();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        }
    }
}
