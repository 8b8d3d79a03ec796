// SPDX-License-Identifier: GPL-3.0-or-later
//! The load of a server.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Streams of updates and snapshots.
#[derive(Debug, Default)]
pub struct Load {
    streams: AtomicUsize,
    stalled: AtomicU64,
}

impl Load {
    /// Counts that a stream opened.
    pub fn stream_begins(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that a stream closed.
    pub fn stream_ends(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a stream that was closed because its reader did not read.
    pub fn stream_stalled(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of open streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Returns the number of streams closed since the start because their readers did not read.
    #[must_use]
    pub fn streams_stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }
}
