// SPDX-License-Identifier: GPL-3.0-or-later
//! A common bound on the memory that messages take while they come in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that all sessions together may hold: eight of the largest messages, or thousands of usual ones. Beyond that a
/// message is not judged, rather than the machine exhausted.
const TOTAL: usize = 256 << 20;

/// What is left of it.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<AtomicUsize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(TOTAL)))
    }
}

impl Budget {
    /// An account of one message, empty yet.
    pub(super) fn account(&self) -> Account {
        Account { left: self.clone(), taken: 0 }
    }
}

/// What one message took; given back when it is dropped.
#[derive(Debug)]
pub struct Account {
    left: Budget,
    taken: usize,
}

impl Account {
    /// Takes `bytes` more; false, and nothing is taken, when they are not there.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> bool {
        let taken = self
            .left
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes))
            .is_ok();
        self.taken += if taken { bytes } else { 0 };
        taken
    }

    /// Another of the same budget, empty yet.
    pub(super) fn of_same(&self) -> Self {
        self.left.account()
    }

    /// Gives everything back.
    pub(super) fn give_back(&mut self) {
        self.left.0.fetch_add(std::mem::take(&mut self.taken), Ordering::Relaxed);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let budget = Budget::default();
        let (mut a, mut b) = (budget.account(), budget.account());
        assert!(a.take(TOTAL) && !b.take(1));
        drop(a);
        assert!(b.take(TOTAL));
    }
}
