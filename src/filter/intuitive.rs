// SPDX-License-Identifier: GPL-3.0-or-later
//! The intuitive counting filter: each addition raises all cells of an element, so it can be taken back.

use super::cells::{Block, CELL_MAX};
use super::counting::{Counting, RemoveError};
use super::probe::Probe;
use super::refined::blocks_for;

/// A counting filter whose additions commute and can be taken back, at the price of more wrong counts (the paper's
/// study; docs/simulation.md). Cells of five bits that stay at 31 once they are there: what a saturated cell lost on
/// the way up cannot be told on the way down.
pub struct Intuitive {
    blocks: Vec<Block>,
}

impl Intuitive {
    /// Calls `change` once for each different cell (H2) with its value, and sets it to the answer.
    fn update(&mut self, probe: &Probe, change: impl Fn(u8) -> u8) {
        let mut done: Vec<(usize, u8)> = Vec::with_capacity(6);
        for at in probe.all() {
            if !done.contains(&at) {
                let block = &mut self.blocks[at.0];
                block.set(at.1.into(), change(block.get(at.1.into())));
                done.push(at);
            }
        }
    }
}

impl Counting for Intuitive {
    fn sized(capacity: u32, cells: f64) -> Self {
        Self { blocks: vec![Block::EMPTY; blocks_for(capacity, cells)] }
    }

    fn blocks(&self) -> usize {
        self.blocks.len()
    }

    fn count(&self, probe: &Probe) -> u32 {
        probe.all().map(|(block, cell)| self.blocks[block].get(cell.into())).min().unwrap_or(0).into()
    }

    fn add(&mut self, probe: &Probe, times: u32) -> u32 {
        let times = u8::try_from(times).unwrap_or(u8::MAX);
        self.update(probe, |value| value.saturating_add(times).min(CELL_MAX));
        self.count(probe)
    }

    fn remove(&mut self, probe: &Probe) -> Result<(), RemoveError> {
        if self.count(probe) == 0 {
            return Err(RemoveError::Absent);
        }
        self.update(probe, |value| if value == CELL_MAX { value } else { value - 1 });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Additions and removals in any order, of what was added: never below the truth, up to the cells' 31.
        #[test]
        fn never_undercounts(steps in prop::collection::vec((0u64..40, prop::bool::weighted(0.6)), 0..400)) {
            let mut filter = Intuitive::sized(50, 8.0);
            let mut model: HashMap<u64, u32> = HashMap::new();
            for (n, add) in steps {
                let probe = filter.probe(u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835));
                let truth = model.entry(n).or_default();
                if add {
                    *truth += 1;
                    prop_assert!(filter.add(&probe, 1) >= (*truth).min(31));
                } else if *truth > 0 {
                    *truth -= 1;
                    prop_assert_eq!(filter.remove(&probe), Ok(()));
                }
                let shown = filter.count(&probe);
                prop_assert!(shown >= model[&n].min(31));
            }
        }
    }

    #[test]
    fn what_was_never_added_cannot_be_removed() {
        let mut filter = Intuitive::sized(50, 8.0);
        let probe = filter.probe(7);
        assert_eq!(filter.remove(&probe), Err(RemoveError::Absent));
        filter.add(&probe, 2);
        assert_eq!((filter.remove(&probe), filter.remove(&probe)), (Ok(()), Ok(())));
        assert_eq!(filter.remove(&probe), Err(RemoveError::Absent));
    }

    /// A saturated cell may have lost additions: it must not come down any more.
    #[test]
    fn saturated_cells_stay() {
        let mut filter = Intuitive::sized(50, 8.0);
        let probe = filter.probe(7);
        filter.add(&probe, 40);
        for _ in 0..39 {
            filter.remove(&probe).unwrap();
        }
        assert_eq!(filter.count(&probe), 31);
    }
}
