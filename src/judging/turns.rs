// SPDX-License-Identifier: GPL-3.0-or-later
//! What is being counted at this moment: so that the same, said twice at once, is counted once.

use bulkmark_types::Signature;
use parking_lot::Mutex;
use std::collections::HashSet;

/// What is being counted.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashSet<Signature>>);

/// One of them, until dropped.
pub(super) struct Turn<'a>(&'a Turns, Signature);

impl Turns {
    /// Begins with this one. None while it is being counted.
    pub(super) fn begin(&self, signature: Signature) -> Option<Turn<'_>> {
        let is_first = self.0.lock().insert(signature);
        // Made only where it is one: a turn that is dropped ends that of another.
        is_first.then(|| Turn(self, signature))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let (turns, signature) = (Turns::default(), Signature::from_bytes([1; 16]));
        let turn = turns.begin(signature);
        assert!(turn.is_some() && turns.begin(signature).is_none());
        drop(turn);
        assert!(turns.begin(signature).is_some());
    }
}
