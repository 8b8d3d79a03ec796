// SPDX-License-Identifier: GPL-3.0-or-later
//! The common interface of the two counting filters.

use crate::layout::CELLS_PER_BLOCK;
use crate::params::ParameterError;
use crate::probe::Probe;

/// A counting Bloom filter of either extension (Yan & Cho, section 4).
///
/// The methods that end in `_at` take the cells of an element instead of the element, for callers that need these cells more than
/// once, for instance to count first and add then; [`probe`](Self::probe) computes them.
pub trait Counting: Sized {
    /// Returns an empty filter of `blocks` blocks of 64 bytes.
    ///
    /// # Errors
    /// If `blocks` is 0 or above 2^32, or the machine lacks the memory.
    fn new(blocks: usize) -> Result<Self, ParameterError>;

    /// Returns an empty filter for `capacity` elements with `cells` cells for each; [`Scaling`](crate::Scaling) begins with
    /// [`CELLS_AT_CAPACITY`](crate::CELLS_AT_CAPACITY). The value is limited to 1 to 100.
    ///
    /// # Errors
    /// If the machine lacks the memory.
    fn sized(capacity: u32, cells: f64) -> Result<Self, ParameterError> {
        Self::new(blocks_for(capacity, cells))
    }

    /// Returns the number of blocks.
    fn blocks(&self) -> usize;

    /// Returns how often the element with these cells was added. Never below the true count.
    fn count_at(&self, probe: &Probe) -> u32;

    /// Adds the element with these cells `times` times and returns its new count.
    fn add_at(&mut self, probe: &Probe, times: u32) -> u32;

    /// Returns the cells of `element` in this filter.
    #[inline]
    fn probe(&self, element: u128) -> Probe {
        Probe::new(element, self.blocks())
    }

    /// Returns how often `element` was added. Never below the true count.
    #[inline]
    fn count(&self, element: u128) -> u32 {
        self.count_at(&self.probe(element))
    }

    /// Adds `element` `times` times and returns its new count.
    #[inline]
    fn add(&mut self, element: u128, times: u32) -> u32 {
        let probe = self.probe(element);
        self.add_at(&probe, times)
    }
}

/// A counting filter that can remove additions. [`Refined`](crate::Refined) cannot: its cells do not hold the sum of their additions, so
/// lowering a cell could push another element below its true count.
pub trait Removing: Counting {
    /// Removes one addition of the element with these cells.
    ///
    /// # Errors
    /// [`RemoveError::Absent`] if it is not in the filter; nothing is changed then.
    fn remove_at(&mut self, probe: &Probe) -> Result<(), RemoveError>;

    /// Removes one addition of `element`.
    ///
    /// # Errors
    /// As [`remove_at`](Self::remove_at).
    #[inline]
    fn remove(&mut self, element: u128) -> Result<(), RemoveError> {
        let probe = self.probe(element);
        self.remove_at(&probe)
    }
}

/// Returns the number of blocks of a filter for `capacity` elements with `cells` cells for each; at least one. With 100 cells, more
/// than any slice of a row has, it is still below 2^32.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and bounded just before"
)]
pub(crate) fn blocks_for(capacity: u32, cells: f64) -> usize {
    let blocks = (f64::from(capacity) * cells.clamp(1.0, 100.0) / CELLS_PER_BLOCK as f64).ceil();
    (blocks as usize).max(1)
}

/// The reason why an addition cannot be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// The element was never added.
    #[error("the element is not in the filter")]
    Absent,
    /// The element's identifier is older than all slices.
    #[error("the identifier {0} is older than all slices")]
    TooOld(u64),
}
