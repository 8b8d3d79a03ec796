// SPDX-License-Identifier: GPL-3.0-or-later
//! A bound for the work of reading style sheets, over all pages of a message: many small pages cost no more than a large one.

use std::cell::Cell;

/// Comparisons with elements, and additions of declarations: a base, more for each byte of pages, and a bound.
const BASE_COMPARISONS: u32 = 1 << 16;
const COMPARISONS_PER_BYTE: usize = 8;
const MAX_COMPARISONS: u32 = 1 << 21;

/// The [weight](super::compound::Selector::weight) of all copies of selectors: a base, and the bytes of pages for one more.
const BASE_WEIGHT: usize = 1 << 16;
const BYTES_PER_WEIGHT: usize = 8;

/// Bytes of text that style sheets insert.
const MAX_INSERTED: usize = 1 << 18;

/// The work that is left for the pages of one message.
#[derive(Debug, Clone)]
pub struct Work {
    left: Cell<Left>,
    /// Comparisons that were granted so far.
    granted: Cell<u32>,
}

/// Work that is left, or that a page may do.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) comparisons: u32,
    pub(crate) weight: usize,
    pub(crate) inserted: usize,
}

impl Default for Work {
    fn default() -> Self {
        let left = Left { comparisons: BASE_COMPARISONS, weight: BASE_WEIGHT, inserted: MAX_INSERTED };
        Self { left: Cell::new(left), granted: Cell::new(BASE_COMPARISONS) }
    }
}

impl Work {
    /// The work for a page of so many bytes, which adds to it; [`put_back`](Self::put_back) returns the rest.
    pub(crate) fn take(&self, bytes: usize) -> Left {
        let Left { comparisons, weight, inserted } = self.left.take();
        let granted = self.granted.get();
        let more = u32::try_from(bytes.saturating_mul(COMPARISONS_PER_BYTE)).unwrap_or(u32::MAX);
        let more = more.min(MAX_COMPARISONS - granted);
        self.granted.set(granted + more);
        Left { comparisons: comparisons + more, weight: weight + bytes / BYTES_PER_WEIGHT, inserted }
    }

    /// Returns the work that a page left over.
    pub(crate) fn put_back(&self, left: Left) {
        self.left.set(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many pages there are, the work for all of them has a bound, and is in proportion to their bytes below it.
    #[test]
    fn pages_share_their_work() {
        let (work, spent) = (Work::default(), Left::default());
        let all = |pages: u32, bytes: usize| {
            (0..pages).fold(spent, |sum, _| {
                let page = work.take(bytes);
                work.put_back(spent);
                Left {
                    comparisons: sum.comparisons + page.comparisons,
                    weight: sum.weight + page.weight,
                    inserted: sum.inserted + page.inserted,
                }
            })
        };
        assert_eq!(
            all(1, 80),
            Left { comparisons: (1 << 16) + 640, weight: (1 << 16) + 10, inserted: 1 << 18 }
        );
        assert_eq!(all(99, 80), Left { comparisons: 99 * 640, weight: 990, inserted: 0 });
        assert_eq!(all(1000, 80_000).comparisons, (1 << 21) - (1 << 16) - 100 * 640);
    }
}
