// SPDX-License-Identifier: GPL-3.0-or-later
//! The keeper: the one thread that owns counts and file, and the handle by which others reach it.

use super::errors::OpenError;
use super::format::Entry;
use super::retries::RetryKey;
use super::store::{self, Loaded};
use super::{Durability, Settings};
use crate::signature::{FederationKey, Signature};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Requests that may wait. Each session of the milter has one at most, so this is never the bound that bites.
const QUEUE: usize = 8192;

/// Reports in one commit at most; it bounds what waits for one fsync.
const BATCH: usize = 2048;

/// Reports in the journal after which a checkpoint replaces it: 720 kB to replay, and a checkpoint of at most one
/// generation's cells for so many messages.
const CHECKPOINT_AFTER: u64 = 20_000;

/// With fewer reports than that, a checkpoint follows this long after the last one.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(600);

/// How long a ledger whose disk failed is left alone before it is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// "I saw this signature": what a message adds to the ledger.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was seen.
    pub signature: Signature,
    /// How often; zero only asks.
    pub times: u32,
    /// For each time, who it was for, as far as the caller knows: those that were [refused](Ledger::refused) within
    /// the last hour are not counted again.
    pub keys: Vec<RetryKey>,
    /// The time, in seconds since 1970 (UTC).
    pub now: u64,
}

/// Why there is no count.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum LedgerError {
    /// The disk did not take it, or does not since a while.
    #[error("{0}")]
    Unavailable(String),
    /// 8,192 requests wait already.
    #[error("the ledger is overloaded")]
    Busy,
    /// It was closed.
    #[error("the ledger is closed")]
    Closed,
}

type Answer<T> = oneshot::Sender<Result<T, LedgerError>>;

enum Request {
    Report(Report, Answer<u32>),
    Refused(Vec<RetryKey>, u64, Answer<()>),
    Close(Answer<()>),
}

/// A handle of the ledger; clones share it.
#[derive(Clone)]
pub struct Ledger {
    requests: SyncSender<Request>,
    remembered: Arc<AtomicUsize>,
    thread: Arc<std::sync::Mutex<Option<JoinHandle<()>>>>,
}

impl Ledger {
    /// Opens the ledger in `directory`, or begins a new one there, and starts its keeper.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(directory: &Path, settings: &Settings, key: &FederationKey) -> Result<Self, OpenError> {
        let loaded = store::open(directory, settings, key)?;
        let (requests, receiver) = sync_channel(QUEUE);
        let remembered = Arc::new(AtomicUsize::new(loaded.retries.len()));
        let keeper = Keeper {
            directory: directory.to_owned(),
            settings: settings.clone(),
            key: key.clone(),
            state: State::Open(loaded),
            last_checkpoint: Instant::now(),
            uncommitted: Batch::default(),
            commit_due: None,
            recovering: false,
            remembered: Arc::clone(&remembered),
        };
        let io = |reason| OpenError::Io { path: directory.to_owned(), reason };
        let thread = thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || keeper.run(&receiver))
            .map_err(io)?;
        Ok(Self { requests, remembered, thread: Arc::new(std::sync::Mutex::new(Some(thread))) })
    }

    /// Adds `report` and returns the count after it. With [`Durability::Strict`] the answer comes when it is on disk.
    ///
    /// # Errors
    /// When there is no count; then nothing was added.
    pub async fn report(&self, report: Report) -> Result<u32, LedgerError> {
        self.ask(|answer| Request::Report(report, answer)).await
    }

    /// The count of `signature` at the time `now`.
    ///
    /// # Errors
    /// When there is no count.
    pub async fn count(&self, signature: Signature, now: u64) -> Result<u32, LedgerError> {
        self.report(Report { signature, times: 0, keys: Vec::new(), now }).await
    }

    /// Remembers that what was reported under `keys` was refused for the moment: it will come again.
    ///
    /// # Errors
    /// When it could not be written down.
    pub async fn refused(&self, keys: Vec<RetryKey>, now: u64) -> Result<(), LedgerError> {
        self.ask(|answer| Request::Refused(keys, now, answer)).await
    }

    /// Whether any message is remembered as refused; if not, reports need no keys.
    #[must_use]
    pub fn remembers_refused(&self) -> bool {
        self.remembered.load(Ordering::Relaxed) > 0
    }

    /// Writes everything down and stops the keeper.
    ///
    /// # Errors
    /// When the last commit failed.
    pub async fn close(&self) -> Result<(), LedgerError> {
        let result = self.ask(Request::Close).await;
        let thread = self.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        result
    }

    async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, LedgerError> {
        let (answer, answered) = oneshot::channel();
        self.requests.try_send(request(answer)).map_err(|e| match e {
            TrySendError::Full(_) => LedgerError::Busy,
            TrySendError::Disconnected(_) => LedgerError::Closed,
        })?;
        answered.await.unwrap_or(Err(LedgerError::Closed))
    }
}

enum State {
    Open(Loaded),
    /// The disk failed: the counts in memory were ahead of it and are gone.
    Failed {
        reason: String,
        retry_at: Instant,
    },
}

/// What waits for a commit.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    refused: Vec<(RetryKey, u64)>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.refused.is_empty()
    }
}

/// An answer that is ready to be sent once the commit succeeded.
enum Ready {
    Count(Answer<u32>, u32),
    Done(Answer<()>),
}

impl Ready {
    fn send(self, outcome: &Result<(), LedgerError>) {
        // Whoever asked may have gone away; nobody else needs the answer.
        match self {
            Self::Count(answer, count) => drop(answer.send(outcome.clone().map(|()| count))),
            Self::Done(answer) => drop(answer.send(outcome.clone())),
        }
    }
}

struct Keeper {
    directory: PathBuf,
    settings: Settings,
    key: FederationKey,
    state: State,
    last_checkpoint: Instant,
    /// Relaxed reports that were answered and are not on disk yet; empty between rounds when strict.
    uncommitted: Batch,
    commit_due: Option<Instant>,
    /// The disk failed, the file was read again, and nothing was written since.
    recovering: bool,
    remembered: Arc<AtomicUsize>,
}

impl Keeper {
    fn run(mut self, requests: &Receiver<Request>) {
        loop {
            let wait = self.next_due().saturating_duration_since(Instant::now());
            let first = match requests.recv_timeout(wait) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.shut_down(),
            };
            let round = first.into_iter().chain(std::iter::from_fn(|| requests.try_recv().ok())).take(BATCH);
            // A panic must not end the only thread that counts: it is treated as a failure of the disk.
            let close = catch_unwind(AssertUnwindSafe(|| self.round(round))).unwrap_or_else(|_| {
                self.uncommitted = Batch::default();
                self.fail("internal error in the ledger");
                None
            });
            if let Some(answer) = close {
                self.shut_down();
                let _ = answer.send(match self.state {
                    State::Open(_) => Ok(()),
                    State::Failed { reason, .. } => Err(LedgerError::Unavailable(reason)),
                });
                return;
            }
        }
    }

    fn next_due(&self) -> Instant {
        // Nothing is due to a failed ledger; the next request sees whether it can be opened again.
        if matches!(self.state, State::Failed { .. }) {
            return Instant::now() + RETRY_AFTER;
        }
        let checkpoint = self.last_checkpoint + CHECKPOINT_INTERVAL;
        self.commit_due.map_or(checkpoint, |due| due.min(checkpoint))
    }

    /// Applies what waits, commits it, answers. Returns whom to answer when the ledger is to be closed.
    fn round(&mut self, requests: impl Iterator<Item = Request>) -> Option<Answer<()>> {
        self.reopen_if_due();
        let mut ready = Vec::new();
        let mut close = None;
        let mut now = 0;
        for request in requests {
            match request {
                Request::Report(report, answer) => {
                    now = now.max(report.now);
                    let count = self.apply(&report);
                    ready.push(Ready::Count(answer, count));
                }
                Request::Refused(keys, at, answer) => {
                    now = now.max(at);
                    self.remember(keys, at);
                    ready.push(Ready::Done(answer));
                }
                Request::Close(answer) => close = Some(answer),
            }
        }
        let outcome = self.commit_if_due();
        for ready in ready {
            ready.send(&outcome);
        }
        self.checkpoint_if_due(now);
        close
    }

    fn apply(&mut self, report: &Report) -> u32 {
        let State::Open(loaded) = &mut self.state else { return 0 };
        let again = report.keys.iter().filter(|key| loaded.retries.contains(key, report.now)).count();
        let times = report.times.saturating_sub(u32::try_from(again).unwrap_or(u32::MAX));
        if times > 0 {
            let window = loaded.generations.window_at(report.now);
            let id = loaded.store.next() + self.uncommitted.entries.len() as u64;
            if let Err(e) = loaded.generations.add(window, id, report.signature, times) {
                self.fail(&format!("no memory for more signatures: {e}"));
                return 0;
            }
            self.uncommitted.entries.push(Entry { window, signature: report.signature, times });
        }
        loaded.generations.count(report.signature, report.now)
    }

    fn remember(&mut self, keys: Vec<RetryKey>, now: u64) {
        let State::Open(loaded) = &mut self.state else { return };
        for key in keys {
            loaded.retries.remember(key, now);
            self.uncommitted.refused.push((key, now));
        }
        self.remembered.store(loaded.retries.len(), Ordering::Relaxed);
    }

    fn commit_if_due(&mut self) -> Result<(), LedgerError> {
        if !self.uncommitted.is_empty() && self.settings.durability == Durability::Relaxed {
            let due = *self.commit_due.get_or_insert_with(|| Instant::now() + self.settings.commit_interval);
            if Instant::now() < due && self.uncommitted.entries.len() < BATCH {
                return self.status();
            }
        }
        self.commit();
        self.status()
    }

    fn status(&self) -> Result<(), LedgerError> {
        match &self.state {
            State::Open(_) => Ok(()),
            State::Failed { reason, .. } => Err(LedgerError::Unavailable(reason.clone())),
        }
    }

    fn commit(&mut self) {
        self.commit_due = None;
        let batch = std::mem::take(&mut self.uncommitted);
        if let State::Open(loaded) = &mut self.state
            && !batch.is_empty()
        {
            match loaded.store.append(&batch.entries, &batch.refused) {
                Ok(()) if std::mem::take(&mut self.recovering) => {
                    log::warn!("the ledger can be written again")
                }
                Ok(()) => (),
                Err(e) => self.fail(&e.to_string()),
            }
        }
    }

    fn checkpoint_if_due(&mut self, now: u64) {
        let State::Open(loaded) = &self.state else { return };
        let journalled = loaded.store.journalled();
        let elapsed = self.last_checkpoint.elapsed() >= CHECKPOINT_INTERVAL;
        if journalled >= CHECKPOINT_AFTER || elapsed && journalled > 0 {
            self.checkpoint(now);
        }
        if elapsed {
            self.last_checkpoint = Instant::now();
        }
    }

    /// `now` is zero when no request told the time; then nothing expires.
    fn checkpoint(&mut self, now: u64) {
        self.commit();
        let State::Open(Loaded { store, generations, retries }) = &mut self.state else { return };
        let (expired, forgotten) = if now == 0 {
            Default::default()
        } else {
            (generations.take_expired(now), retries.take_expired(now))
        };
        self.remembered.store(retries.len(), Ordering::Relaxed);
        let result = store.checkpoint(generations, &expired, &forgotten);
        self.last_checkpoint = Instant::now();
        if let Err(e) = result {
            self.fail(&e.to_string());
        }
    }

    fn fail(&mut self, reason: &str) {
        log::error!("{reason}; messages pass unjudged until the ledger can be written again");
        self.state = State::Failed { reason: reason.to_owned(), retry_at: Instant::now() + RETRY_AFTER };
    }

    /// After a failure the file is read again, since what is on disk is what was answered.
    fn reopen_if_due(&mut self) {
        let State::Failed { retry_at, .. } = &self.state else { return };
        if Instant::now() < *retry_at {
            return;
        }
        match store::open(&self.directory, &self.settings, &self.key) {
            Ok(loaded) => {
                self.remembered.store(loaded.retries.len(), Ordering::Relaxed);
                self.state = State::Open(loaded);
                self.recovering = true;
            }
            Err(e) => {
                self.state = State::Failed { reason: e.to_string(), retry_at: Instant::now() + RETRY_AFTER };
            }
        }
    }

    fn shut_down(&mut self) {
        self.checkpoint(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reports_are_counted_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (settings, key) = (Settings::default(), FederationKey::public());
        let signature = Signature::from_bytes([9; 16]);
        let now = 1_800_000_000;
        for round in 0..3 {
            let ledger = Ledger::open(directory.path(), &settings, &key).unwrap();
            for i in 1..=5 {
                let report = Report { signature, times: 1, keys: Vec::new(), now };
                assert_eq!(ledger.report(report).await, Ok(round * 5 + i));
            }
            ledger.close().await.unwrap();
            assert_eq!(ledger.count(signature, now).await, Err(LedgerError::Closed));
        }
        assert_eq!(store::read(directory.path(), &settings, &key, signature, now).unwrap(), 15);
    }

    /// A generation that outgrew its capacity many times over is the same after a restart, checkpointed or replayed.
    #[tokio::test]
    async fn slices_and_large_counts_survive_restarts() {
        let directory = tempfile::tempdir().unwrap();
        let key = FederationKey::public();
        let settings =
            Settings { capacity: std::num::NonZeroU32::MIN.saturating_add(9), ..Settings::default() };
        let signature = |n: u32| {
            let half = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            Signature::from_bytes(half.to_le_bytes())
        };
        let now = 1_800_000_000;
        for round in 1..=3u32 {
            let ledger = Ledger::open(directory.path(), &settings, &key).unwrap();
            for n in 0..300 {
                let times = if n == 0 { 1_000_000 } else { 1 };
                ledger
                    .report(Report { signature: signature(n), times, keys: Vec::new(), now })
                    .await
                    .unwrap();
            }
            for n in 0..300 {
                let truth = round * if n == 0 { 1_000_000 } else { 1 };
                assert!(ledger.count(signature(n), now).await.unwrap() >= truth, "{n} in round {round}");
            }
            let before = ledger.count(signature(0), now).await.unwrap();
            ledger.close().await.unwrap();
            let after = store::read(directory.path(), &settings, &key, signature(0), now).unwrap();
            assert_eq!(before, after);
        }
    }

    /// Windows of another length that begin at the same time are generations of their own.
    #[tokio::test]
    async fn another_window_length_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let key = FederationKey::public();
        let signature = Signature::from_bytes([9; 16]);
        let midnight = 20_000 * 86_400;
        for (n, hours) in [24, 12, 24, 6].into_iter().enumerate() {
            let settings = Settings { window: Duration::from_secs(hours * 3600), ..Settings::default() };
            let ledger = Ledger::open(directory.path(), &settings, &key).unwrap();
            let report = Report { signature, times: 2, keys: Vec::new(), now: midnight };
            assert_eq!(ledger.report(report).await, Ok(2 * (u32::try_from(n).unwrap() + 1)));
            ledger.close().await.unwrap();
        }
    }
}
