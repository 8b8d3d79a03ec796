// SPDX-License-Identifier: GPL-3.0-or-later
//! The queue of messages that a milter with a partial copy judged by a part of the counts, and checks again (`recheck`).

use bulkmark_policy::Range;
use bulkmark_signature::Signatures;
use bulkmark_types::Provenance;
use std::time::Instant;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most messages that wait, in about 8 MB; others are not checked again.
pub(super) const MAX_WAITING: usize = 4096;

/// A message that was judged by a part of the counts.
pub(super) struct PartlyJudged {
    pub(super) signatures: Signatures,
    pub(super) provenance: Provenance,
    pub(super) range: Range,
    /// The number of its reports.
    pub(super) times: u32,
    pub(super) at: Instant,
}

/// Messages that wait.
pub(super) struct RecheckQueue {
    sender: Sender<PartlyJudged>,
    pub(super) waiting: Mutex<Receiver<PartlyJudged>>,
}

impl Default for RecheckQueue {
    fn default() -> Self {
        let (sender, waiting) = channel(MAX_WAITING);
        Self { sender, waiting: Mutex::new(waiting) }
    }
}

impl RecheckQueue {
    /// Queues a message, if there is room.
    pub(super) fn put(&self, judged: PartlyJudged) {
        let _ = self.sender.try_send(judged);
    }
}

impl PartlyJudged {
    /// The count from which on networks matter.
    pub(super) fn quarter(&self) -> u32 {
        let lowest = &self.range.lowest;
        lowest.body.quarter().min(lowest.near.quarter())
    }
}
