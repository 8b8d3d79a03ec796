// SPDX-License-Identifier: GPL-3.0-or-later
//! Appends this machine's reports to the log.

use super::cursor::own;
use super::outbox::{Id, Outbox};
use super::state::{Count, Fleet, Stopped};
use crate::log::{BatchId, Ends, Log, LogError, Place};
use crate::state::Flow;
use bulkmark_counts::FleetMark;
use bulkmark_ledger::{FleetBatch, Ledger};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Maximum of batches that no step covers yet.
const OUTSTANDING: usize = 64;

/// A batch that was appended, and the result.
type Appended = (BatchId, Result<Place, LogError>);

/// Appends own reports to the log in batches, every `interval`, until steps cover them, as long as the ledger is open.
///
/// New batches are begun only once all batches are covered that were in the log when it was reached: a ledger that is an old copy learns of
/// the batches that it forgot, and begins another spool, before it reuses their numbers.
pub async fn push<L: Log>(ledger: Ledger, interval: Duration, log: Arc<L>, fleet: Arc<Fleet>) {
    let mut pusher = Pusher {
        outbox: Outbox::default(),
        fence: Fence::default(),
        appends: JoinSet::new(),
        ledger,
        log,
        fleet,
    };
    let mut tick = tokio::time::interval(interval);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => match pusher.round().await {
                Ok(()) => (),
                Err(Stopped::Ledger(bulkmark_ledger::LedgerError::Closed)) => return,
                Err(e) => pusher.fleet.set_failing(Flow::Reports, &e),
            },
            Some(appended) = pusher.appends.join_next() => {
                // A panic does not show which one it was; the task starts over.
                let Ok(appended) = appended else { return };
                pusher.appended(appended);
            }
        }
    }
}

struct Pusher<L> {
    ledger: Ledger,
    log: Arc<L>,
    fleet: Arc<Fleet>,
    outbox: Outbox,
    fence: Fence,
    appends: JoinSet<Appended>,
}

impl<L: Log> Pusher<L> {
    async fn round(&mut self) -> Result<(), Stopped> {
        let begin = self.fence.is_passed(&self.ledger, &*self.log, &self.fleet).await?;
        // Read the mark first: with a later one, batches that were counted since would look uncounted.
        let (mark, now) = (self.ledger.fleet(), Instant::now());
        let bulk_from = self.fleet.lacks_bulk(self.ledger.bulk().bound);
        let batches = self.ledger.outgoing(0, OUTSTANDING, begin, bulk_from).await?;
        let open: Vec<Id> = batches.iter().map(|batch| (batch.spool, batch.number)).collect();
        let again = self.outbox.open(&open, mark, now);
        self.fleet.count(Count::Again, again);
        self.fleet.set_passed_over(self.outbox.passed_over());
        if self.outbox.is_late(now) {
            let ends = self.log.ends().await?;
            self.fleet.set_ends(ends, mark);
            let lost = self.outbox.compare(ends, mark, now);
            if lost > 0 {
                log::warn!("the log lost {lost} batches that it had taken; they are appended again");
                self.fleet.count(Count::Again, lost);
            }
        }
        for id in self.outbox.due(mark, now) {
            let is_it = |batch: &&FleetBatch| (batch.spool, batch.number) == (id.spool, id.number);
            let Some(batch) = batches.iter().find(is_it) else { continue };
            let (log, bytes) = (Arc::clone(&self.log), batch.bytes.clone());
            self.appends.spawn(async move { (id, log.append(id, bytes).await) });
        }
        Ok(())
    }

    fn appended(&mut self, (id, result): Appended) {
        let now = Instant::now();
        match result {
            Ok(place) => {
                self.fleet.set_working(Flow::Reports);
                self.outbox.stored(id, place, now);
            }
            Err(e) => {
                self.outbox.failed(id, &e, now);
                self.fleet.set_failing(Flow::Reports, &Stopped::from(e));
            }
        }
    }
}

/// Holds new batches back until the earlier ones are accounted for.
#[derive(Default)]
struct Fence {
    /// The session of reading that it belongs to.
    session: u64,
    /// The ends of the log then.
    ends: Option<Ends>,
    passed: bool,
}

impl Fence {
    /// Whether new batches may be begun.
    async fn is_passed<L: Log>(&mut self, ledger: &Ledger, log: &L, fleet: &Fleet) -> Result<bool, Stopped> {
        if self.session != fleet.session() {
            *self = Self { session: fleet.session(), ..Self::default() };
        }
        let Some(cursor) = *fleet.reached().borrow() else { return Ok(false) };
        if self.passed {
            return Ok(true);
        }
        let ends = match self.ends {
            Some(ends) => ends,
            None => {
                // Read the mark first: compared with a later one, the log would seem to have lost its newest batches.
                let (mark, ends) = (ledger.fleet(), log.ends().await?);
                if cursor.place < ends.steps || has_lost(mark, ends) {
                    return Ok(false);
                }
                *self.ends.insert(ends)
            }
        };
        let mark = ledger.fleet();
        self.passed = cursor.place >= ends.steps && cursor.is_at(own(mark)) && covers(mark, ends);
        Ok(self.passed)
    }
}

/// Whether the log lost its end: the steps up to `mark`, all of which it has, cover more batches than it has. New batches then get places
/// that seem covered and are not, until an aggregator begins a new epoch.
fn has_lost(mark: FleetMark, ends: Ends) -> bool {
    mark.version > 0 && mark.made == ends.made && mark.covers > ends.batches.0
}

/// Whether all batches of these ends are in the steps up to `mark`, or skipped.
fn covers(mark: FleetMark, ends: Ends) -> bool {
    ends.batches == Place(0) || mark.made == ends.made && mark.covers >= ends.batches.0
}
