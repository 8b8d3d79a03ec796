// SPDX-License-Identifier: GPL-3.0-or-later
//! The writer: the one thread that owns counts and file.

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

/// Whether so many reports in the journal, and bytes of steps, are to be replaced by a checkpoint.
fn is_much(role: Role, journalled: u64, steps: usize) -> bool {
    let most = if role == Role::Server { SERVER_CHECKPOINT_AFTER } else { CHECKPOINT_AFTER };
    journalled >= most || steps >= CHECKPOINT_AFTER_STEPS
}

/// Something done to the state, if there is one.
pub(crate) type Work = Box<dyn FnOnce(Option<&mut State>) -> Answer + Send>;

/// Something looked up in the state, if there is one.
pub(crate) type Look = Box<dyn FnOnce(Option<&State>) -> Answer + Send>;

/// What the writer is asked for.
pub(crate) enum Request {
    /// Something done to the state, with an answer that is sent once it is on disk. Without a state there is an error to
    /// answer.
    Work(Work),
    /// Something that changes nothing, and so is answered while the disk takes nothing, too.
    Look(Look),
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

    /// Works until nobody holds the other end.
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
            // A panic must not end the only thread that counts: it is treated as a failure of the disk.
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
        let mut condition = self.shared.condition.blocking_write();
        for request in requests {
            match request {
                Request::Work(work) => answers.push(work(condition.state_mut())),
                Request::Look(look) => looks.push(look),
                Request::Close(answer) => close = Some(answer),
            }
        }
        drop(condition);
        self.cut_if_due();
        let outcome = self.commit_if_due();
        for answer in answers {
            answer(&outcome);
        }
        self.answer(looks);
        self.checkpoint_if_due();
        close
    }

    fn answer(&self, looks: Vec<Look>) {
        if looks.is_empty() {
            return;
        }
        self.shared.busy.begin(false);
        let condition = self.shared.condition.blocking_read();
        let readable = condition.readable();
        let outcome = if readable.is_some() { Ok(()) } else { condition.outcome() };
        for look in looks {
            look(readable.map(|loaded| &loaded.state))(&outcome);
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
        // While the disk works, others read.
        let condition = condition.downgrade();
        let result = match &*condition {
            Condition::Open(loaded) => commit::commit(&loaded.db, &loaded.state, &changes),
            Condition::Failed { .. } => return,
        };
        drop(condition);
        self.end(result);
    }

    fn checkpoint_if_due(&mut self) {
        let elapsed = self.last_checkpoint.elapsed() >= CHECKPOINT_INTERVAL;
        let (is_due, clock) = match &*self.shared.condition.blocking_read() {
            Condition::Open(loaded) => {
                let Loaded { state, checkpoint, .. } = &**loaded;
                let counts = state.counts();
                let journalled = counts.next - checkpoint;
                let many = is_much(state.role(), journalled, counts.unwritten.steps);
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

    /// `time` is zero when no request told the time; then nothing expires.
    fn checkpoint(&mut self, time: u64) {
        self.shared.busy.begin(true);
        let shared = Arc::clone(&self.shared);
        let mut condition = shared.condition.blocking_write();
        let Some(state) = condition.state_mut() else { return };
        // What is in the cells of a checkpoint is in updates; so its vector says what it holds.
        state.cut(now());
        let expired = if time == 0 { Expired::default() } else { state.take_expired(time) };
        let changes = std::mem::take(&mut state.counts_mut().changes);
        // While the disk works, others read.
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
        self.end(result);
    }

    /// The disk took it, or did not.
    fn end(&mut self, result: Result<(), WriteError>) {
        match result {
            Ok(()) => self.succeed(),
            Err(e) => self.fail(&self.opening.told(&e)),
        }
    }

    /// Tells others what is on disk now.
    fn share(&self) {
        if let Some(loaded) = self.shared.condition.blocking_read().readable() {
            self.shared.tell(loaded);
        }
    }

    fn fail(&mut self, reason: &str) {
        if let Condition::Open(loaded) = &*self.shared.condition.blocking_read()
            && matches!(&loaded.state, State::Server(server) if server.peer_check.is_complete())
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
        self.set(failed(None));
        match self.opening.open_overlay() {
            Ok(loaded) => self.set(failed(Some(Box::new(loaded)))),
            Err(e) => log::error!("{e}; nothing can be counted or read"),
        }
        self.share();
    }

    fn set(&self, condition: Condition) {
        *self.shared.condition.blocking_write() = condition;
    }

    /// Tries after a while whether the disk takes something again: all that is not on it.
    fn reopen_if_due(&mut self) {
        match &mut *self.shared.condition.blocking_write() {
            Condition::Failed { retry_at, readable, reason } if Instant::now() >= *retry_at => {
                if let Err(e) = room::try_out(&self.opening.directory) {
                    (*retry_at, *reason) = (Instant::now() + RETRY_AFTER, self.opening.told(&e));
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

    /// Writes all down, and lets go of it.
    fn shut_down(&mut self) -> Result<(), LedgerError> {
        self.shared.closed.store(true, Ordering::Release);
        self.checkpoint(0);
        let outcome = self.outcome();
        // Handles may outlive the writer; neither file nor memory must stay with them.
        self.shared.db.store(None);
        let reason = LedgerError::Closed.to_string();
        self.set(Condition::Failed { reason, retry_at: Instant::now(), readable: None });
        self.shared.busy.end();
        outcome
    }
}

impl Opening {
    /// An error of the disk, with the ledger's path and the remedy.
    fn told(&self, error: &WriteError) -> String {
        error.at(&self.directory.join(FILE_NAME))
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a start has to read again is bounded, in reports and in bytes of steps.
    #[test]
    fn a_checkpoint_comes_before_there_is_too_much_to_read_again() {
        for (role, most) in [(Role::Site, 20_000), (Role::Cache, 20_000), (Role::Server, 1_000_000)] {
            assert!(!is_much(role, most - 1, 0) && is_much(role, most, 0), "{role:?}");
            assert!(!is_much(role, 0, (32 << 20) - 1) && is_much(role, 0, 32 << 20), "{role:?}");
        }
    }
}
