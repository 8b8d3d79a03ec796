// SPDX-License-Identifier: GPL-3.0-or-later
//! The connections that a daemon accepted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters of open and of all connections.
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
    /// Counts one more connection.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns the number of all connections since the start.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that ended by an error in the protocol.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.broken.load(Ordering::Relaxed)
    }

    /// Returns the number of malformed packets that were understood anyway or ignored.
    #[must_use]
    pub fn mended(&self) -> u64 {
        self.mended.load(Ordering::Relaxed)
    }
}

impl Open {
    /// Counts that this connection ends by an error in the protocol.
    pub fn broke(&self) {
        self.0.broken.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a malformed packet that did not end the connection.
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
    fn a_closed_connection_is_not_open() {
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
