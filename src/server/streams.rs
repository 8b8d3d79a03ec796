// SPDX-License-Identifier: GPL-3.0-or-later
//! The open streams: the number for each reader, the bytes that wait for all of them, and turns for reading the disk.

use super::blocks::{Block, Blocks, Key};
use super::limits::Principal;
use super::settings::Limits;
use crate::activity::Load;
use crate::net::{Budget, Sender, streamed};
use axum::body::Body;
use bulkmark_ledger::{Behind, LedgerError};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Concurrent disk reads for streams: more would starve the answers to reports and questions on a small machine.
const READS: usize = 2;

/// Concurrent disk reads for one reader, however many streams it has.
const READS_OF_ONE: usize = 1;

/// All streams of a server.
pub(super) struct Streams {
    most: usize,
    places: Mutex<HashMap<Principal, Account>>,
    /// Budgets of bytes for all readers, and for anonymous ones.
    all: Budget,
    anonymous: Budget,
    reads: Arc<Semaphore>,
    blocks: Blocks,
    load: Arc<Load>,
}

/// The streams of one reader.
struct Account {
    open: usize,
    turn: Arc<Semaphore>,
}

/// A stream's place, until dropped.
pub(super) struct Place {
    streams: Arc<Streams>,
    principal: Principal,
    /// The turns of the reader's streams.
    turn: Arc<Semaphore>,
}

/// The memory of a body that is being received.
pub(super) struct Memory<'a> {
    _turn: SemaphorePermit<'a>,
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Streams {
    pub(super) fn new(limits: &Limits, load: Arc<Load>) -> Arc<Self> {
        let bytes = limits.stream_megabytes.get() << 20;
        Arc::new(Self {
            most: limits.streams_per_client.get(),
            places: Mutex::default(),
            all: Budget::new(bytes),
            // Readers with a token find room, however many anonymous ones there are.
            anonymous: Budget::new(bytes / 2),
            reads: Arc::new(Semaphore::new(READS)),
            blocks: Blocks::default(),
            load,
        })
    }

    /// Reserves a place for one more; none if this reader has reached its maximum.
    pub(super) fn enter(self: &Arc<Self>, principal: Principal) -> Option<Place> {
        let mut places = self.places.lock();
        let new = || Account { open: 0, turn: Arc::new(Semaphore::new(READS_OF_ONE)) };
        let account = places.entry(principal.clone()).or_insert_with(new);
        if account.open >= self.most {
            return None;
        }
        account.open += 1;
        self.load.stream_begins();
        Some(Place { streams: Arc::clone(self), principal, turn: Arc::clone(&account.turn) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.streams.load.stream_ends();
        let mut places = self.streams.places.lock();
        if let Some(account) = places.get_mut(&self.principal) {
            account.open -= 1;
            if account.open == 0 {
                places.remove(&self.principal);
            }
        }
        if places.is_empty() {
            places.shrink_to_fit();
            self.streams.blocks.clear();
        }
    }
}

impl Place {
    /// The reader.
    pub(super) const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Creates the body of this stream, and its sender.
    pub(super) fn body(&self) -> (Sender, Body) {
        streamed(self.budgets())
    }

    /// Waits for the memory of a request's body, which it has until the result is dropped. A reader has one body at a time: slow ones wait
    /// only for each other.
    pub(super) async fn memory(&self, bytes: usize) -> Option<Memory<'_>> {
        let turn = self.turn.acquire().await.ok()?;
        let mut permits = Vec::new();
        for budget in self.budgets() {
            permits.push(budget.take(u32::try_from(bytes).ok()?).await?);
        }
        Some(Memory { _turn: turn, _permits: permits })
    }

    /// The budgets of its bytes; that of anonymous readers comes first, so that they leave room in the other one.
    fn budgets(&self) -> Vec<Budget> {
        let anonymous = self.principal.is_anonymous().then(|| self.streams.anonymous.clone());
        anonymous.into_iter().chain([self.streams.all.clone()]).collect()
    }

    /// Records a stream that ended because its reader does not read.
    pub(super) fn stalled(&self) {
        log::info!("a stream of {} is closed: its reader does not read", self.principal);
        self.streams.load.stream_stalled();
    }

    /// Reads from disk on a separate thread, when it is this reader's turn.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Behind> + Send + 'static,
    ) -> Result<T, Behind> {
        let internal = || LedgerError::Unavailable("internal error".to_owned());
        let turn = self.turn.acquire().await.map_err(|_| internal())?;
        let read = Arc::clone(&self.streams.reads).acquire_owned().await.map_err(|_| internal())?;
        // A read that started continues without its caller, and counts as long as it runs.
        let result = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(read);
            result
        });
        let result = result.await.map_err(|_| internal())?;
        drop(turn);
        result
    }

    /// Returns a block from the cache; `make` reads it if it is not there, and returns none if it does not exist yet.
    pub(super) async fn block(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Option<Block>, Behind> + Send + 'static,
    ) -> Result<Option<Arc<Block>>, Behind> {
        if let Some(block) = self.streams.blocks.get(&key) {
            return Ok(Some(block));
        }
        let streams = Arc::clone(&self.streams);
        self.read(move || {
            // Another stream may have read it meanwhile.
            if let Some(block) = streams.blocks.get(&key) {
                return Ok(Some(block));
            }
            let Some(block) = make()?.map(Arc::new) else { return Ok(None) };
            streams.blocks.put(&key, Arc::clone(&block));
            Ok(Some(block))
        })
        .await
    }
}
