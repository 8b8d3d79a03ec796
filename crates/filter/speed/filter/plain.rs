// SPDX-License-Identifier: GPL-3.0-or-later
//! The limits of the machine's memory, and the filter's batch on plain memory, on pages of either size.

use bulkmark_filter::internals::{CELL_MAX, Cell, Cells, Group, add_refined, groups};
use bulkmark_filter::{CELLS_PER_BLOCK, Probe};
use memmap2::{Advice, MmapMut};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1};
use std::hint::black_box;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;

/// Elements of a batch.
pub(crate) const BATCH: usize = 32;

/// Lines of memory; as blocks they have the filter's layout.
pub(crate) struct Plain {
    memory: MmapMut,
}

/// How a batch prepares the lines that it will use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    Nothing,
    /// It prefetches them into the first level of the cache.
    First,
    /// It prefetches them into the second level, as the filter does.
    Second,
    /// It reads a byte of each.
    Read,
}

impl Plain {
    /// Returns zeros on pages that are all present.
    pub(crate) fn new(lines: usize, huge: bool) -> Self {
        let mut memory = MmapMut::map_anon(lines * LINE).expect("memory");
        #[cfg(target_os = "linux")]
        {
            let _ = memory.advise(if huge { Advice::HugePage } else { Advice::NoHugePage });
        }
        #[cfg(not(target_os = "linux"))]
        let _ = huge;
        memory.fill(0);
        Self { memory }
    }

    fn lines(&self) -> usize {
        self.memory.len() / LINE
    }

    fn line(&self, line: usize) -> &[[u8; 8]; 8] {
        let lines: &[[u8; LINE]] = self.memory.as_chunks().0;
        let words = lines[line].as_chunks().0;
        words.try_into().expect("eight words")
    }

    fn line_mut(&mut self, line: usize) -> &mut [[u8; 8]; 8] {
        let lines: &mut [[u8; LINE]] = self.memory.as_chunks_mut().0;
        let words = lines[line].as_chunks_mut().0;
        words.try_into().expect("eight words")
    }

    #[inline]
    fn ahead(&self, line: usize, ahead: Ahead) {
        match ahead {
            Ahead::Nothing => {}
            Ahead::First => prefetch::<_MM_HINT_T0, _>(self.line(line)),
            Ahead::Second => prefetch::<_MM_HINT_T1, _>(self.line(line)),
            Ahead::Read => _ = black_box(self.line(line)[0][0]),
        }
    }

    /// Reads two lines for each element, none of which waits for another.
    pub(crate) fn read(&self, elements: &[u128]) {
        let lines = self.lines();
        let mut sum = 0u64;
        for &element in elements {
            for line in two(element, lines) {
                sum = sum.wrapping_add(u64::from_le_bytes(self.line(line)[0]));
            }
        }
        black_box(sum);
    }

    /// Reads two lines for each element; the content of one determines the place of the next.
    pub(crate) fn read_dependent(&self, elements: &[u128]) {
        let lines = self.lines();
        let mut last = 0u64;
        for &element in elements {
            for half in [(element >> 64) as u64, element as u64] {
                last = u64::from_le_bytes(self.line(scale(half.wrapping_add(last), lines))[0]);
            }
        }
        black_box(last);
    }

    /// Changes two lines for each element, none of which waits for another.
    pub(crate) fn update(&mut self, elements: &[u128], ahead: Ahead) {
        let lines = self.lines();
        for batch in elements.chunks(BATCH) {
            if ahead != Ahead::Nothing {
                batch.iter().flat_map(|&e| two(e, lines)).for_each(|line| self.ahead(line, ahead));
            }
            for line in batch.iter().flat_map(|&e| two(e, lines)) {
                let word = &mut self.line_mut(line)[0];
                *word = (u64::from_le_bytes(*word) + 1).to_le_bytes();
            }
        }
    }

    /// The filter's batch of additions to cells of four bits, with a choice of preparation.
    #[inline]
    pub(crate) fn add_batch(&mut self, additions: &[(u128, u32)], counts: &mut [u32], ahead: Ahead) {
        let lines = self.lines();
        for (additions, counts) in additions.chunks(BATCH).zip(counts.chunks_mut(BATCH)) {
            let mut probes = [Probe::default(); BATCH];
            for (probe, &(element, _)) in probes.iter_mut().zip(additions) {
                *probe = Probe::new(element, lines);
                probe.blocks.iter().for_each(|&block| self.ahead(block, ahead));
            }
            for ((probe, &(_, times)), count) in probes.iter().zip(additions).zip(counts) {
                *count = add_refined(self, groups(probe), times).1;
            }
        }
    }
}

/// Returns the word and shift of a cell.
#[inline]
fn place(cell: u8) -> (usize, usize) {
    let cell = usize::from(cell) % CELLS_PER_BLOCK;
    (cell / 16, cell % 16 * 4)
}

impl Cells for Plain {
    const MAX: u32 = CELL_MAX;

    #[inline]
    fn get(&self, at: Cell) -> u32 {
        let (word, shift) = place(at.cell);
        (u64::from_le_bytes(self.line(at.block)[word]) >> shift) as u32 & CELL_MAX
    }

    #[inline]
    fn set(&mut self, at: Cell, value: u32) {
        let change = u64::from(self.get(at) ^ value.min(CELL_MAX));
        let (word, shift) = place(at.cell);
        let word = &mut self.line_mut(at.block)[word];
        *word = (u64::from_le_bytes(*word) ^ change << shift).to_le_bytes();
    }

    /// All cells are zero, so a jump here is predicted.
    #[inline]
    fn raise_to(&mut self, group: Group<'_>, target: u32) {
        for &cell in group.cells {
            let at = Cell { block: group.block, cell };
            self.set(at, self.get(at).max(target));
        }
    }
}

/// Returns the two lines of an element: those of its blocks in a filter of that size.
#[inline]
fn two(element: u128, lines: usize) -> [usize; 2] {
    [scale((element >> 64) as u64, lines), scale(element as u64, lines)]
}

#[inline]
fn scale(half: u64, lines: usize) -> usize {
    ((u128::from(half) * lines as u128) >> 64) as usize
}

#[inline]
#[allow(unsafe_code, reason = "std has no safe prefetch yet; it is the thing to measure")]
fn prefetch<const LEVEL: i32, T>(item: &T) {
    // SAFETY: a prefetch is a hint; it changes no memory and cannot fault. SSE, its feature, is part of every x86-64.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<LEVEL>(std::ptr::from_ref(item).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}

#[cfg(not(target_arch = "x86_64"))]
const _MM_HINT_T0: i32 = 0;

#[cfg(not(target_arch = "x86_64"))]
const _MM_HINT_T1: i32 = 0;
