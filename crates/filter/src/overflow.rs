// SPDX-License-Identifier: GPL-3.0-or-later
//! Split storage: values of cells beyond their own bits (Yan & Cho, section 4).
//!
//! As in the paper, the filter is cut into chunks, and each has its own hash table for the further counts, keyed by the cell's offset
//! in the chunk. Unlike there, a cell needs no flag bit: its largest value itself shows that there may be more.

use crate::cells::Cell;
use crate::placed::{HOME_BITS, HOMES, VALUE_MAX};
use crate::rows::Rows;
use std::collections::HashMap;
use std::ops::Range;

/// Chunks whose tables have the same length: in a full filter about 20 MB, enough for huge pages, and few enough to be rebuilt in
/// about 20 milliseconds when the length no longer suffices.
const CHUNKS: usize = 2048;

/// The values of cells beyond their own largest one, by cell. Blocks have at most 128 cells.
pub struct Overflow {
    tables: Vec<Rows>,
    /// The number of blocks of a chunk. Only the last chunk may have fewer, so all tables fill alike.
    chunk: usize,
    /// Values too large for an entry of a table, which has the largest value then.
    large: HashMap<Cell, u32>,
}

/// Cells of a block in the tables.
struct Place<const N: usize> {
    table: usize,
    row: usize,
    keys: [u32; N],
}

impl Overflow {
    /// Returns empty storage for a filter of this number of blocks.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        let chunk = blocks.div_ceil(blocks.div_ceil(HOMES).max(1)).max(1);
        let chunks = blocks.div_ceil(chunk);
        let tables = (0..chunks).step_by(CHUNKS).map(|first| Rows::new(CHUNKS.min(chunks - first), chunk));
        Self { tables: tables.collect(), chunk, large: HashMap::new() }
    }

    #[inline]
    fn place<const N: usize>(&self, block: usize, cells: [u8; N]) -> Place<N> {
        let (chunk, home) = (block / self.chunk, block % self.chunk);
        let first = u32::try_from(home).unwrap_or(0) << HOME_BITS;
        Place { table: chunk / CHUNKS, row: chunk % CHUNKS, keys: cells.map(|cell| first | u32::from(cell)) }
    }

    /// Returns the value of a cell; zero without an entry.
    #[must_use]
    pub fn get(&self, at: Cell) -> u32 {
        self.least(at.block, [at.cell])
    }

    /// Raises a cell to a value above zero; a larger old value stays.
    pub fn raise_to(&mut self, at: Cell, value: u32) {
        if value >= VALUE_MAX {
            let large = self.large.entry(at).or_default();
            *large = value.max(*large);
        }
        let Place { table, row, keys: [key] } = self.place(at.block, [at.cell]);
        self.tables[table].raise(row, key, value.min(VALUE_MAX));
    }

    /// Prefetches the entries of a block's cells.
    #[inline]
    pub(crate) fn prefetch(&self, block: usize) {
        let Place { table, row, keys: [key] } = self.place(block, [0]);
        self.tables[table].prefetch(row, key);
    }

    /// Returns the smallest value of these cells of a block.
    #[inline]
    pub(crate) fn least<const N: usize>(&self, block: usize, cells: [u8; N]) -> u32 {
        let Place { table, row, keys } = self.place(block, cells);
        let values = self.tables[table].get(row, keys).into_iter().zip(cells);
        values.map(|(value, cell)| self.value(Cell { block, cell }, value)).min().unwrap_or(0)
    }

    fn value(&self, at: Cell, value: u32) -> u32 {
        if value == VALUE_MAX { self.large.get(&at).copied().unwrap_or(value) } else { value }
    }

    /// Raises these cells of a block to their smallest value plus `times`, which it returns; larger old values stay.
    #[inline]
    pub(crate) fn add<const N: usize>(&mut self, block: usize, cells: [u8; N], times: u32) -> u32 {
        let Place { table, row, keys } = self.place(block, cells);
        let small = |values: [u32; N]| {
            let least = values.into_iter().min()?;
            least.checked_add(times).filter(|&target| target < VALUE_MAX)
        };
        self.tables[table].raise_all(row, keys, small).unwrap_or_else(|| {
            let target = self.least(block, cells).saturating_add(times);
            if times > 0 {
                cells.iter().for_each(|&cell| self.raise_to(Cell { block, cell }, target));
            }
            target
        })
    }

    /// Returns all values of the blocks `range`, ascending.
    pub fn entries(&self, range: Range<usize>) -> impl Iterator<Item = (Cell, u32)> {
        let chunks = range.start / self.chunk..range.end.div_ceil(self.chunk);
        chunks.flat_map(move |chunk| {
            let first = chunk * self.chunk;
            let Place { table, row, keys: [key] } = self.place(range.start.max(first), [0]);
            let end = range.end;
            self.tables[table]
                .entries(row, key)
                .map(move |(key, value)| {
                    let [cell, ..] = (key % (1 << HOME_BITS)).to_le_bytes();
                    let at = Cell { block: first + (key >> HOME_BITS) as usize, cell };
                    (at, self.value(at, value))
                })
                .take_while(move |(at, _)| at.block < end)
        })
    }

    /// Returns the bytes of memory, free places of the tables included.
    #[must_use]
    pub fn memory(&self) -> usize {
        let tables: usize = self.tables.iter().map(Rows::memory).sum();
        tables + self.tables.capacity() * size_of::<Rows>() + self.large.capacity() * size_of::<(Cell, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const BLOCKS: usize = 3000;

    /// Blocks at the ends of chunks and of the filter, and some between.
    fn block() -> impl Strategy<Value = usize> {
        prop_oneof![0usize..8, 1015usize..1035, 2040usize..2056, 2990..BLOCKS, 0..BLOCKS]
    }

    fn addition() -> impl Strategy<Value = (usize, [u8; 3], u32)> {
        (block(), [0u8..128, 0..128, 0..128], prop_oneof![0u32..50, 30_000u32..80_000])
    }

    type Model = BTreeMap<(usize, u8), u32>;

    fn all(overflow: &Overflow, range: Range<usize>) -> Vec<((usize, u8), u32)> {
        overflow.entries(range).map(|(at, value)| ((at.block, at.cell), value)).collect()
    }

    /// Filters of any size fill their tables evenly: random elements make no crowd, which would take many times the memory.
    #[test]
    fn memory_follows_the_entries() {
        let mut random = 1u64;
        for blocks in [250, 1025, 3125, 68_360] {
            let (mut overflow, entries) = (Overflow::new(blocks), blocks * 10);
            for _ in 0..entries / 3 {
                random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                let (block, [cell, ..]) = ((random >> 24) as usize % blocks, (random >> 12).to_le_bytes());
                overflow.add(block, [0, 40, 80].map(|further| cell.wrapping_add(further) % 128), 1);
            }
            assert!(
                overflow.memory() < entries * 6 + 20_000,
                "{blocks}: {} for {entries}",
                overflow.memory()
            );
        }
    }

    proptest! {
        /// The storage behaves as a map from cells to numbers, small and large.
        #[test]
        fn a_map_of_raised_cells(
            writes in prop::collection::vec((block(), 0u8..128, 1u32..80_000), 0..3000),
            from in block(),
            to in block(),
        ) {
            let (mut overflow, mut model) = (Overflow::new(BLOCKS), Model::new());
            for (block, cell, value) in writes {
                overflow.raise_to(Cell { block, cell }, value);
                let highest = model.entry((block, cell)).or_insert(value);
                *highest = value.max(*highest);
            }
            for &(block, cell) in model.keys() {
                for cell in [cell, (cell + 1) % 128] {
                    let truth = model.get(&(block, cell)).copied().unwrap_or(0);
                    prop_assert_eq!(overflow.get(Cell { block, cell }), truth);
                }
            }
            prop_assert_eq!(all(&overflow, from..to), {
                let within = model.iter().filter(|((block, _), _)| (from..to).contains(block));
                within.map(|(&at, &value)| (at, value)).collect::<Vec<_>>()
            });
            prop_assert_eq!(all(&overflow, 0..BLOCKS), model.into_iter().collect::<Vec<_>>());
        }

        /// Additions to several cells raise each to the smallest plus the addition, whatever their number.
        #[test]
        fn additions_raise_to_the_smallest_and_more(
            additions in prop::collection::vec(addition(), 0..1000),
        ) {
            let (mut overflow, mut model) = (Overflow::new(BLOCKS), Model::new());
            for &(block, cells, times) in &additions {
                let least = cells.map(|cell| model.get(&(block, cell)).copied().unwrap_or(0)).into_iter().min();
                let target = least.unwrap_or(0) + times;
                prop_assert_eq!(overflow.add(block, cells, times), target);
                if times > 0 {
                    for cell in cells {
                        let value = model.entry((block, cell)).or_insert(target);
                        *value = target.max(*value);
                    }
                }
                prop_assert_eq!(overflow.least(block, cells), target);
            }
            prop_assert_eq!(all(&overflow, 0..BLOCKS), model.into_iter().collect::<Vec<_>>());
        }
    }
}
