// SPDX-License-Identifier: GPL-3.0-or-later
//! The streams that are open: how many each reader may have, how much may wait for all of them, and whose turn it is to read
//! the disk.

use super::blocks::{Block, Blocks, Key};
use super::limits::Who;
use super::settings::Limits;
use crate::activity::Load;
use crate::net::{Budget, Sender, streamed};
use axum::body::Body;
use bulkmark_ledger::{Behind, LedgerError};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Readings of the disk for streams at a time: with more of them, what answers reports and questions would come to nothing on a
/// small machine.
const READS: usize = 2;

/// Of these, for one reader, however many streams it has.
const READS_OF_ONE: usize = 1;

/// All streams of a server.
pub(super) struct Streams {
    most: usize,
    places: Mutex<HashMap<Who, Account>>,
    /// Bytes that wait for all readers, and for those without a token.
    all: Budget,
    strangers: Budget,
    reads: Arc<Semaphore>,
    blocks: Blocks,
    load: Arc<Load>,
}

/// What is open for one reader.
struct Account {
    open: usize,
    turn: Arc<Semaphore>,
}

/// A stream's place, until dropped.
pub(super) struct Place {
    streams: Arc<Streams>,
    who: Who,
    /// By which the reader's streams take turns.
    turn: Arc<Semaphore>,
}

impl Streams {
    pub(super) fn new(limits: &Limits, load: Arc<Load>) -> Arc<Self> {
        let bytes = limits.stream_megabytes.get() << 20;
        Arc::new(Self {
            most: limits.streams_per_client.get(),
            places: Mutex::default(),
            all: Budget::new(bytes),
            // So that whoever has a token finds room, however many there are without one.
            strangers: Budget::new(bytes / 2),
            reads: Arc::new(Semaphore::new(READS)),
            blocks: Blocks::default(),
            load,
        })
    }

    /// A place for one more; none when this reader has as many as it may have.
    pub(super) fn enter(self: &Arc<Self>, who: Who) -> Option<Place> {
        let mut places = self.places.lock();
        let new = || Account { open: 0, turn: Arc::new(Semaphore::new(READS_OF_ONE)) };
        let account = places.entry(who.clone()).or_insert_with(new);
        if account.open >= self.most {
            return None;
        }
        account.open += 1;
        self.load.stream_begins();
        Some(Place { streams: Arc::clone(self), who, turn: Arc::clone(&account.turn) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.streams.load.stream_ends();
        let mut places = self.streams.places.lock();
        if let Some(account) = places.get_mut(&self.who) {
            account.open -= 1;
            if account.open == 0 {
                places.remove(&self.who);
            }
        }
        if places.is_empty() {
            places.shrink_to_fit();
            self.streams.blocks.clear();
        }
    }
}

impl Place {
    /// A body for this stream, and the end by which it is filled.
    pub(super) fn body(&self) -> (Sender, Body) {
        let mut budgets = vec![self.streams.all.clone()];
        if self.who.is_stranger() {
            budgets.insert(0, self.streams.strangers.clone());
        }
        streamed(budgets)
    }

    /// Notes a stream that was given up, since its reader does not read.
    pub(super) fn stalled(&self) {
        log::info!("a stream of {} is closed: its reader takes nothing", self.who);
        self.streams.load.stream_stalled();
    }

    /// Reads from disk beside the threads that answer, when it is this reader's turn.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Behind> + Send + 'static,
    ) -> Result<T, Behind> {
        let internal = || LedgerError::Unavailable("internal error".to_owned());
        let turn = self.turn.acquire().await.map_err(|_| internal())?;
        let read = Arc::clone(&self.streams.reads).acquire_owned().await.map_err(|_| internal())?;
        // A reading that was begun goes on when nobody waits for it any more, and counts for as long as it does.
        let result = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(read);
            result
        });
        let result = result.await.map_err(|_| internal())?;
        drop(turn);
        result
    }

    /// A block that others may want, too; `make` reads it where it is not at hand, and makes none where there is none yet.
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
            // Somebody else may have read it meanwhile.
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
