// SPDX-License-Identifier: GPL-3.0-or-later
//! What a server carries.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Streams of updates and snapshots.
#[derive(Debug, Default)]
pub struct Load {
    streams: AtomicUsize,
    stalled: AtomicU64,
}

impl Load {
    /// One more stream is open.
    pub fn stream_begins(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// One less is.
    pub fn stream_ends(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    /// One was given up, because its reader did not read.
    pub fn stream_stalled(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }

    /// Streams that are open.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Streams that were given up since the start, because their readers did not read.
    #[must_use]
    pub fn streams_stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }
}
