// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages of a milter with a partial copy that were judged by a part of the counts, and that are looked at again (`look_back`).

use bulkmark_policy::Range;
use bulkmark_signature::Signatures;
use bulkmark_types::Provenance;
use std::time::Instant;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Messages that wait at most, in about 8 MB; of more nothing follows.
pub(super) const MOST: usize = 4096;

/// A message that was judged by a part of the counts.
pub(super) struct Judged {
    pub(super) signatures: Signatures,
    pub(super) provenance: Provenance,
    pub(super) range: Range,
    /// How often it was reported.
    pub(super) times: u32,
    pub(super) at: Instant,
}

/// Messages that wait.
pub(super) struct Later {
    sender: Sender<Judged>,
    pub(super) waiting: Mutex<Receiver<Judged>>,
}

impl Default for Later {
    fn default() -> Self {
        let (sender, waiting) = channel(MOST);
        Self { sender, waiting: Mutex::new(waiting) }
    }
}

impl Later {
    /// Has a message looked at, if there is room.
    pub(super) fn put(&self, judged: Judged) {
        let _ = self.sender.try_send(judged);
    }
}

impl Judged {
    /// The count from which on networks matter.
    pub(super) fn quarter(&self) -> u32 {
        let lowest = &self.range.lowest;
        lowest.body.quarter().min(lowest.near.quarter())
    }
}
