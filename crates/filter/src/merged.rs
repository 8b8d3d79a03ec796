// SPDX-License-Identifier: GPL-3.0-or-later
//! The sum of several writers' filters (Yan & Cho, section 4, merging and delta).

use crate::cells::Cell;
use crate::delta::Delta;
use crate::gauge::Gauge;
use crate::params::ParameterError;
use crate::probe::Probe;
use crate::refined::Refined;
use crate::split::Split;

/// The cell-by-cell sum of filters that each have one writer. It supports lookups and merging, but no additions
/// ([`Draft`](crate::Draft) is for its only writer): raising only the smallest cells of a sum, while a writer elsewhere does the same,
/// counts too low.
///
/// The count of an element is at least the sum of its counts in all filters: each of those is at most the smallest of
/// its cells there, and a sum of minima is at most the minimum of sums. Beyond 15 the same holds for the cells of its
/// first block, whose sums are whole numbers here as well.
///
/// ```
/// use bulkmark_filter::{Counting, Merged, Refined};
///
/// let element = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
/// let (mut here, mut there) = (Refined::new(100)?, Refined::new(100)?);
/// here.add(element, 2);
/// there.add(element, 3);
/// let mut merged = Merged::new(100)?;
/// merged.merge(&here)?;
/// merged.merge(&there)?;
/// assert_eq!(merged.count(element), 5);
/// # Ok::<(), bulkmark_filter::ParameterError>(())
/// ```
pub struct Merged {
    pub(crate) cells: Split,
}

impl Merged {
    /// Returns an empty sum for filters of `blocks` blocks.
    ///
    /// # Errors
    /// If `blocks` is 0 or above 2^32, or the machine lacks the memory.
    pub fn new(blocks: usize) -> Result<Self, ParameterError> {
        Ok(Self { cells: Split::new(blocks)? })
    }

    /// Returns how often `element` was added by all writers together. Never below the true count.
    #[must_use]
    pub fn count(&self, element: u128) -> u32 {
        self.cells.count(&Probe::new(element, self.cells.blocks()))
    }

    /// Adds a whole filter, cell by cell.
    ///
    /// # Errors
    /// If it has another number of blocks; nothing is changed then.
    pub fn merge(&mut self, filter: &Refined) -> Result<(), ParameterError> {
        ParameterError::same("blocks", self.cells.blocks() as u64, filter.cells.blocks() as u64)?;
        for (at, value) in filter.cells.used() {
            self.cells.raise(at, value);
        }
        Ok(())
    }

    /// Adds the blocks `range` of a filter or of another sum, from their [`bytes`](Self::bytes). Returns false if they do not fit; then
    /// nothing is changed.
    #[must_use]
    pub fn merge_bytes(&mut self, range: std::ops::Range<usize>, bytes: &[u8]) -> bool {
        self.cells.merge_bytes(range, bytes)
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.cells.blocks()
    }

    /// Returns the bytes of memory.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.cells.memory()
    }

    /// Adds the growth of one filter since it was merged. The caller must ensure that it was not added before.
    ///
    /// # Errors
    /// If the delta belongs to a filter with another number of blocks; nothing is changed then.
    pub fn apply(&mut self, delta: &Delta) -> Result<(), ParameterError> {
        ParameterError::same("blocks", self.cells.blocks() as u64, delta.blocks() as u64)?;
        for (at, by) in delta.cells() {
            self.cells.raise(at, by);
        }
        Ok(())
    }

    /// Returns the number of cells that differ between two sums of the same size, and the largest difference.
    ///
    /// # Errors
    /// If the other has another number of blocks.
    pub fn differences(&self, other: &Self) -> Result<(u64, u32), ParameterError> {
        ParameterError::same("blocks", self.cells.blocks() as u64, other.cells.blocks() as u64)?;
        let (mut ours, mut theirs) = (self.cells.used().peekable(), other.cells.used().peekable());
        let place = |cell: &Cell| (cell.block, cell.cell);
        let (mut differing, mut largest) = (0, 0);
        loop {
            let by = match (ours.peek(), theirs.peek()) {
                (None, None) => return Ok((differing, largest)),
                (Some((a, x)), Some((b, y))) if place(a) == place(b) => {
                    let by = x.abs_diff(*y);
                    ours.next();
                    theirs.next();
                    by
                }
                (Some((a, x)), b) if b.is_none_or(|(b, _)| place(a) < place(b)) => {
                    let by = *x;
                    ours.next();
                    by
                }
                _ => theirs.next().map_or(0, |(_, y)| y),
            };
            differing += u64::from(by > 0);
            largest = by.max(largest);
        }
    }

    /// Measures the cells like [`Refined::gauge`].
    #[must_use]
    pub fn gauge(&self, threshold: u32) -> Gauge {
        self.cells.gauge(threshold)
    }

    /// Returns the blocks `range` as bytes, in the format of [`Refined::bytes`].
    #[must_use]
    pub fn bytes(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        self.cells.bytes(range)
    }
}
