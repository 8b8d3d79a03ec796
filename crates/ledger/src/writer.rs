// SPDX-License-Identifier: GPL-3.0-or-later
//! The writer: the one thread that owns the counts and the file.

use crate::clock::now;
use crate::condition::Condition;
use crate::disk::commit;
use crate::disk::errors::OpenError;
use crate::disk::errors::WriteError;
use crate::disk::load::Loaded;
use crate::disk::open;
use crate::disk::room;
use crate::disk::schema::FILE_NAME;
use crate::errors::LedgerError;
use crate::random::random;
use crate::shared::Shared;
use bulkmark_counts::settings::Durability;
use bulkmark_counts::settings::Role;
use bulkmark_counts::settings::Settings;
use bulkmark_counts::state::expired::Expired;
use bulkmark_counts::state::roles::{State, WrongRole};
use bulkmark_types::FederationKey;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Requests in one commit at most; it bounds the work that waits for one fsync.
const ROUND: usize = 2048;

/// Changes that wait for a commit at most under relaxed durability.
const RELAXED: usize = 2048;

/// Reports in the journal after which a checkpoint replaces it: 720 kB to replay, and a checkpoint of at most one
/// generation's cells for that many messages. A server, which receives many at a time, waits longer.
const CHECKPOINT_AFTER: u64 = 20_000;
const SERVER_CHECKPOINT_AFTER: u64 = 1_000_000;

/// Bytes of a fleet's steps after which a checkpoint replaces them: about four million signatures, which take seconds to read again.
const CHECKPOINT_AFTER_STEPS: usize = 32 << 20;

/// The time after which a checkpoint follows the last one even with fewer reports.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(600);

/// The time after which a ledger whose disk failed is opened again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The reason given for a panic that the writer survived.
pub(crate) const INTERNAL: &str = "internal error in the ledger";

/// Whether a checkpoint must replace this many reports in the journal and bytes of steps.
fn is_checkpoint_due(role: Role, journalled: u64, steps: usize) -> bool {
    let most = if role == Role::Server { SERVER_CHECKPOINT_AFTER } else { CHECKPOINT_AFTER };
    journalled >= most || steps >= CHECKPOINT_AFTER_STEPS
}

/// A change of the state; `None` if the disk failed.
pub(crate) type Work = Box<dyn FnOnce(Option<&mut State>) -> Answer + Send>;

/// A read of the state; `None` if it cannot be read.
pub(crate) type Query = Box<dyn FnOnce(Option<&State>) -> Answer + Send>;

/// A request to the writer.
pub(crate) enum Request {
    /// A change of the state. Its answer is sent once it is on disk; without a state the answer is an error.
    Work(Work),
    /// A read of the state, which is answered also while the disk accepts no writes.
    Query(Query),
    /// Write everything to disk and stop.
    Close(oneshot::Sender<Result<(), LedgerError>>),
}

/// Sends an answer; the argument is the outcome of the commit.
pub(crate) type Answer = Box<dyn FnOnce(&Result<(), LedgerError>) + Send>;

/// The parameters for opening the ledger, at the start and after its disk failed.
pub(crate) struct Opening {
    pub(crate) directory: PathBuf,
    pub(crate) role: Role,
    pub(crate) settings: Settings,
    pub(crate) key: FederationKey,
}

pub(crate) struct Writer {
    opening: Opening,
    shared: Arc<Shared>,
    last_checkpoint: Instant,
    last_cut: Instant,
    commit_due: Option<Instant>,
}

impl Writer {
    pub(crate) fn new(opening: Opening, shared: Arc<Shared>) -> Self {
        Self { opening, shared, last_checkpoint: Instant::now(), last_cut: Instant::now(), commit_due: None }
    }

    /// Runs until all senders are dropped.
    pub(crate) fn run(mut self, requests: &Receiver<Request>) {
        loop {
            let wait = self.next_due().saturating_duration_since(Instant::now());
            let first = match requests.recv_timeout(wait) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return drop(self.shut_down()),
            };
            let round = first.into_iter().chain(std::iter::from_fn(|| requests.try_recv().ok())).take(ROUND);
            self.shared.busy.begin(false);
            // A panic must not end the only thread that counts: it is handled like a failure of the disk.
            let close = catch_unwind(AssertUnwindSafe(|| self.round(round))).unwrap_or_else(|_| {
                self.fail(INTERNAL);
                None
            });
            if let Some(answer) = close {
                let _ = answer.send(self.shut_down());
                return;
            }
            self.shared.busy.end();
        }
    }

    fn next_due(&self) -> Instant {
        let Condition::Open(loaded) = &*self.shared.condition.blocking_read() else {
            // A failed ledger has no deadline; the next request checks whether it can be opened again.
            return Instant::now() + RETRY_AFTER;
        };
        let mut due = self.last_checkpoint + CHECKPOINT_INTERVAL;
        due = self.commit_due.map_or(due, |commit| commit.min(due));
        if loaded.state.has_grown() {
            due = due.min(self.last_cut + self.opening.settings.federation.sync_interval);
        }
        due
    }

    /// Applies the requests, commits, and answers. Returns the sender for the answer if the ledger must close.
    fn round(
        &mut self,
        requests: impl Iterator<Item = Request>,
    ) -> Option<oneshot::Sender<Result<(), LedgerError>>> {
        self.reopen_if_due();
        let (mut answers, mut queries, mut close) = (Vec::new(), Vec::new(), None);
        let mut condition = self.shared.condition.blocking_write();
        for request in requests {
            match request {
                Request::Work(work) => answers.push(work(condition.state_mut())),
                Request::Query(query) => queries.push(query),
                Request::Close(answer) => close = Some(answer),
            }
        }
        drop(condition);
        self.cut_if_due();
        let outcome = self.commit_if_due();
        for answer in answers {
            answer(&outcome);
        }
        self.answer(queries);
        self.checkpoint_if_due();
        close
    }

    fn answer(&self, queries: Vec<Query>) {
        if queries.is_empty() {
            return;
        }
        self.shared.busy.begin(false);
        let condition = self.shared.condition.blocking_read();
        let readable = condition.readable();
        let outcome = if readable.is_some() { Ok(()) } else { condition.outcome() };
        for query in queries {
            query(readable.map(|loaded| &loaded.state))(&outcome);
        }
    }

    fn outcome(&self) -> Result<(), LedgerError> {
        self.shared.condition.blocking_read().outcome()
    }

    fn cut_if_due(&mut self) {
        let mut condition = self.shared.condition.blocking_write();
        let Some(state) = condition.state_mut() else { return };
        let due = self.last_cut + self.opening.settings.federation.sync_interval;
        if state.has_grown() && Instant::now() >= due {
            state.cut(now());
            self.last_cut = Instant::now();
        }
    }

    fn commit_if_due(&mut self) -> Result<(), LedgerError> {
        let settings = &self.opening.settings;
        if settings.durability == Durability::Relaxed
            && let Condition::Open(loaded) = &*self.shared.condition.blocking_read()
            && let changes = &loaded.state.counts().changes
            && !changes.is_empty()
            && !changes.is_promised()
        {
            let due = *self.commit_due.get_or_insert_with(|| Instant::now() + settings.commit_interval);
            if Instant::now() < due && changes.len() < RELAXED {
                return Ok(());
            }
        }
        self.commit();
        self.outcome()
    }

    fn commit(&mut self) {
        self.shared.busy.begin(true);
        self.commit_due = None;
        let shared = Arc::clone(&self.shared);
        let mut condition = shared.condition.blocking_write();
        let Some(state) = condition.state_mut() else { return };
        if let Some(reason) = state.counts_mut().broken.take() {
            drop(condition);
            return self.fail(&reason);
        }
        if state.needs_checkpoint() {
            drop(condition);
            // Updates that follow a snapshot or a new origin make no sense without it: both go to disk together.
            return self.checkpoint(0);
        }
        if state.counts().changes.is_empty() {
            return;
        }
        let changes = std::mem::take(&mut state.counts_mut().changes);
        // While the disk works, others can read.
        let condition = condition.downgrade();
        let result = match &*condition {
            Condition::Open(loaded) => commit::commit(&loaded.db, &loaded.state, &changes),
            Condition::Failed { .. } => return,
        };
        drop(condition);
        self.handle_outcome(result);
    }

    fn checkpoint_if_due(&mut self) {
        let elapsed = self.last_checkpoint.elapsed() >= CHECKPOINT_INTERVAL;
        let (is_due, clock) = match &*self.shared.condition.blocking_read() {
            Condition::Open(loaded) => {
                let Loaded { state, checkpoint, .. } = &**loaded;
                let counts = state.counts();
                let journalled = counts.next - checkpoint;
                let many = is_checkpoint_due(state.role(), journalled, counts.unwritten.steps);
                (many || elapsed && (journalled > 0 || counts.merged_grew()), counts.clock)
            }
            Condition::Failed { .. } => return,
        };
        if is_due {
            self.checkpoint(clock);
        }
        if elapsed {
            self.last_checkpoint = Instant::now();
        }
    }

    /// Writes a checkpoint. `time` is zero if no request gave the time; then nothing expires.
    fn checkpoint(&mut self, time: u64) {
        self.shared.busy.begin(true);
        let shared = Arc::clone(&self.shared);
        let mut condition = shared.condition.blocking_write();
        let Some(state) = condition.state_mut() else { return };
        // The cells of a checkpoint contain only reports that are in updates; so its vector describes them.
        state.cut(now());
        let expired = if time == 0 { Expired::default() } else { state.take_expired(time) };
        let changes = std::mem::take(&mut state.counts_mut().changes);
        // While the disk works, others can read.
        let condition = condition.downgrade();
        let result = match &*condition {
            Condition::Open(loaded) => commit::checkpoint(&loaded.db, &loaded.state, &changes, &expired),
            Condition::Failed { .. } => return,
        };
        drop(condition);
        if let (Ok(()), Condition::Open(loaded)) = (&result, &mut *shared.condition.blocking_write()) {
            commit::mark_clean(&mut loaded.state);
            loaded.checkpoint = loaded.state.counts().next;
        }
        self.last_checkpoint = Instant::now();
        self.handle_outcome(result);
    }

    /// Handles the outcome of a write.
    fn handle_outcome(&mut self, result: Result<(), WriteError>) {
        match result {
            Ok(()) => self.succeed(),
            Err(e) => self.fail(&self.opening.error_text(&e)),
        }
    }

    /// Publishes the state on disk to other threads.
    fn publish(&self) {
        if let Some(loaded) = self.shared.condition.blocking_read().readable() {
            self.shared.publish(loaded);
        }
    }

    fn fail(&mut self, reason: &str) {
        if let Condition::Open(loaded) = &*self.shared.condition.blocking_read()
            && matches!(&loaded.state, State::Server(server) if server.peer_check.is_complete())
        {
            // Peers that reported their vectors before need not do so again because of a disk failure.
            self.opening.settings.federation.peers.clear();
        }
        if !self.shared.failed.swap(true, Ordering::Relaxed) {
            let effect = match self.opening.role {
                Role::Server => "reports are refused",
                Role::Site | Role::Cache => "messages pass unjudged",
            };
            log::error!("{reason}; {effect} until the ledger can be written again");
        }
        self.commit_due = None;
        self.go_read_only(reason);
    }

    /// Drops the counts in memory, which are ahead of the disk, and continues read-only with those on disk.
    fn go_read_only(&mut self, reason: &str) {
        self.shared.db.store(None);
        let failed = |readable| Condition::Failed {
            reason: reason.to_owned(),
            retry_at: Instant::now() + RETRY_AFTER,
            readable,
        };
        // Free the memory before the same counts are read again.
        self.set(failed(None));
        match self.opening.open_overlay() {
            Ok(loaded) => self.set(failed(Some(Box::new(loaded)))),
            Err(e) => log::error!("{e}; nothing can be counted or read"),
        }
        self.publish();
    }

    fn set(&self, condition: Condition) {
        *self.shared.condition.blocking_write() = condition;
    }

    /// Checks, at intervals, whether the disk accepts writes again; then writes everything that it lacks.
    fn reopen_if_due(&mut self) {
        match &mut *self.shared.condition.blocking_write() {
            Condition::Failed { retry_at, readable, reason } if Instant::now() >= *retry_at => {
                if let Err(e) = room::try_out(&self.opening.directory) {
                    (*retry_at, *reason) = (Instant::now() + RETRY_AFTER, self.opening.error_text(&e));
                    return;
                }
                *readable = None;
            }
            _ => return,
        }
        self.shared.db.store(None);
        match self.opening.open() {
            Ok(loaded) => {
                self.set(Condition::Open(Box::new(loaded)));
                self.publish();
                self.checkpoint(0);
            }
            Err(e) => self.go_read_only(&e.to_string()),
        }
    }

    /// Records that a write succeeded.
    fn succeed(&self) {
        if self.shared.failed.swap(false, Ordering::Relaxed) {
            log::warn!("the ledger can be written again");
        }
        self.publish();
    }

    /// Writes everything to disk and closes the file.
    fn shut_down(&mut self) -> Result<(), LedgerError> {
        self.shared.closed.store(true, Ordering::Release);
        self.checkpoint(0);
        let outcome = self.outcome();
        // Handles may outlive the writer, but must not keep the file or the memory.
        self.shared.db.store(None);
        let reason = LedgerError::Closed.to_string();
        self.set(Condition::Failed { reason, retry_at: Instant::now(), readable: None });
        self.shared.busy.end();
        outcome
    }
}

impl Opening {
    /// Formats an error of the disk, with the ledger's path and the remedy.
    fn error_text(&self, error: &WriteError) -> String {
        error.at(&self.directory.join(FILE_NAME))
    }

    pub(crate) fn open(&self) -> Result<Loaded, OpenError> {
        let io = |reason| OpenError::Io { path: self.directory.clone(), reason };
        let random = [random().map_err(io)?, random().map_err(io)?];
        open::open(&self.directory, self.role, &self.settings, &self.key, random)
    }

    fn open_overlay(&self) -> Result<Loaded, OpenError> {
        // New origins and spools in it are dropped with it, and need no random numbers.
        open::open_overlay(&self.directory, self.role, &self.settings, [0; 2])
    }
}

impl From<WrongRole> for LedgerError {
    fn from(_: WrongRole) -> Self {
        Self::WrongRole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The work of a start is bounded, in reports and in bytes of steps.
    #[test]
    fn a_checkpoint_comes_before_there_is_too_much_to_read_again() {
        for (role, most) in [(Role::Site, 20_000), (Role::Cache, 20_000), (Role::Server, 1_000_000)] {
            assert!(!is_checkpoint_due(role, most - 1, 0) && is_checkpoint_due(role, most, 0), "{role:?}");
            assert!(
                !is_checkpoint_due(role, 0, (32 << 20) - 1) && is_checkpoint_due(role, 0, 32 << 20),
                "{role:?}"
            );
        }
    }
}
