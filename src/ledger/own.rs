// SPDX-License-Identifier: GPL-3.0-or-later
//! A server's own community: what its clients reported, and the history of updates that tells the others.

use super::generations::Generations;
use super::update::{Part, Update};
use super::vector::{Mark, Origin};
use super::window::Window;
use crate::signature::Signature;
use bulkmark_filter::ParameterError;

/// Changed blocks after which an update is cut before its time. A batch of reports changes at most 16,384 more; so no
/// update exceeds its bound of cells, of which a block has 128.
const CUT_AT: usize = super::update::MAX_CELLS / 128 - 2 * super::MAX_BATCH;

/// The filters that this server alone writes, and where its history stands.
pub(super) struct Own {
    pub(super) generations: Generations,
    origin: Origin,
    mark: Mark,
}

impl Own {
    /// Of a site that makes no updates.
    pub(super) const fn new(generations: Generations, origin: Origin, mark: Mark) -> Self {
        Self { generations, origin, mark }
    }

    /// `generations` as they were at the last update; what is added from here on makes the next.
    pub(super) const fn recording(mut generations: Generations, origin: Origin, mark: Mark) -> Self {
        generations.record();
        Self { generations, origin, mark }
    }

    pub(super) const fn origin(&self) -> Origin {
        self.origin
    }

    pub(super) const fn mark(&self) -> Mark {
        self.mark
    }

    /// Adds reports to a window; `id` grows with each.
    pub(super) fn add(
        &mut self,
        window: Window,
        id: u64,
        signature: Signature,
        times: u32,
    ) -> Result<(), ParameterError> {
        self.generations.add(window, id, signature, times)
    }

    /// The version from which on what is added now is in the updates.
    pub(super) const fn next_version(&self) -> u64 {
        self.mark.version + 1
    }

    /// Whether anything was added since the last update.
    pub(super) fn has_grown(&self) -> bool {
        self.generations.grown_blocks() > 0
    }

    /// Whether so much was added that an update should be cut at once.
    pub(super) fn is_full(&self) -> bool {
        self.generations.grown_blocks() >= CUT_AT
    }

    /// What was added since the last update, as the next one with its bytes; none when nothing was.
    pub(super) fn cut(&mut self) -> Option<(Update, Vec<u8>)> {
        let parts = self.generations.take_growth();
        self.publish(parts)
    }

    /// Begins anew as another origin, with empty filters, whose first update are these parts; it is returned with its bytes.
    /// What was counted before is for the caller to keep.
    pub(super) fn renew(
        &mut self,
        mut generations: Generations,
        origin: Origin,
        parts: Vec<Part>,
    ) -> Option<(Update, Vec<u8>)> {
        generations.record();
        *self = Self { generations, origin, mark: Mark::default() };
        self.publish(parts)
    }

    fn publish(&mut self, parts: Vec<Part>) -> Option<(Update, Vec<u8>)> {
        if parts.is_empty() {
            return None;
        }
        let update =
            Update { origin: self.origin, version: self.next_version(), before: self.mark.chain, parts };
        let bytes = update.encode();
        self.mark = update.mark(&bytes);
        Some((update, bytes))
    }
}
