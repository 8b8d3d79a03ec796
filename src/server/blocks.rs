// SPDX-License-Identifier: GPL-3.0-or-later
//! A cache of blocks that several streams send: one copy for all, within a few megabytes.

use super::readers::{Gaps, Position};
use bulkmark_counts::BulkMark;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum of bytes and blocks in the cache. A larger block is kept alone.
const MAX_BYTES: usize = 16 << 20;
const MAX_BLOCKS: usize = 512;

/// The key of a block.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// The updates that follow the vector with this hash, for readers with this handling of gaps.
    Updates(Gaps, [u8; 32]),
    /// The notes that follow this list, number and hash.
    Notes(u64, u64, u64),
    /// Rows of the snapshot with this id, and the number of blocks before them.
    Rows(u64, u64),
}

/// Frames that are read from disk together.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    /// Where each frame begins.
    pub(super) begins: Vec<usize>,
    /// Of updates: the position of a reader that applied them.
    pub(super) after: Arc<Position>,
    /// Of notes: the mark of a reader that applied them.
    pub(super) mark: BulkMark,
}

#[derive(Default)]
struct Kept {
    blocks: HashMap<Key, (Arc<Block>, u64)>,
    bytes: usize,
    /// Incremented by each use.
    clock: u64,
}

/// The cache of blocks, which drops the least recently used ones first.
#[derive(Default)]
pub(super) struct Blocks(Mutex<Kept>);

impl Kept {
    fn remove(&mut self, key: &Key) {
        if let Some((block, _)) = self.blocks.remove(key) {
            self.bytes -= block.bytes.len();
        }
    }
}

impl Blocks {
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Block>> {
        let mut kept = self.0.lock();
        kept.clock += 1;
        let now = kept.clock;
        let (block, used) = kept.blocks.get_mut(key)?;
        *used = now;
        Some(Arc::clone(block))
    }

    pub(super) fn put(&self, key: &Key, block: Arc<Block>) {
        let mut kept = self.0.lock();
        kept.clock += 1;
        let now = kept.clock;
        kept.remove(key);
        kept.bytes += block.bytes.len();
        kept.blocks.insert(key.clone(), (block, now));
        while kept.bytes > MAX_BYTES || kept.blocks.len() > MAX_BLOCKS {
            let oldest =
                kept.blocks.iter().filter(|(other, _)| *other != key).min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            kept.remove(&oldest);
        }
    }

    /// Drops all blocks.
    pub(super) fn clear(&self) {
        *self.0.lock() = Kept::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_used_blocks_are_kept_as_far_as_they_fit() {
        let (blocks, third) = (Blocks::default(), MAX_BYTES / 3);
        let put = |n, bytes| {
            blocks.put(&Key::Rows(1, n), Arc::new(Block { bytes: vec![0; bytes], ..Block::default() }))
        };
        let has = |n| blocks.get(&Key::Rows(1, n)).is_some();
        (0..3).for_each(|n| put(n, third));
        assert!(has(0));
        put(3, third);
        assert_eq!([0, 1, 2, 3].map(has), [true, false, true, true]);
        put(3, third / 2);
        assert_eq!(blocks.0.lock().bytes, 2 * third + third / 2, "the same again takes the other's place");
        put(4, 2 * MAX_BYTES);
        assert_eq!([0, 2, 3, 4].map(has), [false, false, false, true], "one that is larger is alone");
        (5..5 + MAX_BLOCKS as u64).for_each(|n| put(n, 0));
        assert!(!has(4) && blocks.0.lock().blocks.len() == MAX_BLOCKS);
        blocks.clear();
        assert!(!has(5) && blocks.0.lock().bytes == 0);
    }
}
