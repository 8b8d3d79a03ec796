// SPDX-License-Identifier: GPL-3.0-or-later
//! The handle by which everybody reaches the ledger.

mod peers;
mod user_reports;

use crate::disk::errors::OpenError;
use crate::disk::read::Reader;
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

pub use bulk::BulkMoves;
pub use fleet::FleetBatch;

/// Requests that may wait. Each session of the milter has one at most, so this is never the bound that bites.
const QUEUE: usize = 8192;

/// A name for what is new.
pub(super) fn name() -> Result<u64, LedgerError> {
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
    pub(super) shared: Arc<Shared>,
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

    /// Adds `report` and returns the counts after it, of its signatures and of those that are asked for. With [`Durability::Strict`](bulkmark_counts::settings::Durability::Strict) the answer
    /// comes when it is on disk.
    ///
    /// # Errors
    /// When there is no count; then nothing was added.
    pub async fn report(&self, report: Report) -> Result<Vec<u32>, LedgerError> {
        self.ask_role(move |state| state.report(&report)).await
    }

    /// The count of `signature` at the time `now`.
    ///
    /// # Errors
    /// When there is no count.
    pub async fn count(&self, signature: Signature, now: u64) -> Result<u32, LedgerError> {
        self.read(move |state| state.count(signature, now)).await
    }

    /// The counts of `signatures` at the time `now`, and of what each is made up.
    ///
    /// # Errors
    /// When there are no counts.
    pub async fn shares(&self, signatures: Vec<Signature>, now: u64) -> Result<Vec<Shares>, LedgerError> {
        self.look(move |state| signatures.iter().map(|&signature| state.shares(signature, now)).collect())
            .await
    }

    /// Remembers that what was reported under `keys` was refused for the moment: it will come again.
    ///
    /// # Errors
    /// When it could not be written down.
    pub async fn refused(&self, keys: Vec<RetryKey>, now: u64) -> Result<(), LedgerError> {
        self.ask_role(move |state| state.remember(keys, now)).await
    }

    /// Whether any message is remembered as refused; if not, reports need no keys.
    #[must_use]
    pub fn remembers_refused(&self) -> bool {
        self.shared.remembered.load(Ordering::Relaxed) > 0
    }

    /// Counts a client's batch of reports, once, whatever the times that it comes. What is beyond the `limits` of its influence is
    /// left out.
    ///
    /// # Errors
    /// When it is not on disk; then it was not counted. The inner one when its number is too low, or its quota used up.
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

    /// Takes all back that a limited client brought, here and, through the updates, everywhere. False when there is nothing.
    ///
    /// # Errors
    /// When that is not on disk; then it is still counted.
    pub async fn withdraw(&self, client: String, now: u64) -> Result<bool, LedgerError> {
        self.ask_server(move |server| server.withdraw(&client, now)).await
    }

    /// The batch of own reports to send to this upstream server next, and the spool's number: one that it has not
    /// answered, or a `new` one. It is on disk. After a start the first one is empty where nothing is open: by it the server
    /// is asked whether it knows later batches, which says that this ledger is an old copy.
    ///
    /// # Errors
    /// When it could not be written down.
    pub async fn next_batch(
        &self,
        upstream: String,
        new: bool,
    ) -> Result<Option<(u64, Outgoing)>, LedgerError> {
        self.ask_cache(move |cache| cache.next_batch(&upstream, new)).await
    }

    /// Drops a batch that this upstream server will never take.
    ///
    /// # Errors
    /// When that could not be written down.
    pub async fn drop_batch(&self, upstream: String, number: u64) -> Result<(), LedgerError> {
        self.ask_cache(move |cache| cache.drop_batch(&upstream, number)).await
    }

    /// The batches that this upstream server counted and whose update is yet to come, by number.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn expected(&self, upstream: String) -> Result<Vec<u64>, LedgerError> {
        self.look(move |state| state.spool().map_or_else(Vec::new, |spool| spool.expected(&upstream))).await
    }

    /// Lets go of those of these `expected` batches that their server forgot, because it was restored from an old copy: it says that it is
    /// at `vector`, and did so after it had given their receipts.
    ///
    /// # Errors
    /// When that could not be written down.
    pub async fn drop_forgotten(&self, expected: Vec<u64>, vector: Vector) -> Result<(), LedgerError> {
        self.ask_cache(move |cache| cache.drop_forgotten(&expected, &vector)).await
    }

    /// Begins a spool of another number, for this upstream server knows later batches of the one of this number: the ledger
    /// was restored from an old copy, and its numbers were used already. What was in it when it was opened may have been
    /// counted, and is dropped. Returns the number of reports that were; none, and nothing begins, where the batch was for a fleet whose
    /// counts this server has.
    ///
    /// # Errors
    /// When that could not be written down, or there is no random number.
    pub async fn renew_spool(&self, upstream: String, known: u64) -> Result<Option<u64>, LedgerError> {
        let new = name()?;
        self.ask_cache(move |cache| cache.renew_spool(&upstream, known, new)).await
    }

    /// Remembers where this upstream server counted a batch.
    ///
    /// # Errors
    /// When it could not be written down; then the batch is sent again.
    pub async fn acknowledge(
        &self,
        upstream: String,
        number: u64,
        receipt: Receipt,
    ) -> Result<(), LedgerError> {
        self.ask_cache(move |cache| cache.acknowledge(&upstream, number, receipt)).await
    }

    /// Drops own reports that no server took for too long, or that are too many. Returns how many are lost.
    ///
    /// # Errors
    /// When that could not be written down.
    pub async fn trim_spool(&self, now: u64) -> Result<u64, LedgerError> {
        self.ask_cache(move |cache| cache.trim_spool(now)).await
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
        let work = move |state: &mut State| match state {
            State::Cache(cache) => Ok(cache.apply(&update, bytes, now)),
            State::Server(server) => Ok(server.apply(&update, bytes, now, new)),
            State::Site(_) => Err(WrongRole),
        };
        self.ask_role(work).await
    }

    /// Takes what came as a snapshot for the counts of others, if it is no step back.
    ///
    /// # Errors
    /// When it is not on disk; the inner one when it cannot be taken.
    pub async fn adopt(&self, assembly: Assembly) -> Result<Result<(), Refusal>, LedgerError> {
        let snapshot = assembly.into_counts();
        let work = move |state: &mut State| match state {
            State::Cache(cache) => Ok(cache.adopt(snapshot, false)),
            State::Server(server) => Ok(server.adopt(snapshot)),
            State::Site(_) => Err(WrongRole),
        };
        self.ask_role(work).await
    }

    /// Takes a snapshot of a server that said that its history is another than the one known here ([`Refusal::Fork`]), as it
    /// is: what that server forgot is gone. Only a milter does so, whose counts are all from there.
    ///
    /// # Errors
    /// When it is not on disk; the inner one when it cannot be taken.
    pub async fn adopt_fork(&self, assembly: Assembly) -> Result<Result<(), Refusal>, LedgerError> {
        let snapshot = assembly.into_counts();
        self.ask_cache(move |cache| cache.adopt(snapshot, true)).await
    }

    /// What can be said about it. Estimates of fill and false bulk, which read some cells, are made for a `threshold`
    /// only.
    ///
    /// # Errors
    /// When the ledger is not available.
    pub async fn status(&self, threshold: Option<u32>) -> Result<Status, LedgerError> {
        self.look(move |state| Status::of(state, threshold)).await
    }

    /// Whether the disk took what was written last. One that does not is tried again every five seconds.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        !self.shared.failed.load(Ordering::Relaxed)
    }

    /// Why it is not, as far as that can be told without waiting for the writer.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let condition = self.shared.condition.try_read().ok()?;
        let outcome = condition.outcome().err()?;
        Some(outcome.to_string())
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

    /// Whether the present piece of work waits for the disk. Another one takes the processor's time: what was asked of it is long.
    #[must_use]
    pub fn is_busy_with_disk(&self) -> bool {
        self.shared.busy.is_of_disk()
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
        Ok(Reader::new(self.disk()?, self.shared.own.load_full()))
    }

    fn disk(&self) -> Result<Arc<Database>, LedgerError> {
        let db = self.shared.db.load_full();
        db.ok_or_else(|| LedgerError::Unavailable("the ledger's disk failed".to_owned()))
    }

    /// Writes everything down and stops the writer.
    ///
    /// # Errors
    /// When the last commit failed.
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

    /// For what not all roles can do.
    pub(super) async fn ask_role<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut State) -> Result<T, WrongRole> + Send + 'static,
    ) -> Result<T, LedgerError> {
        Ok(self.ask(work).await??)
    }

    /// For a milter whose counts come from servers or a fleet.
    pub(super) async fn ask_cache<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Cache) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.ask_role(move |state| state.cache().map(work)).await
    }

    /// For a server.
    pub(super) async fn ask_server<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Server) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.ask_role(move |state| state.server().map(work)).await
    }

    /// For counts: read beside the writer, who may be waiting for the disk. What was counted last may not be on it yet.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        if let Some(loaded) = self.shared.condition.read().await.readable() {
            return Ok(read(&loaded.state));
        }
        // The file may be being read again, and the writer knows why where it is not.
        self.look(read).await
    }

    /// For what changes nothing, and is to tell what is on disk.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Result<T, LedgerError> {
        self.send(|answer| Request::Look(Box::new(move |state| answered(state.map(look), answer)))).await
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
        // An answer that is dropped is that of a panic which the writer survived, unless nobody is there any more.
        answered.await.unwrap_or_else(|_| match self.shared.closed.load(Ordering::Acquire) {
            true => Err(LedgerError::Closed),
            false => Err(LedgerError::Unavailable(INTERNAL.to_owned())),
        })
    }
}

/// Sends what was found, once it is known whether the disk has it.
fn answered<T: Send + 'static>(value: Option<T>, answer: oneshot::Sender<Result<T, LedgerError>>) -> Answer {
    // Whoever asked may have gone away; nobody else needs the answer.
    Box::new(move |outcome| {
        let closed = || LedgerError::Unavailable("the ledger's disk failed".to_owned());
        drop(answer.send(outcome.clone().and_then(|()| value.ok_or_else(closed))));
    })
}

#[cfg(test)]
mod tests;
