// SPDX-License-Identifier: GPL-3.0-or-later
//! The two counting extensions of a Bloom filter, on cells of any kind (Yan & Cho, section 4).

/// A cell: its block, and its index in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The number of the block.
    pub block: usize,
    /// The index in the block.
    pub cell: u8,
}

/// Cells of one block.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// The number of the block.
    pub block: usize,
    /// The indices in it; one may occur more than once.
    pub cells: &'a [u8],
}

impl<'a> Group<'a> {
    fn each(self) -> impl Iterator<Item = Cell> + Clone + use<'a> {
        self.cells.iter().map(move |&cell| Cell { block: self.block, cell })
    }
}

/// Counters in blocks.
pub trait Cells {
    /// The largest value of a cell; a cell that reaches it keeps it.
    const MAX: u32;

    /// Returns the value of a cell.
    fn get(&self, at: Cell) -> u32;

    /// Sets a cell to at most [`MAX`](Self::MAX).
    fn set(&mut self, at: Cell, value: u32);

    /// Returns the smallest of these cells.
    #[inline]
    fn least(&self, group: Group<'_>) -> u32 {
        group.each().map(|at| self.get(at)).min().unwrap_or(u32::MAX)
    }

    /// Raises to `target` those of these cells that are below it.
    #[inline]
    fn raise_to(&mut self, group: Group<'_>, target: u32) {
        for at in group.each() {
            if self.get(at) < target {
                self.set(at, target);
            }
        }
    }
}

/// Returns how often the element with these cells (at least one) was added: the smallest of them. Never below the true count.
#[inline]
pub fn count<'a>(cells: &impl Cells, groups: impl Iterator<Item = Group<'a>>) -> u32 {
    groups.fold(u32::MAX, |least, group| least.min(cells.least(group)))
}

/// The refined extension: raises only the smallest cells of the element (H1), each once (H2), `times` times over. So each cell
/// becomes the larger of its old value and the smallest plus `times`. Returns the element's count before and after.
#[inline]
pub fn add_refined<'a, C: Cells>(
    cells: &mut C,
    groups: impl Iterator<Item = Group<'a>> + Clone,
    times: u32,
) -> (u32, u32) {
    let before = count(cells, groups.clone());
    let after = before.saturating_add(times).min(C::MAX);
    if after > before {
        groups.for_each(|group| cells.raise_to(group, after));
    }
    (before, after)
}

/// The intuitive extension: raises each cell of the element by `times`; a cell that two hashes share, once (H2).
pub fn add_intuitive<'a, C: Cells>(
    cells: &mut C,
    groups: impl Iterator<Item = Group<'a>> + Clone,
    times: u32,
) {
    for at in distinct(groups) {
        cells.set(at, cells.get(at).saturating_add(times).min(C::MAX));
    }
}

/// Removes one addition of the intuitive extension. A saturated cell may have lost additions on its way up, and keeps its
/// value.
pub(crate) fn remove_intuitive<'a, C: Cells>(cells: &mut C, groups: impl Iterator<Item = Group<'a>> + Clone) {
    for at in distinct(groups) {
        let value = cells.get(at);
        if value < C::MAX {
            cells.set(at, value.saturating_sub(1));
        }
    }
}

/// Each cell once.
fn distinct<'a>(groups: impl Iterator<Item = Group<'a>> + Clone) -> impl Iterator<Item = Cell> {
    let all = groups.flat_map(Group::each);
    let before = all.clone();
    all.enumerate().filter(move |&(n, at)| !before.clone().take(n).any(|b| b == at)).map(|(_, at)| at)
}
