// SPDX-License-Identifier: GPL-3.0-or-later
//! The writer: the one thread that owns counts and file.

use crate::ledger::busy::Busy;
use crate::ledger::clock::now;
use crate::ledger::disk::commit;
use crate::ledger::disk::errors::OpenError;
use crate::ledger::disk::errors::WriteError;
use crate::ledger::disk::load::Loaded;
use crate::ledger::disk::open;
use crate::ledger::errors::LedgerError;
use crate::ledger::history::bulk::BulkMark;
use crate::ledger::history::fleet::FleetMark;
use crate::ledger::history::step::Step;
use crate::ledger::history::vector::{Chain, Origin, Vector};
use crate::ledger::random::random;
use crate::ledger::settings::Durability;
use crate::ledger::settings::Role;
use crate::ledger::settings::Settings;
use crate::ledger::state::changes::Expired;
use crate::ledger::state::retries::Retries;
use crate::ledger::state::roles::{State, WrongRole};
use crate::signature::FederationKey;
use arc_swap::{ArcSwap, ArcSwapOption};
use redb::Database;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// Requests in one commit at most; it bounds what waits for one fsync.
const ROUND: usize = 2048;

/// Changes that wait for a commit at most while the durability is relaxed.
const RELAXED: usize = 2048;

/// Reports in the journal after which a checkpoint replaces it: 720 kB to replay, and a checkpoint of at most one
/// generation's cells for so many messages. A server, which takes many at a time, goes on longer.
const CHECKPOINT_AFTER: u64 = 20_000;
const SERVER_CHECKPOINT_AFTER: u64 = 1_000_000;

/// Bytes of a fleet's steps after which a checkpoint replaces them: some four million signatures, which take seconds to read again.
const CHECKPOINT_AFTER_STEPS: usize = 32 << 20;

/// With fewer reports than that, a checkpoint follows this long after the last one.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(600);

/// How long a ledger whose disk failed is left alone before it is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// What is said when there is no better reason: a panic that the writer survived.
pub(crate) const INTERNAL: &str = "internal error in the ledger";

/// Something done to the state, if there is one.
pub(crate) type Work = Box<dyn FnOnce(Option<&mut State>) -> Answer + Send>;

/// What the writer is asked for.
pub(crate) enum Request {
    /// Something done to the state, with an answer that is sent once it is on disk. Without a state there is an error to
    /// answer.
    Work(Work),
    /// Something that changes nothing, and so is answered while the disk takes nothing, too.
    Look(Work),
    /// To write everything down and stop.
    Close(oneshot::Sender<Result<(), LedgerError>>),
}

/// Sends an answer; it is told whether the commit succeeded.
pub(crate) type Answer = Box<dyn FnOnce(&Result<(), LedgerError>) + Send>;

/// How a ledger is opened, at the start and after its disk failed.
pub(crate) struct Opening {
    pub(crate) directory: PathBuf,
    pub(crate) role: Role,
    pub(crate) settings: Settings,
    pub(crate) key: FederationKey,
}

/// What others see of a ledger without asking its writer.
pub(crate) struct Shared {
    /// Refused messages that are remembered.
    pub(crate) remembered: AtomicUsize,
    /// The open file, for readers.
    pub(crate) db: ArcSwapOption<Database>,
    /// How far each origin is counted and on disk.
    pub(crate) vector: watch::Sender<Arc<Vector>>,
    /// How far the list of bulk is, on disk.
    pub(crate) bulk: watch::Sender<BulkMark>,
    /// Where a fleet's chain stands on disk.
    pub(crate) fleet: watch::Sender<FleetMark>,
    /// The step that was drafted last, by the hash of its bytes.
    pub(crate) drafted: ArcSwapOption<(Chain, Step)>,
    /// The number of the key, and the length of a window in seconds.
    pub(crate) parameters: (u64, u64),
    /// The origins whose history only this ledger writes.
    pub(crate) own: ArcSwap<Vec<Origin>>,
    /// Whether the disk failed, and nothing was written since.
    pub(crate) failed: AtomicBool,
    /// Whether a server still has to hear from peers since its start.
    pub(crate) listens: AtomicBool,
    /// Whether it was closed, and will answer nothing any more.
    pub(crate) closed: AtomicBool,
    /// Whether people said anything of any message that may still count.
    pub(crate) has_people: AtomicBool,
    /// How long the writer has been at one piece of work.
    pub(crate) busy: Busy,
}

enum Condition {
    Open(Box<Loaded>),
    /// The disk failed: the counts in memory were ahead of it and are gone. Those on disk are here, if it can be read.
    Failed {
        reason: String,
        retry_at: Instant,
        readable: Option<Box<Loaded>>,
    },
}

pub(crate) struct Writer {
    opening: Opening,
    shared: Arc<Shared>,
    condition: Condition,
    last_checkpoint: Instant,
    last_cut: Instant,
    commit_due: Option<Instant>,
}

impl Writer {
    pub(crate) fn new(opening: Opening, shared: Arc<Shared>, loaded: Loaded) -> Self {
        let writer = Self {
            opening,
            shared,
            condition: Condition::Open(Box::new(loaded)),
            last_checkpoint: Instant::now(),
            last_cut: Instant::now(),
            commit_due: None,
        };
        writer.share();
        writer
    }

    /// Works until nobody holds the other end.
    pub(crate) fn run(mut self, requests: &Receiver<Request>) {
        loop {
            let wait = self.next_due().saturating_duration_since(Instant::now());
            let first = match requests.recv_timeout(wait) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.shut_down(),
            };
            let round = first.into_iter().chain(std::iter::from_fn(|| requests.try_recv().ok())).take(ROUND);
            self.shared.busy.begin();
            // A panic must not end the only thread that counts: it is treated as a failure of the disk.
            let close = catch_unwind(AssertUnwindSafe(|| self.round(round))).unwrap_or_else(|_| {
                self.fail(INTERNAL);
                None
            });
            if let Some(answer) = close {
                self.shut_down();
                let _ = answer.send(self.outcome());
                return;
            }
            self.shared.busy.end();
        }
    }

    fn next_due(&self) -> Instant {
        let Condition::Open(loaded) = &self.condition else {
            // Nothing is due to a failed ledger; the next request sees whether it can be opened again.
            return Instant::now() + RETRY_AFTER;
        };
        let mut due = self.last_checkpoint + CHECKPOINT_INTERVAL;
        due = self.commit_due.map_or(due, |commit| commit.min(due));
        if loaded.state.has_grown() {
            due = due.min(self.last_cut + self.opening.settings.federation.sync_interval);
        }
        due
    }

    /// Applies what waits, commits it, answers. Returns whom to answer when the ledger is to be closed.
    fn round(
        &mut self,
        requests: impl Iterator<Item = Request>,
    ) -> Option<oneshot::Sender<Result<(), LedgerError>>> {
        self.reopen_if_due();
        let (mut answers, mut looks, mut close) = (Vec::new(), Vec::new(), None);
        for request in requests {
            match request {
                Request::Work(work) => answers.push(work(match &mut self.condition {
                    Condition::Open(loaded) => Some(&mut loaded.state),
                    Condition::Failed { .. } => None,
                })),
                Request::Look(work) => looks.push(work),
                Request::Close(answer) => close = Some(answer),
            }
        }
        self.cut_if_due();
        let outcome = self.commit_if_due();
        for answer in answers {
            answer(&outcome);
        }
        for look in looks {
            let outcome = if self.readable().is_some() { Ok(()) } else { self.outcome() };
            look(self.readable().map(|loaded| &mut loaded.state))(&outcome);
        }
        self.checkpoint_if_due();
        close
    }

    /// What is on disk, as far as it can be read.
    fn readable(&mut self) -> Option<&mut Loaded> {
        match &mut self.condition {
            Condition::Open(loaded) => Some(loaded),
            Condition::Failed { readable, .. } => readable.as_deref_mut(),
        }
    }

    fn outcome(&self) -> Result<(), LedgerError> {
        match &self.condition {
            Condition::Open(_) => Ok(()),
            Condition::Failed { reason, .. } => Err(LedgerError::Unavailable(reason.clone())),
        }
    }

    fn cut_if_due(&mut self) {
        let Condition::Open(loaded) = &mut self.condition else { return };
        let due = self.last_cut + self.opening.settings.federation.sync_interval;
        if loaded.state.has_grown() && Instant::now() >= due {
            loaded.state.cut(now());
            self.last_cut = Instant::now();
        }
    }

    fn commit_if_due(&mut self) -> Result<(), LedgerError> {
        let settings = &self.opening.settings;
        if let Condition::Open(loaded) = &self.condition
            && !loaded.state.counts().changes.is_empty()
            && settings.durability == Durability::Relaxed
        {
            let due = *self.commit_due.get_or_insert_with(|| Instant::now() + settings.commit_interval);
            if Instant::now() < due && loaded.state.counts().changes.len() < RELAXED {
                return Ok(());
            }
        }
        self.commit();
        self.outcome()
    }

    fn commit(&mut self) {
        self.shared.busy.begin();
        self.commit_due = None;
        let Condition::Open(loaded) = &mut self.condition else { return };
        let Loaded { db, state, .. } = &mut **loaded;
        if let Some(reason) = state.counts_mut().broken.take() {
            return self.fail(&reason);
        }
        if state.needs_checkpoint() {
            // Updates that follow a snapshot or a new origin make no sense without it: both go to disk together.
            return self.checkpoint(0);
        }
        if state.counts().changes.is_empty() {
            return;
        }
        let changes = std::mem::take(&mut state.counts_mut().changes);
        match commit::commit(db, state, &changes) {
            Ok(()) => self.succeed(),
            Err(e) => self.fail(&e.to_string()),
        }
    }

    fn checkpoint_if_due(&mut self) {
        let Condition::Open(loaded) = &self.condition else { return };
        let Loaded { state, checkpoint, .. } = &**loaded;
        let counts = state.counts();
        let journalled = counts.next - checkpoint;
        let most = if state.role() == Role::Server { SERVER_CHECKPOINT_AFTER } else { CHECKPOINT_AFTER };
        let elapsed = self.last_checkpoint.elapsed() >= CHECKPOINT_INTERVAL;
        let many = journalled >= most || counts.steps_bytes >= CHECKPOINT_AFTER_STEPS;
        if many || elapsed && (journalled > 0 || counts.merged_grew()) {
            let clock = counts.clock;
            self.checkpoint(clock);
        }
        if elapsed {
            self.last_checkpoint = Instant::now();
        }
    }

    /// `time` is zero when no request told the time; then nothing expires.
    fn checkpoint(&mut self, time: u64) {
        self.shared.busy.begin();
        let Condition::Open(loaded) = &mut self.condition else { return };
        let Loaded { db, state, checkpoint } = &mut **loaded;
        // What is in the cells of a checkpoint is in updates; so its vector says what it holds.
        state.cut(now());
        let expired = if time == 0 { Expired::default() } else { state.take_expired(time) };
        let result = commit::checkpoint(db, state, &expired);
        *checkpoint = state.counts().next;
        self.last_checkpoint = Instant::now();
        match result {
            Ok(()) => self.succeed(),
            Err(e) => self.fail(&e.to_string()),
        }
    }

    /// Tells others what is on disk now.
    fn share(&self) {
        let loaded = match &self.condition {
            Condition::Open(loaded) => loaded,
            Condition::Failed { readable, .. } => match readable {
                Some(loaded) => loaded,
                None => return,
            },
        };
        let Loaded { db, state, .. } = &**loaded;
        self.shared.remembered.store(state.retries().map_or(0, Retries::len), Ordering::Relaxed);
        self.shared.vector.send_if_modified(|shared| {
            let vector = state.vector();
            let moved = **shared != vector;
            if moved {
                *shared = Arc::new(vector);
            }
            let own = state.own_origins();
            if **self.shared.own.load() != own {
                self.shared.own.store(Arc::new(own));
            }
            moved
        });
        let bulk = state.counts().bulk;
        self.shared.bulk.send_if_modified(|shared| std::mem::replace(shared, bulk) != bulk);
        self.shared.fleet.send_if_modified(|shared| {
            let mark = state.counts().fleet.mark;
            std::mem::replace(shared, mark) != mark
        });
        let listens = matches!(state, State::Server(server) if server.unheard.peers().next().is_some());
        self.shared.listens.store(listens, Ordering::Relaxed);
        self.shared.has_people.store(state.counts().has_people(), Ordering::Relaxed);
        if self.shared.db.load().is_none() {
            self.shared.db.store(Some(Arc::clone(db)));
        }
    }

    fn fail(&mut self, reason: &str) {
        if let Condition::Open(loaded) = &self.condition
            && matches!(&loaded.state, State::Server(server) if server.unheard.knows_all())
        {
            // Whoever was heard once need not be again because of a disk.
            self.opening.settings.federation.peers.clear();
        }
        if !self.shared.failed.swap(true, Ordering::Relaxed) {
            let what = match self.opening.role {
                Role::Server => "reports are refused",
                Role::Site | Role::Cache => "messages pass unjudged",
            };
            log::error!("{reason}; {what} until the ledger can be written again");
        }
        self.commit_due = None;
        self.leave(reason);
    }

    /// Lets go of what is in memory, which the disk does not have, and goes on with what is on disk, to be looked at.
    fn leave(&mut self, reason: &str) {
        self.shared.db.store(None);
        let failed = |readable| Condition::Failed {
            reason: reason.to_owned(),
            retry_at: Instant::now() + RETRY_AFTER,
            readable,
        };
        // First the memory is free, then the same is read again.
        self.condition = failed(None);
        match self.opening.open_overlay() {
            Ok(loaded) => self.condition = failed(Some(Box::new(loaded))),
            Err(e) => log::error!("{e}; nothing can be counted or read"),
        }
        self.share();
    }

    /// Tries after a while whether the disk takes something again: all that is not on it.
    fn reopen_if_due(&mut self) {
        let Condition::Failed { retry_at, readable, .. } = &mut self.condition else { return };
        if Instant::now() < *retry_at {
            return;
        }
        self.shared.db.store(None);
        *readable = None;
        match self.opening.open() {
            Ok(loaded) => {
                self.condition = Condition::Open(Box::new(loaded));
                self.share();
                self.checkpoint(0);
            }
            Err(e) => self.leave(&e.to_string()),
        }
    }

    /// Something was written.
    fn succeed(&self) {
        if self.shared.failed.swap(false, Ordering::Relaxed) {
            log::warn!("the ledger can be written again");
        }
        self.share();
    }

    fn shut_down(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        self.checkpoint(0);
        // Handles may outlive the writer; the file must not stay open with them.
        self.shared.db.store(None);
        self.shared.busy.end();
    }
}

impl Opening {
    pub(crate) fn open(&self) -> Result<Loaded, OpenError> {
        let io = |reason| OpenError::Io { path: self.directory.clone(), reason };
        let random = [random().map_err(io)?, random().map_err(io)?];
        open::open(&self.directory, self.role, &self.settings, &self.key, random)
    }

    fn open_overlay(&self) -> Result<Loaded, OpenError> {
        // What is new in it is forgotten with it, and needs no name.
        open::open_overlay(&self.directory, self.role, &self.settings, [0; 2])
    }
}

impl From<WrongRole> for LedgerError {
    fn from(_: WrongRole) -> Self {
        Self::WrongRole
    }
}

impl From<WriteError> for LedgerError {
    fn from(error: WriteError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
