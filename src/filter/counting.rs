// SPDX-License-Identifier: GPL-3.0-or-later
//! What the two counting filters have in common.

use super::probe::Probe;

/// A counting Bloom filter over blocks: of either extension (Yan & Cho, section 4).
pub trait Counting: Sized {
    /// An empty filter that is to hold `capacity` elements with `cells` cells for each.
    fn sized(capacity: u32, cells: f64) -> Self;

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
    fn probe(&self, element: u128) -> Probe {
        Probe::new(element, self.blocks())
    }
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
