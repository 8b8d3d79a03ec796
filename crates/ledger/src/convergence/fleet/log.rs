// SPDX-License-Identifier: GPL-3.0-or-later
//! A log: batches and steps, each in one order, and a snapshot.

use std::sync::Arc;

/// A stored batch: its place, its client and its time.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) place: u64,
    pub(super) client: String,
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
}

#[derive(Clone)]
pub(super) struct Log {
    pub(super) made: u64,
    pub(super) batches: Vec<Stored>,
    pub(super) steps: Vec<(u64, Arc<[u8]>)>,
    pub(super) snapshot: Option<Vec<Vec<u8>>>,
    last_batch: u64,
    last_step: u64,
    forgotten: u64,
}

impl Log {
    pub(super) fn new(made: u64) -> Self {
        let (batches, steps) = (Vec::new(), Vec::new());
        Self { made, batches, steps, snapshot: None, last_batch: 0, last_step: 0, forgotten: 0 }
    }

    /// Returns the places of the last batch and of the last step.
    pub(super) const fn ends(&self) -> (u64, u64) {
        (self.last_batch, self.last_step)
    }

    pub(super) fn append(&mut self, client: &str, at: u64, bytes: Vec<u8>) -> u64 {
        // With gaps, as numbers of a sequence have.
        self.last_batch += 1 + self.last_batch % 2;
        let place = self.last_batch;
        self.batches.push(Stored { place, client: client.to_owned(), at, bytes });
        place
    }

    /// Appends a step; with `after`, only if no step follows that place.
    pub(super) fn append_step(&mut self, after: Option<u64>, bytes: Arc<[u8]>) -> bool {
        if after.is_some_and(|after| after != self.last_step) {
            return false;
        }
        self.last_step += 1 + self.last_step % 3;
        self.steps.push((self.last_step, bytes));
        true
    }

    pub(super) fn steps_after(&self, place: u64) -> Vec<(u64, Arc<[u8]>)> {
        self.steps.iter().filter(|(at, _)| *at > place).cloned().collect()
    }

    /// Returns the place up to which batches are no longer kept.
    pub(super) fn gone(&self) -> u64 {
        self.batches.first().map_or(self.last_batch, |batch| batch.place - 1)
    }

    /// Returns the place up to which steps are no longer kept.
    pub(super) const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Deletes steps and batches up to these places.
    pub(super) fn forget(&mut self, step: u64, batch: u64) {
        self.forgotten = self.forgotten.max(step);
        self.steps.retain(|&(place, _)| place > step);
        self.batches.retain(|batched| batched.place > batch);
    }
}
