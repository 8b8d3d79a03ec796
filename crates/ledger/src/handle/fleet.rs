// SPDX-License-Identifier: GPL-3.0-or-later
//! What the members of a fleet ask of their ledger: a milter's, and an aggregator's, which is a holder's with a spool that nobody uses.

use super::{Ledger, name};
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
    /// What is appended.
    pub bytes: Vec<u8>,
}

impl Ledger {
    /// Where the fleet's chain stands on disk.
    #[must_use]
    pub fn fleet(&self) -> FleetMark {
        *self.shared.fleet.lock()
    }

    /// Applies the step with these bytes, which the log delivered from this place. Cells, marks, and what it settles of the own spool
    /// change together. If the marks say that this ledger is an old copy, its spool gets another number.
    ///
    /// [`Applied::Known`] are steps that are in already, and those that lost the race for their place in the chain.
    ///
    /// # Errors
    /// When it is not on disk; the inner one when it is not applied.
    pub async fn apply_step(
        &self,
        bytes: Arc<[u8]>,
        place: u64,
        now: u64,
    ) -> Result<Result<Applied, StepRefusal>, LedgerError> {
        // What was made here just now need not be read again.
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

    /// The step that would follow, of as many of these batches, from the first on, as it has room for; they are in the order of their
    /// places. None when there is nothing to tell. Nothing is changed: it counts when it comes back from the log.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn draft_step(
        &self,
        batches: Vec<LoggedBatch>,
        terms: Terms,
    ) -> Result<Option<Drafted>, LedgerError> {
        let (batches, terms, new) = (Arc::new(batches), Arc::new(terms), Origin(name()?));
        let mut most = usize::MAX;
        loop {
            let (of, with) = (Arc::clone(&batches), Arc::clone(&terms));
            let outline = self.look(move |state| draft(state.counts(), &of, &with, most, new)).await?;
            let outline = outline.map_err(|e| LedgerError::Unavailable(e.to_string()))?;
            let Some(outline) = outline else { return Ok(None) };
            let (step, drafted) = outline.finish();
            if drafted.bytes.len() <= terms.most_bytes || drafted.batches <= 1 {
                self.shared.drafted.store(Some(Arc::new((Chain::of(&drafted.bytes), step))));
                return Ok(Some(drafted));
            }
            // It was longer than it looked, as reports that somebody made up may be.
            most = drafted.batches / 2;
        }
    }

    /// The batches of this milter that are open and have a number above `after`, in their order, and then, with `begin`, new ones of
    /// what waits; `most` of them. They are on disk. Batches are open until a step is applied that has them.
    ///
    /// After each start, and each time that the log was away, nothing new is to be begun before a step is applied that covers the
    /// batches that the log had then: else it would not be noticed in time that this ledger is an old copy.
    ///
    /// They ask for bulk to be told apart from the count `bulk_from` on, if that is not 0.
    ///
    /// # Errors
    /// When it could not be written down.
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

    /// The kept steps behind this version, one after the other, about `limit` bytes of them; none when the first of them is not kept.
    /// A log that came back without its end gets them again.
    ///
    /// # Errors
    /// When the disk failed.
    pub fn steps_since(&self, version: u64, limit: usize) -> Result<Vec<OldStep>, LedgerError> {
        Ok(chain::steps_since(&*self.disk()?, version, limit)?)
    }

    /// The parts of a snapshot, each small enough for the log, made from what is on disk, beside the writer. It is of the last
    /// checkpoint, which [`checkpoint`](Self::checkpoint) makes; none when that was before the first step.
    ///
    /// # Errors
    /// When the disk failed.
    pub fn fleet_snapshot(&self) -> Result<Option<FleetSnapshot>, LedgerError> {
        let (key_id, window) = self.shared.parameters;
        Ok(FleetSnapshot::new(&*self.disk()?, key_id, window)?)
    }

    /// What comes of a snapshot for this ledger, which was opened with these settings.
    #[must_use]
    pub fn fleet_assembly(&self, settings: &Settings) -> FleetAssembly {
        let (key_id, window) = self.shared.parameters;
        FleetAssembly::new(settings).like(key_id, window)
    }

    /// Takes a snapshot as it is, if its chain is ahead of what is known here; or, with `forked`, also if it is of another history
    /// ([`StepRefusal::Fork`]), or of what both histories begin with: what the log has behind it is what counts. [`Applied::Known`]
    /// where it is of no use: what is missing is not in it, and what the log has is to be passed over. The steps behind it are to be read from the first one on that the log keeps: the place that the snapshot names
    /// may be of a log that was made anew since.
    ///
    /// # Errors
    /// When it is not on disk; the inner one when it cannot be used.
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

    /// Writes all cells down.
    ///
    /// # Errors
    /// When the disk failed.
    pub async fn checkpoint(&self) -> Result<(), LedgerError> {
        self.ask(|state| state.counts_mut().unwritten.asked = true).await
    }
}
