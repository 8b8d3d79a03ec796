// SPDX-License-Identifier: GPL-3.0-or-later
//! What the two counting filters have in common.

use crate::layout::CELLS_PER_BLOCK;
use crate::params::ParameterError;
use crate::probe::Probe;

/// A counting Bloom filter: of either extension (Yan & Cho, section 4).
///
/// The methods that end in `_at` take the cells of an element instead of the element. They are for those who need these
/// cells more than once, for instance to ask first and to add then; [`probe`](Self::probe) finds them.
pub trait Counting: Sized {
    /// An empty filter of `blocks` blocks of 64 bytes.
    ///
    /// # Errors
    /// When `blocks` is 0 or above 2^32, or the machine does not have that much memory.
    fn new(blocks: usize) -> Result<Self, ParameterError>;

    /// An empty filter for `capacity` elements with `cells` cells for each; [`CELLS_AT_CAPACITY`](crate::CELLS_AT_CAPACITY)
    /// is what [`Scaling`](crate::Scaling) begins with. Less than 1 is taken for 1, more than 100 for 100.
    ///
    /// # Errors
    /// When the machine does not have that much memory.
    fn sized(capacity: u32, cells: f64) -> Result<Self, ParameterError> {
        Self::new(blocks_for(capacity, cells))
    }

    /// The number of blocks.
    fn blocks(&self) -> usize;

    /// How often the element with these cells was added. Never below the truth.
    fn count_at(&self, probe: &Probe) -> u32;

    /// Adds the element with these cells `times` times and returns its new count.
    fn add_at(&mut self, probe: &Probe, times: u32) -> u32;

    /// The cells of `element` in this filter.
    #[inline]
    fn probe(&self, element: u128) -> Probe {
        Probe::new(element, self.blocks())
    }

    /// How often `element` was added. Never below the truth.
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

/// A counting filter that can take additions back. [`Refined`](crate::Refined) is none: its cells do not hold the sum of their
/// additions, so a lower cell could push another element below its truth.
pub trait Removing: Counting {
    /// Takes one addition of the element with these cells back.
    ///
    /// # Errors
    /// [`RemoveError::Absent`] when it is not in the filter; nothing is changed then.
    fn remove_at(&mut self, probe: &Probe) -> Result<(), RemoveError>;

    /// Takes one addition of `element` back.
    ///
    /// # Errors
    /// As [`remove_at`](Self::remove_at).
    #[inline]
    fn remove(&mut self, element: u128) -> Result<(), RemoveError> {
        let probe = self.probe(element);
        self.remove_at(&probe)
    }
}

/// The number of blocks of a filter for `capacity` elements with `cells` cells for each; at least one. With 100 cells,
/// more than any slice of a row gets, it is still below 2^32.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and bounded just before"
)]
pub(crate) fn blocks_for(capacity: u32, cells: f64) -> usize {
    let blocks = (f64::from(capacity) * cells.clamp(1.0, 100.0) / CELLS_PER_BLOCK as f64).ceil();
    (blocks as usize).max(1)
}

/// An addition cannot be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// The element was never added.
    #[error("the element is not in the filter")]
    Absent,
    /// No slice is as old as the element's identifier.
    #[error("the identifier {0} is older than all slices")]
    TooOld(u64),
}
