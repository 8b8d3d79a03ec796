// SPDX-License-Identifier: GPL-3.0-or-later
//! Split storage of two kinds: sorted lists as in the shipped filter, and hash tables as in the paper.
//!
//! Both cut the filter into chunks of 4096 cells or a little less, so that an entry of 32 bits has 12 bits for the offset
//! in its chunk and 20 for the value. Values stay at 2^20 - 1 once they are there, far above all counts of the study.

use crate::filter::{Cell, Packed};

const VALUE_BITS: u32 = 20;

/// The largest value of an entry.
pub(super) const MOST: u32 = (1 << VALUE_BITS) - 1;

/// Cells of a chunk at most.
const CHUNK_CELLS: usize = 1 << (32 - VALUE_BITS);

/// Where the chunks of a filter of cells of `BITS` bits begin and end: known when the program is built, since a division by
/// a number that is not takes as long as all else.
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

    fn cell(chunk: usize, entry: u32) -> Cell {
        let offset = (entry >> VALUE_BITS) as usize;
        let block = chunk * Self::BLOCKS + offset / Self::CELLS_PER_BLOCK;
        Cell { block, cell: u8::try_from(offset % Self::CELLS_PER_BLOCK).unwrap_or(0) }
    }
}

const fn value(entry: u32) -> u32 {
    entry & MOST
}

/// Sorted lists that grow by a few entries.
pub(super) struct Lists<const BITS: usize> {
    lists: Vec<Vec<u32>>,
}

/// Entries by which a full list grows, as in the shipped filter.
const LIST_GROWTH: usize = 4;

impl<const BITS: usize> Lists<BITS> {
    pub(super) fn new(blocks: usize) -> Self {
        Self { lists: vec![Vec::new(); Chunks::<BITS>::of(blocks)] }
    }

    /// Zero where there is no entry.
    pub(super) fn get(&self, at: Cell) -> u32 {
        let (chunk, offset) = Chunks::<BITS>::locate(at);
        let list = &self.lists[chunk];
        let place = list.partition_point(|&entry| entry < offset);
        list.get(place).filter(|&&entry| entry & !MOST == offset).map_or(0, |&entry| value(entry))
    }

    /// Raises a cell to a value above zero; what is there already stays.
    pub(super) fn raise_to(&mut self, at: Cell, value: u32) {
        let (chunk, offset) = Chunks::<BITS>::locate(at);
        let (list, new) = (&mut self.lists[chunk], offset | value.min(MOST));
        let place = list.partition_point(|&entry| entry < offset);
        match list.get_mut(place) {
            Some(entry) if *entry & !MOST == offset => *entry = new.max(*entry),
            _ => {
                if list.len() == list.capacity() {
                    list.reserve_exact(LIST_GROWTH);
                }
                list.insert(place, new);
            }
        }
    }

    /// All entries in order of their cells.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Cell, u32)> {
        let lists = self.lists.iter().enumerate();
        lists.flat_map(move |(n, list)| {
            list.iter().map(move |&entry| (Chunks::<BITS>::cell(n, entry), value(entry)))
        })
    }

    /// Bytes on the heap, empty places of the lists included, without what the allocator adds.
    pub(super) fn memory(&self) -> usize {
        let entries: usize = self.lists.iter().map(|list| list.capacity() * size_of::<u32>()).sum();
        entries + self.lists.capacity() * size_of::<Vec<u32>>()
    }
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

    /// Bytes on the heap, free places included, without what the allocator adds.
    pub(super) fn memory(&self) -> usize {
        let places: usize = self.tables.iter().map(|table| table.places.capacity() * size_of::<u32>()).sum();
        places + self.tables.capacity() * size_of::<Table>()
    }
}

/// The place that has the entry of this offset, or the free one where it would be.
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

    /// Both are a map from cells to numbers: lists of what is only raised, tables of what is set.
    fn both_are_maps<const BITS: usize>(writes: Vec<(usize, u8, u32)>) -> Result<(), TestCaseError> {
        const BLOCKS: usize = 150;
        let (mut lists, mut tables) = (Lists::<BITS>::new(BLOCKS), Tables::<BITS>::new(BLOCKS));
        let (mut raised, mut set) = (BTreeMap::new(), BTreeMap::new());
        for (block, cell, value) in writes {
            let at = Cell { block, cell };
            lists.raise_to(at, value);
            tables.set(at, value);
            let highest = raised.entry((block, cell)).or_insert(0);
            *highest = value.min(MOST).max(*highest);
            set.insert((block, cell), value.min(MOST));
        }
        for block in 0..BLOCKS {
            for cell in 0..64 {
                let at = Cell { block, cell };
                prop_assert_eq!(lists.get(at), raised.get(&(block, cell)).copied().unwrap_or(0));
                prop_assert_eq!(tables.get(at), set.get(&(block, cell)).copied().unwrap_or(0));
            }
        }
        let all: Vec<_> = lists.entries().map(|(at, value)| ((at.block, at.cell), value)).collect();
        prop_assert_eq!(all, raised.into_iter().collect::<Vec<_>>());
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn further_counts_are_a_map(
            writes in prop::collection::vec((0usize..150, 0u8..64, 1u32..2_000_000), 0..1500),
        ) {
            both_are_maps::<4>(writes.clone())?;
            both_are_maps::<5>(writes.clone())?;
            both_are_maps::<8>(writes)?;
        }
    }
}
