// SPDX-License-Identifier: GPL-3.0-or-later
//! The parts that filters of other layouts are made of, for bulkmark's own study and benches. No promise is made of them:
//! they change without notice.

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
