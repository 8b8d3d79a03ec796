// SPDX-License-Identifier: GPL-3.0-or-later
//! Operations for the members of a fleet: milters, and aggregators, whose ledgers have a spool that is never used.

use super::{Ledger, name};
use crate::clock::now;
use crate::disk::chain::{self, OldStep};
use crate::disk::fleet_snapshot::FleetSnapshot;
use crate::errors::LedgerError;
use bulkmark_counts::history::fleet_mark::FleetMark;
use bulkmark_counts::history::refusal::StepRefusal;
use bulkmark_counts::history::step::Step;
use bulkmark_counts::history::vector::{Chain, Origin};
use bulkmark_counts::settings::Settings;
use bulkmark_counts::state::fleet::assembly::FleetAssembly;
use bulkmark_counts::state::fleet::draft::{Drafted, LoggedBatch, Terms, draft};
use bulkmark_counts::state::merged::Applied;
use std::sync::Arc;

/// A batch to append to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetBatch {
    /// The random number of its spool.
    pub spool: u64,
    /// Its number there.
    pub number: u64,
    /// Its encoded form.
    pub bytes: Vec<u8>,
}

impl Ledger {
    /// Returns the position of the fleet's chain on disk.
    #[must_use]
    pub fn fleet(&self) -> FleetMark {
        *self.shared.fleet.lock()
    }

    /// Applies the step with these bytes, which the log delivered from this place. Cells, marks, and the batches of the own spool that
    /// the step covers change together. If the marks show that this ledger is an old copy, its spool gets another number.
    ///
    /// Returns [`Applied::Known`] for steps that are applied already, and for those that lost the race for their place in the chain.
    ///
    /// # Errors
    /// If it is not on disk; the inner error if it is not applied.
    pub async fn apply_step(
        &self,
        bytes: Arc<[u8]>,
        place: u64,
        now: u64,
    ) -> Result<Result<Applied, StepRefusal>, LedgerError> {
        // A step that was just drafted here need not be decoded.
        let drafted = self.shared.drafted.swap(None);
        let step = match drafted.filter(|drafted| drafted.0 == Chain::of(&bytes)) {
            Some(drafted) => Ok(drafted),
            None => Step::decode(&bytes).map(|step| Arc::new((Chain::default(), step))),
        };
        let step = match step {
            Ok(step) => step,
            Err(e) => return Ok(Err(StepRefusal::Junk(e.to_string()))),
        };
        let new = name()?;
        self.ask_cache(move |cache| cache.apply_step(&step.1, bytes, place, now, new)).await
    }

    /// Drafts the next step from the first of these batches, as many as fit; they are in the order of their places. Returns `None` if
    /// there is nothing to publish. The state does not change: the step counts when the log delivers it.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn draft_step(
        &self,
        batches: Vec<LoggedBatch>,
        terms: Terms,
    ) -> Result<Option<Drafted>, LedgerError> {
        let (batches, terms, new) = (Arc::new(batches), Arc::new(terms), Origin(name()?));
        let mut most = usize::MAX;
        loop {
            let (of, with) = (Arc::clone(&batches), Arc::clone(&terms));
            let outline = self.query(move |state| draft(state.counts(), &of, &with, most, new)).await?;
            let outline = outline.map_err(|e| LedgerError::Unavailable(e.to_string()))?;
            let Some(outline) = outline else { return Ok(None) };
            let (step, drafted) = outline.finish();
            if drafted.bytes.len() <= terms.most_bytes || drafted.batches <= 1 {
                self.shared.drafted.store(Some(Arc::new((Chain::of(&drafted.bytes), step))));
                return Ok(Some(drafted));
            }
            // The step is longer than estimated, as made-up reports can cause.
            most = drafted.batches / 2;
        }
    }

    /// Returns this milter's open batches with numbers above `after`, in order, and then, with `begin`, new ones made from waiting
    /// reports; at most `most` of them. They are on disk. A batch is open until a step that covers it is applied.
    ///
    /// After each start, and each time that the log was away, the caller must begin no new batch before it has applied a step that covers
    /// the batches that the log had then: otherwise it would notice too late that this ledger is an old copy.
    ///
    /// The batches request a list of bulk from the count `bulk_from` on, if that is not 0.
    ///
    /// # Errors
    /// If they could not be written.
    pub async fn outgoing(
        &self,
        after: u64,
        most: usize,
        begin: bool,
        bulk_from: u32,
    ) -> Result<Vec<FleetBatch>, LedgerError> {
        let carried = self.ask_cache(move |cache| cache.for_fleet(after, most, begin, bulk_from)).await?;
        let batch = carried.into_iter().map(|carried| FleetBatch {
            spool: carried.spool,
            number: carried.number,
            bytes: carried.encode(),
        });
        Ok(batch.collect())
    }

    /// Returns the kept steps after this version, in order, about `limit` bytes of them; none if the first of them is not kept. They are
    /// appended again to a log that was restored without its end.
    ///
    /// # Errors
    /// If the disk failed.
    pub fn steps_since(&self, version: u64, limit: usize) -> Result<Vec<OldStep>, LedgerError> {
        Ok(chain::steps_since(&*self.disk()?, version, limit)?)
    }

    /// Returns the parts of a snapshot, each small enough for the log, read from disk beside the writer. It shows the last checkpoint,
    /// which [`checkpoint`](Self::checkpoint) makes; `None` if that was before the first step.
    ///
    /// # Errors
    /// If the disk failed.
    pub fn fleet_snapshot(&self) -> Result<Option<FleetSnapshot>, LedgerError> {
        let (key_id, window) = self.shared.parameters;
        Ok(FleetSnapshot::new(&*self.disk()?, key_id, window)?)
    }

    /// Returns an assembly for a received snapshot; `settings` are those that this ledger was opened with.
    #[must_use]
    pub fn fleet_assembly(&self, settings: &Settings) -> FleetAssembly {
        let (key_id, window) = self.shared.parameters;
        FleetAssembly::new(settings).like(key_id, window, now())
    }

    /// Adopts a snapshot unchanged if its chain is ahead of the one known here. With `forked`, adopts it also if it belongs to another
    /// history ([`StepRefusal::Fork`]), or to the common beginning of both: then the log's steps after it decide. Returns
    /// [`Applied::Known`] if the snapshot does not help: it lacks the missing steps, and the log's steps are to be skipped. The caller must
    /// read the steps after it from the first one that the log keeps: the place in the snapshot may belong to a log that was created
    /// again since.
    ///
    /// # Errors
    /// If it is not on disk; the inner error if it cannot be used.
    pub async fn adopt_fleet(
        &self,
        assembly: FleetAssembly,
        forked: bool,
    ) -> Result<Result<Applied, StepRefusal>, LedgerError> {
        let snapshot = match assembly.finish() {
            Ok(snapshot) => snapshot,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mark = snapshot.head.mark;
        if !forked
            && mark.version <= self.fleet().version
            && chain::knows_step(&*self.disk()?, mark.version, mark.chain)?
        {
            return Ok(Ok(Applied::Known));
        }
        let new = name()?;
        self.ask_cache(move |cache| cache.adopt_fleet(snapshot, forked, new)).await
    }

    /// Writes all cells to disk.
    ///
    /// # Errors
    /// If the disk failed.
    pub async fn checkpoint(&self) -> Result<(), LedgerError> {
        self.ask(|state| state.counts_mut().unwritten.asked = true).await
    }
}
