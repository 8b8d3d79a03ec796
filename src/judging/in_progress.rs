// SPDX-License-Identifier: GPL-3.0-or-later
//! The reports that are being counted now, so that the same report, sent twice at once, counts once.

use bulkmark_types::Signature;
use parking_lot::Mutex;
use std::collections::HashSet;

/// The signatures that are being counted.
#[derive(Default)]
pub(super) struct InProgress(Mutex<HashSet<Signature>>);

/// One of them, until dropped.
pub(super) struct Counting<'a>(&'a InProgress, Signature);

impl InProgress {
    /// Begins to count this signature. `None` while it is being counted.
    pub(super) fn begin(&self, signature: Signature) -> Option<Counting<'_>> {
        let is_first = self.0.lock().insert(signature);
        // Created only for the first: dropping a second one would end the first.
        is_first.then(|| Counting(self, signature))
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let (in_progress, signature) = (InProgress::default(), Signature::from_bytes([1; 16]));
        let counting = in_progress.begin(signature);
        assert!(counting.is_some() && in_progress.begin(signature).is_none());
        drop(counting);
        assert!(in_progress.begin(signature).is_some());
    }
}
