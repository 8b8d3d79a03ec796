// SPDX-License-Identifier: GPL-3.0-or-later
//! A server's own community: its clients' reports, and the history of updates for others.

use crate::history::update::{FREE_CELLS, Part, Scope, Update};
use crate::history::vector::{Mark, Origin};
use crate::state::generations::Generations;
use crate::state::spool::MAX_BATCH;
use bulkmark_filter::CELLS_PER_ELEMENT;

/// Changed cells after which an update is cut early. The next batch changes at most as many as remain: so no reports can make an update
/// whose cells readers find too many for its bytes.
const CUT_AT: usize = FREE_CELLS - MAX_BATCH * CELLS_PER_ELEMENT;

/// Changed blocks after which an update is cut early, since they take memory and time to cut.
const CUT_AT_BLOCKS: usize = 49_152;

/// The filters that only this server writes, and the end of its history.
pub struct Local {
    /// The counts, by window.
    pub generations: Generations,
    origin: Origin,
    mark: Mark,
}

impl Local {
    /// The counts of a site, which makes no updates.
    pub const fn new(generations: Generations, origin: Origin, mark: Mark) -> Self {
        Self { generations, origin, mark }
    }

    /// `generations` must be in the state of the last update; later additions are in the next one.
    pub const fn recording(mut generations: Generations, origin: Origin, mark: Mark) -> Self {
        generations.record();
        Self { generations, origin, mark }
    }

    /// The origin under which this ledger counts.
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// The mark of the last update of these counts.
    pub const fn mark(&self) -> Mark {
        self.mark
    }

    /// The first version that will include reports of now.
    pub const fn next_version(&self) -> u64 {
        self.mark.version + 1
    }

    /// Whether anything was added since the last update.
    pub fn has_grown(&self) -> bool {
        self.generations.grown_blocks() > 0
    }

    /// Whether an update must be cut at once.
    pub fn is_full(&self) -> bool {
        self.generations.grown_cells() > CUT_AT || self.generations.grown_blocks() >= CUT_AT_BLOCKS
    }

    /// Makes the next update with its bytes; `None` if nothing was added since the last one.
    pub fn cut(&mut self) -> Option<(Update, Vec<u8>)> {
        let parts = self.generations.take_growth();
        self.publish(parts)
    }

    /// Begins a new origin with empty filters, whose first update has these parts; returns it with its bytes. The caller keeps the previous
    /// counts.
    pub fn renew(
        &mut self,
        mut generations: Generations,
        origin: Origin,
        parts: Vec<Part>,
    ) -> Option<(Update, Vec<u8>)> {
        generations.record();
        *self = Self { generations, origin, mark: Mark::default() };
        self.publish(parts)
    }

    fn publish(&mut self, parts: Vec<Part>) -> Option<(Update, Vec<u8>)> {
        if parts.is_empty() {
            return None;
        }
        let update = Update {
            origin: self.origin,
            version: self.next_version(),
            before: self.mark.chain,
            scope: Scope::Community,
            parts,
        };
        let bytes = update.encode();
        self.mark = update.mark(&bytes);
        Some((update, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::update::CELLS_PER_BYTE;
    use crate::settings::Settings;
    use crate::state::anomaly::tests::element;
    use bulkmark_filter::{BLOCK_BYTES, CELLS_PER_BLOCK};
    use bulkmark_types::Signature;

    fn add(local: &mut Local, numbers: std::ops::Range<u32>) {
        for n in numbers {
            let signature = Signature::from_bytes(element(n.into()).to_le_bytes());
            let generations = &mut local.generations;
            generations.add(generations.window_of(signature, 1_800_000_000), n.into(), signature, 1).unwrap();
        }
    }

    fn local(capacity: u32) -> Local {
        let settings = Settings { capacity: capacity.try_into().unwrap(), ..Settings::default() };
        Local::recording(Generations::new(&settings), Origin(1), Mark::default())
    }

    /// Updates of reports stay far below the bound, however small and full the filters are.
    #[test]
    fn updates_of_reports_are_far_from_the_bound() {
        for (capacity, signatures) in [(1, 1), (1, 5000), (100, 5000), (1000, 8192), (100_000, 100_000)] {
            let mut own = local(capacity);
            add(&mut own, 0..signatures);
            let (update, bytes) = own.cut().unwrap();
            for delta in update.parts.iter().map(|part| &part.delta) {
                assert!(delta.len() < CELLS_PER_BLOCK + delta.encode().len() * CELLS_PER_BYTE / 5);
            }
            assert_eq!(Update::decode(&bytes), Ok(update));
        }
    }

    /// If reports spread over a large filter, an update is due while the copies of changed blocks are small, but not after each batch.
    #[test]
    fn an_update_is_due_before_many_blocks_wait() {
        let batch = u32::try_from(MAX_BATCH).unwrap();
        let mut own = local(10_000_000);
        let mut batches = 0;
        while !own.is_full() {
            add(&mut own, batches * batch..(batches + 1) * batch);
            batches += 1;
        }
        let bytes = own.generations.grown_blocks() * BLOCK_BYTES;
        assert!(batches > 2 && bytes < 5 << 20, "{bytes} after {batches} batches");
    }

    /// If few blocks change, an update is due while its cells and those of one more batch are within the free ones.
    #[test]
    fn an_update_is_due_before_its_cells_need_bytes() {
        let batch = u32::try_from(MAX_BATCH).unwrap();
        let mut own = local(1000);
        let mut reported = 0;
        while !own.is_full() {
            add(&mut own, reported..reported + batch);
            reported += batch;
        }
        assert!(reported as usize * CELLS_PER_ELEMENT <= FREE_CELLS, "{reported}");
        assert!(own.cut().is_some() && !own.is_full(), "it begins anew");
    }
}
