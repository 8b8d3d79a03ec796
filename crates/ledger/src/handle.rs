// SPDX-License-Identifier: GPL-3.0-or-later
//! The handle of the ledger.

mod peers;
mod user_reports;

use crate::disk::errors::OpenError;
use crate::disk::read::Reader;
use crate::disk::schema::FileFormat;
use crate::errors::LedgerError;
use crate::random::random;
use crate::shared::Shared;
use crate::status::Status;
use crate::writer::{Answer, INTERNAL, Opening, Request, Writer};
use bulkmark_counts::history::refusal::Refusal;
use bulkmark_counts::history::update::Update;
use bulkmark_counts::history::vector::{Origin, Vector};
use bulkmark_counts::settings::Role;
use bulkmark_counts::settings::Settings;
use bulkmark_counts::state::assembly::Assembly;
use bulkmark_counts::state::cache::Cache;
use bulkmark_counts::state::limited::Limits;
use bulkmark_counts::state::merged::Applied;
use bulkmark_counts::state::receipts::{Receipt, Reporter};
use bulkmark_counts::state::report::Report;
use bulkmark_counts::state::report::RetryKey;
use bulkmark_counts::state::roles::{State, WrongRole};
use bulkmark_counts::state::server::{NotCounted, Server};
use bulkmark_counts::state::shares::Shares;
use bulkmark_counts::state::spool::Outgoing;
use bulkmark_types::{FederationKey, Signature};
use parking_lot::Mutex;
use redb::Database;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

mod bulk;
mod fleet;

pub use bulk::BulkChanges;
pub use fleet::FleetBatch;

/// Requests that may wait. Each session of the milter has one at most, so this bound is never reached first.
const QUEUE: usize = 8192;

/// Returns a random number that names a new origin or spool.
pub(super) fn name() -> Result<u64, LedgerError> {
    random().map_err(|e| LedgerError::Unavailable(e.to_string()))
}

/// Signals changes of the version vector. The vector itself cannot be borrowed through it: that would hold up the writer.
pub struct VectorChanges(watch::Receiver<Arc<Vector>>);

impl VectorChanges {
    /// Marks the present state as seen.
    pub fn mark_unchanged(&mut self) {
        self.0.mark_unchanged();
    }

    /// Waits until the state differs from the one last seen. Returns false when the ledger was closed.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// A handle of the ledger; clones share it.
#[derive(Clone)]
pub struct Ledger {
    requests: SyncSender<Request>,
    pub(super) shared: Arc<Shared>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Ledger {
    /// Opens the ledger in `directory`, or creates one there, and starts its writer.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        directory: &Path,
        role: Role,
        settings: &Settings,
        key: &FederationKey,
    ) -> Result<Self, OpenError> {
        let mut settings = settings.clone();
        settings.federation.key_id = key.id();
        let parameters = (key.id(), settings.window.as_secs());
        let opening = Opening { directory: directory.to_owned(), role, settings, key: key.clone() };
        let loaded = opening.open()?;
        let shared = Arc::new(Shared::new(loaded, parameters));
        let (requests, receiver) = sync_channel(QUEUE);
        let writer = Writer::new(opening, Arc::clone(&shared));
        let thread = thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || writer.run(&receiver))
            .map_err(|reason| OpenError::Io { path: directory.to_owned(), reason })?;
        Ok(Self { requests, shared, thread: Arc::new(Mutex::new(Some(thread))) })
    }

    /// Adds `report` and returns the counts after it: of its signatures and of those that it only looks up. With
    /// [`Durability::Strict`](bulkmark_counts::settings::Durability::Strict) the answer comes when the report is on disk.
    ///
    /// # Errors
    /// If there is no count; then nothing was added.
    pub async fn report(&self, report: Report) -> Result<Vec<u32>, LedgerError> {
        self.ask_role(move |state| state.report(&report)).await
    }

    /// Returns the count of `signature` at the time `now`.
    ///
    /// # Errors
    /// If there is no count.
    pub async fn count(&self, signature: Signature, now: u64) -> Result<u32, LedgerError> {
        self.read(move |state| state.count(signature, now)).await
    }

    /// Returns the counts of `signatures` at the time `now`, each with its parts.
    ///
    /// # Errors
    /// If there are no counts.
    pub async fn shares(&self, signatures: Vec<Signature>, now: u64) -> Result<Vec<Shares>, LedgerError> {
        self.query(move |state| signatures.iter().map(|&signature| state.shares(signature, now)).collect())
            .await
    }

    /// Records that the message reported under `keys` was refused temporarily: it will come again.
    ///
    /// # Errors
    /// If the record is not on disk.
    pub async fn record_refused(&self, keys: Vec<RetryKey>, now: u64) -> Result<(), LedgerError> {
        self.ask_role(move |state| state.remember(keys, now)).await
    }

    /// Whether any refused message is remembered; if not, reports need no keys.
    #[must_use]
    pub fn remembers_refused(&self) -> bool {
        self.shared.remembered.load(Ordering::Relaxed) > 0
    }

    /// Counts a client's batch of reports once, however often it arrives. Reports beyond the `limits` of the client's influence are
    /// ignored.
    ///
    /// # Errors
    /// If it is not on disk; then it was not counted. The inner error: its number is too low, the client's quota is used up, or it has too
    /// many spools.
    pub async fn take_batch(
        &self,
        reporter: Reporter,
        number: u64,
        reports: Vec<(Signature, u32)>,
        limits: Option<Limits>,
        now: u64,
    ) -> Result<Result<Receipt, NotCounted>, LedgerError> {
        let new = Origin(if limits.is_some() { name()? } else { 0 });
        self.ask_server(move |server| server.take_batch(reporter, number, &reports, limits, now, new)).await
    }

    /// Withdraws all reports of a limited client, here and, through the updates, everywhere. Returns false if there are none.
    ///
    /// # Errors
    /// If the withdrawal is not on disk; then the reports still count.
    pub async fn withdraw(&self, client: String, now: u64) -> Result<bool, LedgerError> {
        self.ask_server(move |server| server.withdraw(&client, now)).await
    }

    /// Returns the next batch of own reports for this upstream server, and the spool's number: a batch that the server has not
    /// answered, or a `new` one. The batch is on disk. The first one after a start is empty if no batch is open: the server answers
    /// it with later numbers if this ledger is an old copy.
    ///
    /// # Errors
    /// If it could not be written.
    pub async fn next_batch(
        &self,
        upstream: String,
        new: bool,
    ) -> Result<Option<(u64, Outgoing)>, LedgerError> {
        self.ask_cache(move |cache| cache.next_batch(&upstream, new)).await
    }

    /// Drops a batch that this upstream server will never accept.
    ///
    /// # Errors
    /// If that could not be written.
    pub async fn drop_batch(&self, upstream: String, number: u64) -> Result<(), LedgerError> {
        self.ask_cache(move |cache| cache.drop_batch(&upstream, number)).await
    }

    /// Returns the numbers of the batches that this upstream server counted and whose update has not come yet.
    ///
    /// # Errors
    /// If the ledger is not available.
    pub async fn expected(&self, upstream: String) -> Result<Vec<u64>, LedgerError> {
        self.query(move |state| state.spool().map_or_else(Vec::new, |spool| spool.expected(&upstream))).await
    }

    /// Drops those of these `expected` batches that their server forgot because it was restored from an old copy: the server reported
    /// the versions in `vector` after it had sent their receipts.
    ///
    /// # Errors
    /// If that could not be written.
    pub async fn drop_forgotten(&self, expected: Vec<u64>, vector: Vector) -> Result<(), LedgerError> {
        self.ask_cache(move |cache| cache.drop_forgotten(&expected, &vector)).await
    }

    /// Begins a spool with another number, because this upstream server knows later batches than the one numbered `known`: the ledger
    /// was restored from an old copy, and its numbers were used already. Reports that were in the spool when it was opened may have
    /// been counted, and are dropped. Returns their number; `None`, and no new spool, if the batch was for a fleet whose counts this
    /// server has.
    ///
    /// # Errors
    /// If that could not be written, or there is no random number.
    pub async fn renew_spool(&self, upstream: String, known: u64) -> Result<Option<u64>, LedgerError> {
        let new = name()?;
        self.ask_cache(move |cache| cache.renew_spool(&upstream, known, new)).await
    }

    /// Records where this upstream server counted a batch.
    ///
    /// # Errors
    /// If it could not be written; then the batch is sent again.
    pub async fn acknowledge(
        &self,
        upstream: String,
        number: u64,
        receipt: Receipt,
    ) -> Result<(), LedgerError> {
        self.ask_cache(move |cache| cache.acknowledge(&upstream, number, receipt)).await
    }

    /// Drops own reports that no server accepted for too long, or that are too many. Returns the number of lost reports.
    ///
    /// # Errors
    /// If that could not be written.
    pub async fn trim_spool(&self, now: u64) -> Result<u64, LedgerError> {
        self.ask_cache(move |cache| cache.trim_spool(now)).await
    }

    /// Applies an update; `bytes` is its encoded form.
    ///
    /// # Errors
    /// If it is not on disk; the inner error if it cannot be applied.
    pub async fn apply(
        &self,
        update: Update,
        bytes: Arc<[u8]>,
        now: u64,
    ) -> Result<Result<Applied, Refusal>, LedgerError> {
        let new = Origin(name()?);
        let work = move |state: &mut State| match state {
            State::Cache(cache) => Ok(cache.apply(&update, bytes, now)),
            State::Server(server) => Ok(server.apply(&update, bytes, now, new)),
            State::Site(_) => Err(WrongRole),
        };
        self.ask_role(work).await
    }

    /// Replaces the counts of others by a received snapshot, unless that is a step back.
    ///
    /// # Errors
    /// If it is not on disk; the inner error if the snapshot is refused.
    pub async fn adopt(&self, assembly: Assembly) -> Result<Result<(), Refusal>, LedgerError> {
        let snapshot = assembly.into_counts();
        let work = move |state: &mut State| match state {
            State::Cache(cache) => Ok(cache.adopt(snapshot, false)),
            State::Server(server) => Ok(server.adopt(snapshot)),
            State::Site(_) => Err(WrongRole),
        };
        self.ask_role(work).await
    }

    /// Adopts the snapshot of a server whose history differs from the one known here ([`Refusal::Fork`]) unchanged: counts that the
    /// server forgot are lost. Only for a milter, whose counts of others all come from there.
    ///
    /// # Errors
    /// If it is not on disk; the inner error if the snapshot is refused.
    pub async fn adopt_fork(&self, assembly: Assembly) -> Result<Result<(), Refusal>, LedgerError> {
        let snapshot = assembly.into_counts();
        self.ask_cache(move |cache| cache.adopt(snapshot, true)).await
    }

    /// Returns the status of the ledger. Estimates of fill and false bulk, which read some cells, need a `threshold`.
    ///
    /// # Errors
    /// If the ledger is not available.
    pub async fn status(&self, threshold: Option<u32>) -> Result<Status, LedgerError> {
        self.query(move |state| Status::of(state, threshold)).await
    }

    /// Returns the format of its file.
    #[must_use]
    pub fn format(&self) -> FileFormat {
        FileFormat::written(self.fleet().version > 0)
    }

    /// Whether the last write to disk succeeded. After a failure the ledger tries again every five seconds.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        !self.shared.failed.load(Ordering::Relaxed)
    }

    /// Returns why the ledger is not writable, as far as that is known without waiting for the writer.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let condition = self.shared.condition.try_read().ok()?;
        let outcome = condition.outcome().err()?;
        Some(outcome.to_string())
    }

    /// Whether the ledger counts: its disk can be read and written.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.is_writable() && self.shared.db.load().is_some()
    }

    /// Returns the time that the writer has spent on its present piece of work: a commit, a checkpoint, or requests. Zero while it
    /// waits for work. A hanging disk shows only here: requests that wait for it keep waiting.
    #[must_use]
    pub fn busy_for(&self) -> Duration {
        self.shared.busy.elapsed()
    }

    /// Whether the present piece of work waits for the disk. If not, long requests keep the processor busy.
    #[must_use]
    pub fn is_busy_with_disk(&self) -> bool {
        self.shared.busy.is_of_disk()
    }

    /// Returns the version up to which each origin is counted and on disk.
    #[must_use]
    pub fn vector(&self) -> Arc<Vector> {
        self.shared.vector.borrow().clone()
    }

    /// Signals every change of [`vector`](Self::vector).
    #[must_use]
    pub fn vector_changes(&self) -> VectorChanges {
        VectorChanges(self.shared.vector.subscribe())
    }

    /// Returns a reader of the data on disk, beside the writer.
    ///
    /// # Errors
    /// If the disk failed.
    pub fn reader(&self) -> Result<Reader, LedgerError> {
        Ok(Reader::new(self.disk()?, self.shared.own.load_full()))
    }

    fn disk(&self) -> Result<Arc<Database>, LedgerError> {
        let db = self.shared.db.load_full();
        db.ok_or_else(|| LedgerError::Unavailable("the ledger's disk failed".to_owned()))
    }

    /// Writes everything to disk and stops the writer.
    ///
    /// # Errors
    /// If the last commit failed.
    pub async fn close(&self) -> Result<(), LedgerError> {
        let result = self.send(Request::Close).await;
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        result
    }

    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.send(|answer| Request::Work(Box::new(move |state| answered(state.map(work), answer)))).await
    }

    /// For changes that only some roles can make.
    pub(super) async fn ask_role<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut State) -> Result<T, WrongRole> + Send + 'static,
    ) -> Result<T, LedgerError> {
        Ok(self.ask(work).await??)
    }

    /// For changes of a milter whose counts come from servers or a fleet.
    pub(super) async fn ask_cache<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Cache) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.ask_role(move |state| state.cache().map(work)).await
    }

    /// For changes of a server.
    pub(super) async fn ask_server<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Server) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.ask_role(move |state| state.server().map(work)).await
    }

    /// Reads counts beside the writer, which may be waiting for the disk. The newest reports may not be on disk yet.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        if let Some(loaded) = self.shared.condition.read().await.readable() {
            return Ok(read(&loaded.state));
        }
        // The writer may be reading the file again; if not, it knows why there are no counts.
        self.query(read).await
    }

    /// Reads a state of which everything is on disk.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.send(|answer| Request::Query(Box::new(move |state| answered(state.map(query), answer)))).await
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
        // The writer drops an answer if it survived a panic, or if it has ended.
        answered.await.unwrap_or_else(|_| match self.shared.closed.load(Ordering::Acquire) {
            true => Err(LedgerError::Closed),
            false => Err(LedgerError::Unavailable(INTERNAL.to_owned())),
        })
    }
}

/// Sends the result once it is known whether the disk has it.
fn answered<T: Send + 'static>(value: Option<T>, answer: oneshot::Sender<Result<T, LedgerError>>) -> Answer {
    // The caller may have gone away; nobody else needs the answer.
    Box::new(move |outcome| {
        let closed = || LedgerError::Unavailable("the ledger's disk failed".to_owned());
        drop(answer.send(outcome.clone().and_then(|()| value.ok_or_else(closed))));
    })
}

#[cfg(test)]
mod tests;
