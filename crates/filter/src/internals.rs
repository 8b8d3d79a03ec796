// SPDX-License-Identifier: GPL-3.0-or-later
//! The building blocks for filters of other layouts, for bulkmark's own study and benches. They are not part of the stable
//! interface: they change without notice.

pub use crate::cells::{Cell, Cells, Group, add_intuitive, add_refined, count};
pub use crate::layout::{CELL_BITS, CELL_MAX};
pub use crate::overflow::Overflow;
pub use crate::packed::Packed;
use crate::probe::Probe;

/// The eight cells of an element, by block.
#[inline]
pub fn groups(probe: &Probe) -> impl Iterator<Item = Group<'_>> + Clone {
    probe.groups()
}
