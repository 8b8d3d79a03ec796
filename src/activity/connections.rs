// SPDX-License-Identifier: GPL-3.0-or-later
//! Connections that a daemon took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How many are open, and how many there were.
#[derive(Debug, Default)]
pub struct Connections {
    open: AtomicUsize,
    total: AtomicU64,
    broken: AtomicU64,
    mended: AtomicU64,
}

/// An open connection, until dropped.
#[derive(Debug)]
pub struct Open(Arc<Connections>);

impl Connections {
    /// One more.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// Those that are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// All that there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Connections that ended by an error in the protocol.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.broken.load(Ordering::Relaxed)
    }

    /// Packets that were no proper ones, and were understood all the same or left out.
    #[must_use]
    pub fn mended(&self) -> u64 {
        self.mended.load(Ordering::Relaxed)
    }
}

impl Open {
    /// Notes that it ends by an error in the protocol.
    pub fn broke(&self) {
        self.0.broken.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a packet that was no proper one, and did not end it.
    pub fn mended(&self) {
        self.0.mended.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_is_not_open() {
        let connections = Arc::new(Connections::default());
        let (one, two) = (connections.begin(), connections.begin());
        drop(one);
        two.mended();
        two.broke();
        assert_eq!((connections.open(), connections.total()), (1, 2));
        drop(two);
        assert_eq!((connections.open(), connections.total()), (0, 2));
        assert_eq!((connections.broken(), connections.mended()), (1, 1));
    }
}
