// SPDX-License-Identifier: GPL-3.0-or-later
//! Makes steps of what the milters report. Any number of aggregators do so side by side, and know nothing of one another: the
//! log takes the first step that follows the last, and all go on from what it delivers.

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

/// How often the log is asked who its clients are, and whether it lost its end.
const LOOK: Duration = Duration::from_secs(3);

/// How soon it is asked again for a client that it did not name.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a step may take from the log's taking it to its coming back.
const DELIVERY: Duration = Duration::from_secs(5);

/// How soon another is drafted when the log did not say that it took one. Of two that follow the same step the log takes one.
const AGAIN: Duration = Duration::from_millis(500);

/// The longest time between two attempts.
const LONGEST: Duration = Duration::from_secs(2);

/// Makes steps every `sync_interval` in which batches came, and snapshots, for as long as the ledger is open. The ledger is kept in step
/// by [`follow`](super::follow()).
pub async fn aggregate<L: Log>(ledger: Ledger, settings: Settings, log: Arc<L>, fleet: Arc<Fleet>) {
    let guarding = guard(Arc::clone(&log), Arc::clone(&fleet));
    tokio::select! {
        () = make_steps(ledger, settings, log, fleet) => (),
        () = guarding => (),
    }
}

async fn make_steps<L: Log>(ledger: Ledger, settings: Settings, log: Arc<L>, fleet: Arc<Fleet>) {
    let seed = random_bytes().map_or(0, u64::from_le_bytes);
    let snapshots = Snapshots::new(ledger.clone(), settings.clone(), Arc::clone(&log));
    let mut reached = fleet.reached();
    let mut aggregator = Aggregator {
        ledger,
        log,
        fleet,
        snapshots,
        turns: Turns::new(settings.federation.sync_interval, seed),
        queue: Queue::default(),
        clients: Clients::default(),
        withdrawn: Vec::new(),
        waits: None,
    };
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
    /// Withdrawals that need no step any more.
    withdrawn: Vec<(String, u32)>,
    /// The step that was appended and has not come back.
    waits: Option<Appended>,
}

/// A step that was appended.
struct Appended {
    mark: Mark,
    /// How long it is waited for.
    until: Instant,
    /// Its bytes and the place that it was to follow, if the log had something behind that already.
    late: Option<(Place, Vec<u8>)>,
}

type Reached = watch::Receiver<Option<Cursor>>;

impl<L: Log> Aggregator<L> {
    /// Reads batches and makes steps, until something is to be looked at anew.
    async fn run(&mut self, reached: &mut Reached) -> Result<(), Stopped> {
        self.in_step(reached).await?;
        // The mark comes first: by it the log has lost nothing that it got since.
        let mut mark = self.ledger.fleet();
        let ends = self.ends().await?;
        let first = self.log.first_batch().await?;
        let ahead = mark.version > 0 && reached.borrow().is_some_and(|cursor| !cursor.is_at(own(mark)));
        let mut basis = Basis::of(mark, ends, first, ahead).ok_or_else(|| {
            Stopped::Unfit(format!(
                "{}; docs/fleet.md#a-poisoned-chain says how to go back",
                no_more_epochs(mark)
            ))
        })?;
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
                    if changed.is_err() || reached.borrow_and_update().is_none() {
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

    /// When a step is to be drafted; none while there is nothing to tell, or one is on its way.
    fn due(&mut self, basis: &Basis, mark: FleetMark, stepped: Instant) -> Option<Instant> {
        self.waits.take_if(|step| step.until <= Instant::now());
        if let Some(step) = &self.waits {
            return Some(step.until);
        }
        let told = basis.is_news(mark) || self.clients.withdrawn() != self.withdrawn;
        let since = self.queue.since().or_else(|| told.then_some(stepped))?;
        Some(self.turns.due(since, self.queue.is_full(), stepped))
    }

    /// A step came.
    fn has_stepped(&mut self, basis: &Basis, mark: FleetMark) {
        let won = self.waits.take().map(|step| step.mark == own(mark));
        match won {
            Some(true) => self.fleet.won(),
            Some(false) => self.fleet.count(Count::Lost, 1),
            None => (),
        }
        self.turns.made(won == Some(true));
        // Places of an older epoch say nothing of what was read in this one.
        let covers = if mark.epoch == basis.epoch { mark.covers } else { basis.covers };
        self.queue.covered(covers, Instant::now());
    }

    /// Drafts a step and appends it. What becomes of it, the log tells by delivering it, or another.
    async fn draft(&mut self, basis: Basis, reached: &Reached) -> Result<(), Stopped> {
        let Some(cursor) = *reached.borrow() else { return Ok(()) };
        let mark = self.ledger.fleet();
        if self.waits.is_some() {
            return Ok(());
        }
        if !basis.ahead && !cursor.is_at(own(mark)) {
            // The reader is about to say so.
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

    /// Appends a step behind a place. True when the log says that it took it; it may be there although the log did not say so.
    async fn append(&mut self, place: Place, mark: Mark, bytes: Vec<u8>) -> bool {
        let appended = self.log.append_step(place, bytes.clone()).await;
        let wait = if appended.is_ok() { DELIVERY } else { AGAIN };
        let (size, is_taken) = (bytes.len(), matches!(appended, Ok(Some(_))));
        // Another was first; it comes.
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

    /// What came before a step of ours was none of the chain: the same step is appended behind it, at once. Whoever floods the log with
    /// junk would else be first each time.
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

    /// A client that was added a moment ago is not taken for unknown.
    async fn look_again_at_clients(&mut self) -> Result<(), Stopped> {
        self.look_at_clients().await?;
        if self.queue.has_unknown(&self.clients) {
            tokio::time::sleep(LOOK_AGAIN).await;
            self.look_at_clients().await?;
            if self.queue.has_unknown(&self.clients) {
                log::warn!("batches of a client that the log does not know any more are passed over");
                self.clients.give_up(&self.queue);
            }
        }
        Ok(())
    }

    /// Waits until the ledger has all steps of the log, and the log all of the ledger's: what it lost of them is appended again.
    async fn in_step(&mut self, reached: &mut Reached) -> Result<(), Stopped> {
        loop {
            let ends = self.ends().await?;
            let cursor = *reached.borrow_and_update();
            let here = own(self.ledger.fleet());
            if let Some(cursor) = cursor.filter(|cursor| cursor.place >= ends.steps)
                && (cursor.is_at(here) || self.heal(cursor, here).await?)
            {
                return Ok(());
            }
            // Nothing but the log itself says when it has more.
            let _ = tokio::time::timeout(LOOK, reached.changed()).await;
        }
    }

    /// The log has not all steps that are known here. True when the next step may follow what is here all the same.
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
                    "the log has not all steps up to {}; a snapshot of them takes their place",
                    here.version
                );
                self.snapshots.put_now().await?;
                Ok(true)
            }
            Lost::Nothing => {
                // The reader of steps is to take the log's chain over.
                self.fleet.set_forked();
                Err(Stopped::Unfit("the log's chain is another than the one known here".to_owned()))
            }
        }
    }
}

/// Is done at a time, or never.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
