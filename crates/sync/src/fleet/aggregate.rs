// SPDX-License-Identifier: GPL-3.0-or-later
//! Makes steps of the milters' reports. Any number of aggregators do so side by side, without knowing of one another: the log takes the
//! first step that follows the last one, and all continue from the step that it delivers.

use super::anomalies::no_more_epochs;
use super::basis::Basis;
use super::cursor::{Cursor, own};
use super::guard::guard;
use super::lost::Lost;
use super::queue::{Clients, Queue};
use super::snapshots::Snapshots;
use super::state::{Count, Fleet, Stopped};
use super::turns::Turns;
use crate::backoff::Backoff;
use crate::log::{Ends, Log, MAX_BYTES, Place, Reader as _};
use crate::state::Flow;
use bulkmark_counts::{FleetMark, Mark, Settings, Terms, step_head};
use bulkmark_ledger::{Ledger, LedgerError, random_bytes};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How often the log is asked for its clients, and whether it lost its end.
const LOOK: Duration = Duration::from_secs(3);

/// How soon the log is asked again for a client that is not in its list.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a step may take from its acknowledgement by the log to its delivery.
const DELIVERY: Duration = Duration::from_secs(5);

/// How soon another step is drafted when the log did not acknowledge one. Of two that follow the same step, the log takes one.
const AGAIN: Duration = Duration::from_millis(500);

/// The longest time between two attempts.
const LONGEST: Duration = Duration::from_secs(2);

/// Makes steps every `sync_interval` in which batches came, and snapshots, as long as the ledger is open. [`follow`](super::follow()) keeps
/// the ledger in step.
pub async fn aggregate<L: Log>(ledger: Ledger, settings: Settings, log: Arc<L>, fleet: Arc<Fleet>) {
    let guarding = guard(Arc::clone(&log), Arc::clone(&fleet));
    tokio::select! {
        () = make_steps(ledger, settings, log, fleet) => (),
        () = guarding => (),
    }
}

async fn make_steps<L: Log>(ledger: Ledger, settings: Settings, log: Arc<L>, fleet: Arc<Fleet>) {
    let mut reached = fleet.reached();
    let mut aggregator = Aggregator::new(ledger, &settings, log, fleet);
    let mut backoff = Backoff::up_to(LONGEST);
    loop {
        let began = Instant::now();
        match aggregator.run(&mut reached).await {
            Ok(()) => (),
            Err(Stopped::Ledger(LedgerError::Closed)) => return,
            Err(e) => {
                aggregator.fleet.set_failing(Flow::Reports, &e);
                if began.elapsed() > DELIVERY {
                    backoff = Backoff::up_to(LONGEST);
                }
                backoff.wait().await;
            }
        }
    }
}

struct Aggregator<L> {
    ledger: Ledger,
    log: Arc<L>,
    fleet: Arc<Fleet>,
    snapshots: Snapshots<L>,
    turns: Turns,
    queue: Queue,
    clients: Clients,
    /// Withdrawals that no longer need a step.
    withdrawn: Vec<(String, u32)>,
    /// The step that was appended and is not delivered yet.
    waits: Option<Appended>,
}

/// A step that was appended.
struct Appended {
    mark: Mark,
    /// The end of the wait for it.
    until: Instant,
    /// Its bytes and the place that it should follow, if the log already had something behind that place.
    late: Option<(Place, Vec<u8>)>,
}

type Reached = watch::Receiver<Option<Cursor>>;

impl<L: Log> Aggregator<L> {
    fn new(ledger: Ledger, settings: &Settings, log: Arc<L>, fleet: Arc<Fleet>) -> Self {
        let seed = random_bytes().map_or(0, u64::from_le_bytes);
        Self {
            snapshots: Snapshots::new(ledger.clone(), settings.clone(), Arc::clone(&log)),
            ledger,
            log,
            fleet,
            turns: Turns::new(settings.federation.sync_interval, seed),
            queue: Queue::default(),
            clients: Clients::default(),
            withdrawn: Vec::new(),
            waits: None,
        }
    }

    /// Determines the last step, once the ledger and the log are in step, and the basis of the next one.
    async fn begin(&mut self, reached: &mut Reached) -> Result<(FleetMark, Basis), Stopped> {
        let lacks = self.in_step(reached).await?;
        // Read the mark first: compared with a later one, the log would seem to have lost its newest batches.
        let mark = self.ledger.fleet();
        // A step that comes while the log is asked does not show that the log lacks steps. Otherwise two aggregators on a slow log, each of
        // which starts over at the other's epoch, would begin epochs for ever.
        let ahead = lacks && reached.borrow().is_some_and(|cursor| !cursor.is_at(own(mark)));
        let ends = self.ends().await?;
        let first = self.log.first_batch().await?;
        let basis = Basis::of(mark, ends, first, ahead).ok_or_else(|| {
            Stopped::Unfit(format!(
                "{}; docs/fleet.md#a-poisoned-chain says how to go back",
                no_more_epochs(mark)
            ))
        })?;
        Ok((mark, basis))
    }

    /// Reads batches and makes steps, until the basis has to be determined again.
    async fn run(&mut self, reached: &mut Reached) -> Result<(), Stopped> {
        let session = self.fleet.session();
        let (mut mark, mut basis) = self.begin(reached).await?;
        let mut batches = self.log.batches(Place(basis.covers)).await?;
        (self.queue, self.waits) = (Queue::default(), None);
        self.look_at_clients().await?;
        self.fleet.set_working(Flow::Reports);
        let mut look = tokio::time::interval(LOOK);
        let mut stepped = Instant::now();
        loop {
            let due = self.due(&basis, mark, stepped);
            tokio::select! {
                batch = batches.next(), if self.queue.has_room() => {
                    let batch = batch?;
                    self.fleet.batch_read(&batch, self.clients.rate(&batch.client));
                    self.queue.push(batch, Instant::now());
                }
                changed = reached.changed() => {
                    // A reader of steps that starts over may have found that the log lost its end. It may be back before this task sees that
                    // it stopped.
                    if changed.is_err() || reached.borrow_and_update().is_none() || self.fleet.session() != session {
                        return Ok(());
                    }
                    let before = std::mem::replace(&mut mark, self.ledger.fleet());
                    if !basis.holds(mark) {
                        return Ok(());
                    }
                    if mark.version > before.version {
                        stepped = Instant::now();
                        basis.ahead = false;
                        self.has_stepped(&basis, mark);
                    } else {
                        self.append_late(basis, mark, reached).await;
                    }
                }
                () = until(due) => {
                    if self.queue.has_unknown(&self.clients) {
                        self.look_again_at_clients().await?;
                    }
                    self.draft(basis, reached).await?;
                }
                _ = look.tick() => {
                    self.look_at_clients().await?;
                    let mark = self.ledger.fleet();
                    let ends = self.ends().await?;
                    if ends.made != basis.made || mark.epoch == basis.epoch && ends.batches.0 < mark.covers {
                        return Ok(());
                    }
                    self.snapshots.tend(mark, self.turns.is_last()).await;
                }
            }
        }
    }

    /// Returns the time of the next draft; none while there is no news, or a step is on its way.
    fn due(&mut self, basis: &Basis, mark: FleetMark, stepped: Instant) -> Option<Instant> {
        self.waits.take_if(|step| step.until <= Instant::now());
        if let Some(step) = &self.waits {
            return Some(step.until);
        }
        let has_news = basis.is_news(mark) || self.clients.withdrawn() != self.withdrawn;
        let since = self.queue.since().or_else(|| has_news.then_some(stepped))?;
        Some(self.turns.due(since, self.queue.is_full(), stepped))
    }

    /// Records that a step was delivered.
    fn has_stepped(&mut self, basis: &Basis, mark: FleetMark) {
        let won = self.waits.take().map(|step| step.mark == own(mark));
        match won {
            Some(true) => self.fleet.won(),
            Some(false) => self.fleet.count(Count::Lost, 1),
            None => (),
        }
        self.turns.made(won == Some(true));
        // Places of an older epoch are unrelated to the batches read in this one.
        let covers = if mark.epoch == basis.epoch { mark.covers } else { basis.covers };
        self.queue.covered(covers, Instant::now());
    }

    /// Drafts a step and appends it. The log then delivers it, or another one.
    async fn draft(&mut self, basis: Basis, reached: &Reached) -> Result<(), Stopped> {
        let Some(cursor) = *reached.borrow() else { return Ok(()) };
        let mark = self.ledger.fleet();
        if self.waits.is_some() {
            return Ok(());
        }
        if !basis.ahead && !cursor.is_at(own(mark)) {
            // The reader of steps is about to report its position.
            tokio::task::yield_now().await;
            return Ok(());
        }
        let withdrawn = self.clients.withdrawn();
        let Basis { epoch, made, gone, .. } = basis;
        let terms = Terms { epoch, made, gone, withdrawn, most_bytes: MAX_BYTES };
        let batches = self.queue.first(&self.clients);
        let drafted = self.ledger.draft_step(batches, terms.clone()).await?;
        if own(self.ledger.fleet()) != own(mark) {
            return Ok(());
        }
        self.withdrawn = terms.withdrawn;
        let Some(drafted) = drafted else { return Ok(()) };
        let Some((_, made)) = step_head(&drafted.bytes) else { return Ok(()) };
        if self.append(cursor.place, made, drafted.bytes).await {
            self.fleet.count(Count::JunkBatches, drafted.junk);
            drafted.unread.iter().for_each(|what| self.fleet.skipped_batch(what));
            log::debug!("step {} of {} batches", made.version, drafted.batches);
        }
        Ok(())
    }

    /// Appends a step behind a place. True if the log acknowledged it; otherwise it may still be there.
    async fn append(&mut self, place: Place, mark: Mark, bytes: Vec<u8>) -> bool {
        let appended = self.log.append_step(place, bytes.clone()).await;
        let wait = if appended.is_ok() { DELIVERY } else { AGAIN };
        let (size, is_taken) = (bytes.len(), matches!(appended, Ok(Some(_))));
        // Another step was first, and will be delivered.
        let late = matches!(appended, Ok(None)).then_some((place, bytes));
        self.waits = Some(Appended { mark, until: Instant::now() + wait, late });
        match appended {
            Ok(_) => self.fleet.set_working(Flow::Reports),
            Err(e) => self.fleet.set_failing(Flow::Reports, &Stopped::from(e)),
        }
        if is_taken {
            self.snapshots.made(size);
        }
        is_taken
    }

    /// Appends a step again, at once, if the entry that preceded it was not part of the chain. Otherwise anybody who floods the log with
    /// junk would always be first.
    async fn append_late(&mut self, basis: Basis, mark: FleetMark, reached: &Reached) {
        let Some(cursor) = *reached.borrow() else { return };
        let follows = basis.ahead || cursor.is_at(own(mark));
        let is_late = |step: &mut Appended| {
            step.late.as_ref().is_some_and(|(place, _)| follows && cursor.place > *place)
        };
        if let Some(Appended { mark, late: Some((_, bytes)), .. }) = self.waits.take_if(is_late) {
            self.append(cursor.place, mark, bytes).await;
        }
    }

    async fn ends(&self) -> Result<Ends, Stopped> {
        let ends = self.log.ends().await?;
        self.fleet.set_ends(ends, self.ledger.fleet());
        Ok(ends)
    }

    async fn look_at_clients(&mut self) -> Result<(), Stopped> {
        self.clients.set(self.log.clients().await?);
        Ok(())
    }

    /// Gives a client that was added a moment ago time to appear in the list.
    async fn look_again_at_clients(&mut self) -> Result<(), Stopped> {
        self.look_at_clients().await?;
        if self.queue.has_unknown(&self.clients) {
            tokio::time::sleep(LOOK_AGAIN).await;
            self.look_at_clients().await?;
            if self.queue.has_unknown(&self.clients) {
                log::warn!("batches of a client that is no longer in the log's list are skipped");
                self.clients.give_up(&self.queue);
            }
        }
        Ok(())
    }

    /// Waits until the ledger has all steps of the log, and the log all of the ledger's: steps that it lost are appended again. True if the
    /// log lacks some all the same, and a snapshot has them.
    async fn in_step(&mut self, reached: &mut Reached) -> Result<bool, Stopped> {
        loop {
            let ends = self.ends().await?;
            let cursor = *reached.borrow_and_update();
            let here = own(self.ledger.fleet());
            if let Some(cursor) = cursor.filter(|cursor| cursor.place >= ends.steps) {
                if cursor.is_at(here) {
                    return Ok(false);
                }
                if self.heal(cursor, here).await? {
                    return Ok(true);
                }
            }
            // Only the log itself reports that it has more.
            let _ = tokio::time::timeout(LOOK, reached.changed()).await;
        }
    }

    /// Mends a log that lacks steps known here. True if the next step may follow the local ones all the same.
    async fn heal(&mut self, cursor: Cursor, here: Mark) -> Result<bool, Stopped> {
        match Lost::of(&self.ledger, cursor, here)? {
            Lost::Steps { behind, kept } => {
                log::warn!("the log lost its steps behind {behind}; {} are appended again", kept.len());
                let mut place = cursor.place;
                for (_, bytes) in kept {
                    let Some(next) = self.log.append_step(place, bytes.to_vec()).await? else { break };
                    place = next;
                }
                Ok(false)
            }
            Lost::TooMuch => {
                log::warn!(
                    "the log lacks some of the steps up to {}; a snapshot of them takes their place",
                    here.version
                );
                self.snapshots.put_now().await?;
                Ok(true)
            }
            Lost::Nothing => {
                // The reader of steps must take over the log's chain.
                self.fleet.set_forked();
                Err(Stopped::Unfit("the log's chain is another than the one known here".to_owned()))
            }
        }
    }
}

/// Waits until a time, or forever.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
