// SPDX-License-Identifier: GPL-3.0-or-later
//! A common bound on the memory of incoming messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most bytes of all sessions together: eight of the largest messages, or thousands of usual ones. Beyond that, a message is not judged,
/// so that the machine does not run out of memory.
const TOTAL: usize = 256 << 20;

/// Of these, the bytes that only beginnings of messages take: nearly all mail fits into one, so large messages, however many come at once,
/// do not keep others from being judged.
const FOR_BEGINNINGS: usize = 64 << 20;

/// The longest beginning.
const BEGINNING: usize = 256 << 10;

/// The rest of that memory.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<AtomicUsize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(TOTAL)))
    }
}

impl Budget {
    /// An empty reservation for one message.
    pub(super) fn reservation(&self) -> Reservation {
        Reservation { left: self.clone(), taken: 0 }
    }
}

/// The memory that one message took; released on drop. The default one has a separate budget.
#[derive(Debug, Default)]
pub struct Reservation {
    left: Budget,
    taken: usize,
}

impl Reservation {
    /// Takes `bytes` more; returns false, and takes nothing, if there is not enough.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> bool {
        let is_beginning = self.taken.saturating_add(bytes) <= BEGINNING;
        let keep = if is_beginning { 0 } else { FOR_BEGINNINGS };
        let rest = |left: usize| left.checked_sub(bytes).filter(|&rest| rest >= keep);
        let taken = self.left.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok();
        self.taken += if taken { bytes } else { 0 };
        taken
    }

    /// Another empty reservation of the same budget.
    pub(super) fn new_empty(&self) -> Self {
        self.left.reservation()
    }

    /// Releases everything.
    pub fn release(&mut self) {
        self.left.0.fetch_add(std::mem::take(&mut self.taken), Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_reservations_are_released() {
        let budget = Budget::default();
        let (mut a, mut b) = (budget.reservation(), budget.reservation());
        let all = TOTAL - FOR_BEGINNINGS;
        assert!(a.take(all) && !b.take(BEGINNING + 1));
        drop(a);
        assert!(b.take(all));
    }

    /// When large messages have filled their share, other messages still have room.
    #[test]
    fn large_messages_leave_room_for_small_ones() {
        let budget = Budget::default();
        let mut large: Vec<_> = (0..30).map(|_| budget.reservation()).collect();
        let taken = large.iter_mut().map(|one| one.take(BEGINNING) && one.take(10 << 20));
        let taken = taken.filter(|&taken| taken).count();
        assert!((15..20).contains(&taken), "{taken}");
        let mut small: Vec<_> = (0..100).map(|_| budget.reservation()).collect();
        assert!(small.iter_mut().all(|one| one.take(100_000) && one.take(BEGINNING - 100_000)));
        assert!(!small[0].take(1), "its beginning ends here");
    }
}
