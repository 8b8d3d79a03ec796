// SPDX-License-Identifier: GPL-3.0-or-later
//! The handle by which everybody reaches the ledger.

use crate::ledger::busy::Busy;
use crate::ledger::disk::errors::OpenError;
use crate::ledger::disk::read::Reader;
use crate::ledger::errors::LedgerError;
use crate::ledger::history::refusal::Refusal;
use crate::ledger::history::update::Update;
use crate::ledger::history::vector::{Origin, Vector};
use crate::ledger::random::random;
use crate::ledger::settings::Role;
use crate::ledger::settings::Settings;
use crate::ledger::state::assembly::Assembly;
use crate::ledger::state::book::Book;
use crate::ledger::state::merged::Applied;
use crate::ledger::state::receipts::{Backwards, Receipt, Reporter};
use crate::ledger::state::report::Report;
use crate::ledger::state::retries::RetryKey;
use crate::ledger::state::shares::Shares;
use crate::ledger::state::spool::Outgoing;
use crate::ledger::status::Status;
use crate::ledger::writer::{Answer, Opening, Request, Shared, Work, Writer};
use crate::signature::{FederationKey, Signature};
use arc_swap::ArcSwapOption;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Requests that may wait. Each session of the milter has one at most, so this is never the bound that bites.
const QUEUE: usize = 8192;

/// A name for what is new.
fn name() -> Result<u64, LedgerError> {
    random().map_err(|e| LedgerError::Unavailable(e.to_string()))
}

/// Tells when the version vector moves. The vector itself cannot be borrowed through it: that would hold up the writer.
pub struct Moves(watch::Receiver<Arc<Vector>>);

impl Moves {
    /// Takes the present state for known.
    pub fn mark_unchanged(&mut self) {
        self.0.mark_unchanged();
    }

    /// Waits until it is another one than was known. False when the ledger was closed.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// A handle of the ledger; clones share it.
#[derive(Clone)]
pub struct Ledger {
    requests: SyncSender<Request>,
    shared: Arc<Shared>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Ledger {
    /// Opens the ledger in `directory`, or begins a new one there, and starts its writer.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        directory: &Path,
        role: Role,
        settings: &Settings,
        key: &FederationKey,
    ) -> Result<Self, OpenError> {
        let opening =
            Opening { directory: directory.to_owned(), role, settings: settings.clone(), key: key.clone() };
        let loaded = opening.open()?;
        let shared = Arc::new(Shared {
            remembered: AtomicUsize::new(0),
            db: ArcSwapOption::empty(),
            vector: watch::Sender::new(Arc::default()),
            origin: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            busy: Busy::new(),
        });
        let (requests, receiver) = sync_channel(QUEUE);
        let writer = Writer::new(opening, Arc::clone(&shared), loaded);
        let thread = thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || writer.run(&receiver))
            .map_err(|reason| OpenError::Io { path: directory.to_owned(), reason })?;
        Ok(Self { requests, shared, thread: Arc::new(Mutex::new(Some(thread))) })
    }

    /// Adds `report` and returns the counts after it, of its signatures and of those that are asked for. With [`Durability::Strict`](crate::ledger::settings::Durability::Strict) the answer
    /// comes when it is on disk.
    ///
    /// # Errors
    /// When there is no count; then nothing was added.
    pub async fn report(&self, report: Report) -> Result<Vec<u32>, LedgerError> {
        self.ask(move |book| book.report(&report)).await
    }

    /// The count of `signature` at the time `now`.
    ///
    /// # Errors
    /// When there is no count.
    pub async fn count(&self, signature: Signature, now: u64) -> Result<u32, LedgerError> {
        self.look(move |book| book.count(signature, now)).await
    }

    /// The counts of `signatures` at the time `now`, and of what each is made up.
    ///
    /// # Errors
    /// When there are no counts.
    pub async fn shares(&self, signatures: Vec<Signature>, now: u64) -> Result<Vec<Shares>, LedgerError> {
        self.look(move |book| signatures.iter().map(|&signature| book.shares(signature, now)).collect()).await
    }

    /// Remembers that what was reported under `keys` was refused for the moment: it will come again.
    ///
    /// # Errors
    /// When it could not be written down.
    pub async fn refused(&self, keys: Vec<RetryKey>, now: u64) -> Result<(), LedgerError> {
        self.ask(move |book| book.remember(keys, now)).await
    }

    /// Whether any message is remembered as refused; if not, reports need no keys.
    #[must_use]
    pub fn remembers_refused(&self) -> bool {
        self.shared.remembered.load(Ordering::Relaxed) > 0
    }

    /// Counts a client's batch of reports, once, whatever the times that it comes. Within a window the client brings no
    /// signature's count above `most`; what is beyond is left out.
    ///
    /// # Errors
    /// When it is not on disk; then it was not counted. The inner one when its number is too low.
    pub async fn take_batch(
        &self,
        reporter: Reporter,
        number: u64,
        reports: Vec<(Signature, u32)>,
        most: Option<u32>,
        now: u64,
    ) -> Result<Result<Receipt, Backwards>, LedgerError> {
        self.ask(move |book| book.take_batch(reporter, number, &reports, most, now)).await
    }

    /// The batch of own reports to send to this upstream server next, and the spool's number: one that it has not
    /// answered, or a `new` one. It is on disk.
    ///
    /// # Errors
    /// When it could not be written down.
    pub async fn next_batch(
        &self,
        upstream: String,
        new: bool,
    ) -> Result<Option<(u64, Outgoing)>, LedgerError> {
        self.ask(move |book| book.next_batch(&upstream, new).map(|batch| (book.spool_id, batch))).await
    }

    /// Drops a batch that a server will never take.
    ///
    /// # Errors
    /// When that could not be written down.
    pub async fn drop_batch(&self, number: u64) -> Result<(), LedgerError> {
        self.ask(move |book| book.drop_batch(number)).await
    }

    /// Begins a spool of another number: this one was restored from an old copy, and its numbers were used already. What
    /// it had sent to this server was counted, and is dropped.
    ///
    /// # Errors
    /// When that could not be written down, or there is no random number.
    pub async fn renew_spool(&self, upstream: String) -> Result<(), LedgerError> {
        let new = name()?;
        self.ask(move |book| book.renew_spool(new, &upstream)).await
    }

    /// Remembers where a batch was counted.
    ///
    /// # Errors
    /// When it could not be written down; then the batch is sent again.
    pub async fn acknowledge(&self, number: u64, receipt: Receipt) -> Result<(), LedgerError> {
        self.ask(move |book| book.acknowledge(number, receipt)).await
    }

    /// Drops own reports that no server took for too long, or that are too many. Returns how many are lost.
    ///
    /// # Errors
    /// When that could not be written down.
    pub async fn trim_spool(&self, now: u64) -> Result<u64, LedgerError> {
        self.ask(move |book| book.trim_spool(now)).await
    }

    /// Applies an update whose bytes are these.
    ///
    /// # Errors
    /// When it is not on disk; the inner one when it cannot be applied.
    pub async fn apply(
        &self,
        update: Update,
        bytes: Arc<[u8]>,
        now: u64,
    ) -> Result<Result<Applied, Refusal>, LedgerError> {
        let new = Origin(name()?);
        self.ask(move |book| book.apply(&update, bytes, now, new)).await
    }

    /// Takes what came as a snapshot for the counts of others.
    ///
    /// # Errors
    /// When it is not on disk; the inner one when it cannot be taken.
    pub async fn adopt(&self, assembly: Assembly) -> Result<Result<(), Refusal>, LedgerError> {
        self.ask(move |book| book.adopt(assembly.into_view())).await
    }

    /// What can be said about it. Estimates of fill and false bulk, which read some cells, are made for a `threshold`
    /// only.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn status(&self, threshold: Option<u32>) -> Result<Status, LedgerError> {
        self.look(move |book| Status::of(book, threshold)).await
    }

    /// Whether the disk took what was written last. One that does not is tried again every five seconds.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        !self.shared.failed.load(Ordering::Relaxed)
    }

    /// Whether it counts: its disk can be read and takes what is written.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.is_writable() && self.shared.db.load().is_some()
    }

    /// How long the thread that writes has been at one piece of work: a commit, a checkpoint, or what was asked of it. Zero
    /// while it waits for work. A disk that hangs shows here, and nowhere else: what waits for it waits on.
    #[must_use]
    pub fn busy_for(&self) -> Duration {
        self.shared.busy.elapsed()
    }

    /// How far each origin is counted and on disk.
    #[must_use]
    pub fn vector(&self) -> Arc<Vector> {
        self.shared.vector.borrow().clone()
    }

    /// Tells of every change of [`vector`](Self::vector).
    #[must_use]
    pub fn moves(&self) -> Moves {
        Moves(self.shared.vector.subscribe())
    }

    /// Reads what is on disk, beside the writer.
    ///
    /// # Errors
    /// When the disk failed.
    pub fn reader(&self) -> Result<Reader, LedgerError> {
        let db = self.shared.db.load_full();
        let origin = Origin(self.shared.origin.load(Ordering::Relaxed));
        db.map(|db| Reader::new(db, origin))
            .ok_or_else(|| LedgerError::Unavailable("the ledger's disk failed".to_owned()))
    }

    /// Writes everything down and stops the writer.
    ///
    /// # Errors
    /// When the last commit failed.
    pub async fn close(&self) -> Result<(), LedgerError> {
        let result = self.send(Request::Close).await;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        result
    }

    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Book) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.send(|answer| Request::Work(answered(work, answer))).await
    }

    /// For what changes nothing.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Book) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.send(|answer| Request::Look(answered(|book| look(book), answer))).await
    }

    async fn send<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, LedgerError>>) -> Request,
    ) -> Result<T, LedgerError> {
        let (answer, answered) = oneshot::channel();
        self.requests.try_send(request(answer)).map_err(|e| match e {
            TrySendError::Full(_) => LedgerError::Busy,
            TrySendError::Disconnected(_) => LedgerError::Closed,
        })?;
        answered.await.unwrap_or(Err(LedgerError::Closed))
    }
}

/// Work whose result is sent.
fn answered<T: Send + 'static>(
    work: impl FnOnce(&mut Book) -> T + Send + 'static,
    answer: oneshot::Sender<Result<T, LedgerError>>,
) -> Work {
    Box::new(move |book| {
        let value = book.map(work);
        // Whoever asked may have gone away; nobody else needs the answer.
        let send: Answer = Box::new(move |outcome| {
            let closed = || LedgerError::Unavailable("the ledger's disk failed".to_owned());
            drop(answer.send(outcome.clone().and_then(|()| value.ok_or_else(closed))));
        });
        send
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(signature: Signature, times: u32, now: u64) -> Report {
        Report { signatures: vec![signature], asked: Vec::new(), times, keys: Vec::new(), now }
    }

    #[tokio::test]
    async fn reports_are_counted_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let (settings, key) = (Settings::default(), FederationKey::public());
        let signature = Signature::from_bytes([9; 16]);
        let now = 1_800_000_000;
        for round in 0..3 {
            let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
            for i in 1..=5 {
                assert_eq!(ledger.report(report(signature, 1, now)).await, Ok(vec![round * 5 + i]));
            }
            ledger.close().await.unwrap();
            assert_eq!(ledger.count(signature, now).await, Err(LedgerError::Closed));
        }
        assert_eq!(
            super::super::read(directory.path(), &settings, &key, &[signature], now).unwrap()[0].total(),
            15
        );
    }

    /// Work that does not end shows while it lasts, and is gone with it.
    #[tokio::test]
    async fn tells_how_long_its_writer_is_busy() {
        let directory = tempfile::tempdir().unwrap();
        let (settings, key) = (Settings::default(), FederationKey::public());
        let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
        let (go, wait) = std::sync::mpsc::channel();
        let (begun, begins) = oneshot::channel();
        let held = ledger.look(move |_| {
            begun.send(()).unwrap();
            wait.recv().unwrap();
        });
        let watched = async {
            begins.await.unwrap();
            let mut longest = Duration::ZERO;
            while longest < Duration::from_millis(5) {
                assert!(ledger.busy_for() >= longest, "it began anew");
                longest = ledger.busy_for();
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
        };
        let (held, ()) = tokio::join!(held, watched);
        held.unwrap();
        while !ledger.busy_for().is_zero() {
            tokio::task::yield_now().await;
        }
        ledger.close().await.unwrap();
        assert!(ledger.busy_for().is_zero(), "a closed one has no work");
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
            let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
            for n in 0..300 {
                let times = if n == 0 { 1_000_000 } else { 1 };
                ledger.report(report(signature(n), times, now)).await.unwrap();
            }
            for n in 0..300 {
                let truth = round * if n == 0 { 1_000_000 } else { 1 };
                assert!(ledger.count(signature(n), now).await.unwrap() >= truth, "{n} in round {round}");
            }
            let before = ledger.count(signature(0), now).await.unwrap();
            ledger.close().await.unwrap();
            let after = super::super::read(directory.path(), &settings, &key, &[signature(0)], now).unwrap();
            assert_eq!(before, after[0].total());
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
            let ledger = Ledger::open(directory.path(), Role::Site, &settings, &key).unwrap();
            let counts = ledger.report(report(signature, 2, midnight)).await;
            assert_eq!(counts, Ok(vec![2 * (u32::try_from(n).unwrap() + 1)]));
            ledger.close().await.unwrap();
        }
    }
}
