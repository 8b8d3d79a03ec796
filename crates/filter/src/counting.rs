// SPDX-License-Identifier: GPL-3.0-or-later
//! What the two counting filters have in common.

use crate::layout::CELLS_PER_BLOCK;
use crate::params::ParameterError;
use crate::probe::Probe;

/// A counting Bloom filter over blocks: of either extension (Yan & Cho, section 4).
pub trait Counting: Sized {
    /// An empty filter of `blocks` blocks of 64 bytes.
    ///
    /// # Errors
    /// When `blocks` is 0 or above 2^32, or the machine has not so much memory.
    fn new(blocks: usize) -> Result<Self, ParameterError>;

    /// An empty filter that is to hold `capacity` elements with `cells` cells for each.
    ///
    /// # Errors
    /// When the machine has not so much memory.
    fn sized(capacity: u32, cells: f64) -> Result<Self, ParameterError> {
        Self::new(blocks_for(capacity, cells))
    }

    /// The number of blocks.
    fn blocks(&self) -> usize;

    /// How often the element behind `probe` was added. Never below the truth.
    fn count(&self, probe: &Probe) -> u32;

    /// Adds the element behind `probe` `times` times and returns its new count.
    fn add(&mut self, probe: &Probe, times: u32) -> u32;

    /// Takes one addition of the element behind `probe` back.
    ///
    /// # Errors
    /// See [`RemoveError`]; nothing is changed then.
    fn remove(&mut self, probe: &Probe) -> Result<(), RemoveError>;

    /// The cells of `element` in this filter.
    #[inline]
    fn probe(&self, element: u128) -> Probe {
        Probe::new(element, self.blocks())
    }
}

/// The number of blocks of a filter that is to hold `capacity` elements with `cells` cells for each; at least one. With
/// 100 cells, more than any slice of a row gets, it is still below 2^32.
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
pub enum RemoveError {
    /// In the refined extension a cell does not hold the sum of its additions: lowering it could push another element
    /// below its truth.
    #[error("the refined extension knows no removal")]
    Refined,
    /// The element was never added.
    #[error("the element is not in the filter")]
    Absent,
    /// No slice is as old as the element's identifier.
    #[error("the identifier {0} is older than all slices")]
    TooOld(u64),
}
