// SPDX-License-Identifier: GPL-3.0-or-later
//! The paper's split storage: hash tables, one for each chunk of the filter.
//!
//! Chunks have 4096 cells or a little less, so that an entry of 32 bits has 12 bits for the offset in its chunk and 20 for the
//! value. Values stay at 2^20 - 1 once they are there, far above all counts of the study.

use bulkmark_filter::internals::{Cell, Packed};

const VALUE_BITS: u32 = 20;

/// The largest value of an entry.
pub(super) const MOST: u32 = (1 << VALUE_BITS) - 1;

/// Cells of a chunk at most.
const CHUNK_CELLS: usize = 1 << (32 - VALUE_BITS);

/// The bounds of the chunks of a filter of cells of `BITS` bits: a constant, since a division by a variable takes as long as all
/// else.
struct Chunks<const BITS: usize>;

impl<const BITS: usize> Chunks<BITS> {
    const CELLS_PER_BLOCK: usize = Packed::<BITS>::PER_BLOCK;
    const BLOCKS: usize = CHUNK_CELLS / Self::CELLS_PER_BLOCK;

    /// The number of chunks.
    const fn of(blocks: usize) -> usize {
        blocks.div_ceil(Self::BLOCKS)
    }

    /// The chunk of a cell, and the cell's offset in it as the upper bits of an entry.
    fn locate(at: Cell) -> (usize, u32) {
        let offset = at.block % Self::BLOCKS * Self::CELLS_PER_BLOCK + usize::from(at.cell);
        (at.block / Self::BLOCKS, u32::try_from(offset).unwrap_or(0) << VALUE_BITS)
    }
}

const fn value(entry: u32) -> u32 {
    entry & MOST
}

/// Hash tables with open addressing, at most seven eighths full.
pub(super) struct Tables<const BITS: usize> {
    tables: Vec<Table>,
}

/// Zero is a free place: no entry has the value 0.
#[derive(Clone, Default)]
struct Table {
    places: Vec<u32>,
    used: usize,
}

impl<const BITS: usize> Tables<BITS> {
    pub(super) fn new(blocks: usize) -> Self {
        Self { tables: vec![Table::default(); Chunks::<BITS>::of(blocks)] }
    }

    /// Zero where there is no entry.
    pub(super) fn get(&self, at: Cell) -> u32 {
        let (chunk, offset) = Chunks::<BITS>::locate(at);
        let Table { places, .. } = &self.tables[chunk];
        if places.is_empty() { 0 } else { value(places[place(places, offset)]) }
    }

    /// Sets a cell to a value above zero.
    pub(super) fn set(&mut self, at: Cell, value: u32) {
        let (chunk, offset) = Chunks::<BITS>::locate(at);
        let table = &mut self.tables[chunk];
        if (table.used + 1) * 8 > table.places.len() * 7 {
            table.grow();
        }
        let i = place(&table.places, offset);
        table.used += usize::from(table.places[i] == 0);
        table.places[i] = offset | value.clamp(1, MOST);
    }

    /// Bytes on the heap, free places included, without the allocator's overhead.
    pub(super) fn memory(&self) -> usize {
        let places: usize = self.tables.iter().map(|table| table.places.capacity() * size_of::<u32>()).sum();
        places + self.tables.capacity() * size_of::<Table>()
    }
}

/// The place of this offset's entry, or the free one for it.
fn place(places: &[u32], offset: u32) -> usize {
    // Offsets of one element are near one another; the multiplication spreads them.
    let hash = u64::from(offset >> VALUE_BITS).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let start = usize::try_from((hash * places.len() as u64) >> 32).unwrap_or(0);
    let (before, after) = places.split_at(start);
    let fits = |&entry: &u32| entry == 0 || entry & !MOST == offset;
    match after.iter().position(fits) {
        Some(i) => start + i,
        None => before.iter().position(fits).unwrap_or(0),
    }
}

impl Table {
    /// By an eighth: doubling would leave up to half of the memory free.
    fn grow(&mut self) {
        let size = self.places.len() + (self.places.len() / 8).max(4);
        let mut places = Vec::new();
        places.reserve_exact(size);
        places.resize(size, 0);
        for &entry in self.places.iter().filter(|&&entry| entry != 0) {
            let i = place(&places, entry & !MOST);
            places[i] = entry;
        }
        self.places = places;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn a_map<const BITS: usize>(writes: Vec<(usize, u8, u32)>) -> Result<(), TestCaseError> {
        const BLOCKS: usize = 150;
        let (mut tables, mut set) = (Tables::<BITS>::new(BLOCKS), BTreeMap::new());
        for (block, cell, value) in writes {
            tables.set(Cell { block, cell }, value);
            set.insert((block, cell), value.min(MOST));
        }
        for block in 0..BLOCKS {
            for cell in 0..64 {
                let truth = set.get(&(block, cell)).copied().unwrap_or(0);
                prop_assert_eq!(tables.get(Cell { block, cell }), truth);
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn further_counts_are_a_map(
            writes in prop::collection::vec((0usize..150, 0u8..64, 1u32..2_000_000), 0..1500),
        ) {
            a_map::<4>(writes.clone())?;
            a_map::<5>(writes.clone())?;
            a_map::<8>(writes)?;
        }
    }
}
