// SPDX-License-Identifier: GPL-3.0-or-later
//! A log in PostgreSQL.
//!
//! `schema.sql` has its tables, and functions by which roles may write to them. `database` holds one connection (`session`, over `tls`)
//! with its `signals`; `append`, `follow`, `snapshot` and `engine` send statements; `setup` prepares the database.

mod append;
mod database;
mod engine;
mod error;
mod follow;
mod session;
mod setup;
mod signals;
mod snapshot;
mod tls;

pub use follow::{Batches, Steps};
pub use setup::setup;
pub use snapshot::Snapshot;

use super::Log;
use super::settings::Settings;
use super::types::{BatchId, Client, Ends, LogError, Part, Place, StateReport};
use crate::state::Link;
use append::Outbox;
use database::Database;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A log in PostgreSQL, over one connection that is made again when it is needed and lost.
#[derive(Clone)]
pub struct Postgres {
    database: Arc<Database>,
    outbox: Arc<Mutex<Outbox>>,
}

impl Postgres {
    /// Checks the configuration; connects later.
    ///
    /// # Errors
    /// When it is unusable.
    pub fn new(settings: &Settings, link: Arc<Link>) -> Result<Self, LogError> {
        Ok(Self { database: Arc::new(Database::new(settings, link)?), outbox: Arc::default() })
    }
}

impl Log for Postgres {
    type Batches = Batches;
    type Steps = Steps;
    type Snapshot = Snapshot;

    fn link(&self) -> &Arc<Link> {
        &self.database.link
    }

    async fn ends(&self) -> Result<Ends, LogError> {
        engine::ends(&self.database).await
    }

    async fn append(&self, id: BatchId, bytes: Vec<u8>) -> Result<Place, LogError> {
        append::append(&self.database, &self.outbox, id, bytes).await
    }

    async fn batches(&self, after: Place) -> Result<Batches, LogError> {
        Batches::after(&self.database, after).await
    }

    async fn first_batch(&self) -> Result<Place, LogError> {
        engine::first_batch(&self.database).await
    }

    async fn steps(&self, after: Place) -> Result<Steps, LogError> {
        Steps::after(&self.database, after).await
    }

    async fn append_step(&self, after: Place, bytes: Vec<u8>) -> Result<Option<Place>, LogError> {
        engine::append_step(&self.database, after, &bytes).await
    }

    async fn snapshot(&self) -> Result<Snapshot, LogError> {
        Snapshot::newest(&self.database).await
    }

    async fn newest_snapshot(&self) -> Result<Option<u64>, LogError> {
        snapshot::newest(&self.database).await
    }

    async fn put_snapshot(&self, parts: mpsc::Receiver<Option<Part>>) -> Result<Option<u64>, LogError> {
        snapshot::put(&self.database, parts).await
    }

    async fn clients(&self) -> Result<Vec<Client>, LogError> {
        engine::clients(&self.database).await
    }

    async fn aggregators(&self) -> Result<Vec<String>, LogError> {
        engine::aggregators(&self.database).await
    }

    async fn publish_state(&self, report: Vec<u8>) -> Result<(), LogError> {
        engine::publish_state(&self.database, &report).await
    }

    async fn end_stuck(&self) -> Result<Vec<String>, LogError> {
        engine::end_stuck(&self.database).await
    }

    async fn exposures(&self) -> Result<Vec<String>, LogError> {
        engine::exposures(&self.database).await
    }

    async fn state_reports(&self) -> Result<Vec<StateReport>, LogError> {
        engine::state_reports(&self.database).await
    }
}
