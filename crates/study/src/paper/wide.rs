// SPDX-License-Identifier: GPL-3.0-or-later
//! The study's cells, which never saturate.

use bulkmark_filter::internals::{Cell, Cells};

/// Cells of 32 bits, one in each block.
pub(super) struct Wide(Vec<u32>);

impl Wide {
    /// A row of `cells` zeros.
    pub(super) fn new(cells: usize) -> Self {
        Self(vec![0; cells])
    }
}

impl Cells for Wide {
    const MAX: u32 = u32::MAX;

    fn get(&self, at: Cell) -> u32 {
        self.0[at.block]
    }

    fn set(&mut self, at: Cell, value: u32) {
        self.0[at.block] = value;
    }
}
