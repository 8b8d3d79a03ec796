// SPDX-License-Identifier: GPL-3.0-or-later
//! A signature server: what its clients report, and the history that it makes of it.

use crate::ledger::history::refusal::Refusal;
use crate::ledger::history::update::Update;
use crate::ledger::history::vector::Origin;
use crate::ledger::state::counts::Counts;
use crate::ledger::state::generations::Generations;
use crate::ledger::state::influence::Influence;
use crate::ledger::state::merged::{Applied, MergedCounts};
use crate::ledger::state::receipts::{Backwards, Receipt, Receipts, Reporter};
use crate::signature::Signature;
use bulkmark_filter::ParameterError;
use std::sync::Arc;

/// How many reports of a batch before its turn the cells of a signature are fetched from memory.
const AHEAD: usize = 8;

/// The state of a signature server.
pub(crate) struct Server {
    pub(crate) counts: Counts,
    /// The number of the first local report that is in no update.
    pub(crate) cut_at: u64,
    pub(crate) receipts: Receipts,
    pub(crate) influence: Influence,
    /// Whether the local counts begin anew under another origin, and the file still has the old ones.
    pub(crate) renewed: bool,
}

impl Server {
    /// Counts a client's batch, once.
    ///
    /// # Errors
    /// When its number is below that of one that was counted; nothing is counted then.
    pub(crate) fn take_batch(
        &mut self,
        reporter: Reporter,
        number: u64,
        reports: &[(Signature, u32)],
        most: Option<u32>,
        now: u64,
    ) -> Result<Receipt, Backwards> {
        self.counts.clock = now;
        if let Some(receipt) = self.receipts.find(&reporter, number)? {
            return Ok(receipt);
        }
        let local = &self.counts.local;
        let receipt = Receipt { origin: local.origin(), version: local.next_version() };
        let window = local.generations.window_at(now);
        for (i, &(signature, times)) in reports.iter().enumerate() {
            let generations = &self.counts.local.generations;
            if let Some(&(soon, _)) = reports.get(i + AHEAD) {
                generations.prefetch(window, soon);
            }
            let times = match most {
                None => times,
                Some(most) => {
                    let all = || generations.count_in(window, signature);
                    self.influence.allow(&reporter.client, window, signature, times, most, all)
                }
            };
            if times > 0 {
                self.counts.add(signature, times, now);
            }
        }
        if let Some(forgotten) = self.receipts.set(reporter.clone(), number, receipt) {
            self.counts.changes.receipts.insert(forgotten, None);
        }
        self.counts.changes.receipts.insert(reporter, Some((number, receipt)));
        if self.counts.local.is_full() {
            self.cut(now);
        }
        Ok(receipt)
    }

    /// Makes an update of what was added since the last one.
    pub(crate) fn cut(&mut self, now: u64) {
        if let Some((update, bytes)) = self.counts.local.cut() {
            self.cut_at = self.counts.next;
            self.counts.keep(&update, bytes.into(), now);
        }
    }

    /// Applies an update of another origin. `new` is a random name for what needs one.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) fn apply(
        &mut self,
        update: &Update,
        bytes: Arc<[u8]>,
        now: u64,
        new: Origin,
    ) -> Result<Applied, Refusal> {
        self.counts.clock = now;
        let (origin, version) = (update.origin(), update.version());
        if origin == self.counts.local.origin() {
            let ours = self.counts.local.mark();
            if version <= ours.version {
                return Ok(Applied::Known);
            }
            if version != ours.version + 1 || update.before() != ours.chain {
                return Err(Refusal::Fork { origin, version });
            }
            // Others know what we do not know of ourselves: this ledger was restored from an old copy. Under the old name
            // we would tell another story than the one that they heard.
            if let Err(error) = self.renew(now, new) {
                self.counts.broken = Some(format!("a new origin could not begin: {error}"));
                return Err(Refusal::Parameter { origin, error });
            }
        }
        self.counts.apply(update, bytes, now)
    }

    /// Goes on under another origin. What was counted so far becomes others' counts, but for what is in no update yet, which
    /// is the first update of the new origin.
    fn renew(&mut self, now: u64, new: Origin) -> Result<(), ParameterError> {
        let Counts { local, merged, settings, .. } = &mut self.counts;
        let (old, mark) = (local.origin(), local.mark());
        log::error!(
            "this ledger was restored from an old copy: others know more than {} updates of its origin {old}. It goes on as \
             origin {new} and takes over what they know",
            mark.version
        );
        let parts = local.generations.take_growth();
        for generation in local.generations.iter() {
            merged.merge_generation(generation)?;
        }
        merged.vector_mut().set(old, mark);
        let first = local.renew(Generations::new(settings), new, parts);
        self.cut_at = self.counts.next;
        if let Some((update, bytes)) = first {
            self.counts.keep(&update, bytes.into(), now);
        }
        self.renewed = true;
        Ok(())
    }

    /// Takes a snapshot of what others counted.
    ///
    /// # Errors
    /// When what this server counted itself is in it, which would count twice; else see [`Counts::adopt`].
    pub(crate) fn adopt(&mut self, snapshot: MergedCounts) -> Result<(), Refusal> {
        let origin = self.counts.local.origin();
        if snapshot.vector().get(origin).version > 0 {
            return Err(Refusal::Own { origin });
        }
        self.counts.adopt(snapshot)
    }
}
