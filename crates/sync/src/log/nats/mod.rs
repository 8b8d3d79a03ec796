// SPDX-License-Identifier: GPL-3.0-or-later
//! A log on NATS JetStream.
//!
//! Batches, steps, parts of snapshots, the list of clients and state reports are five streams. A client's name is part of the subject to
//! which only its account can publish. No consumer is needed: existing messages are fetched by number from any node, and new ones arrive
//! live. `connection` has requests and answers, `api` JetStream's formats of them; `follow` and `snapshot` read; `clients` is the list of
//! clients; `streams`, `accounts` and `setup` prepare the log.

mod accounts;
mod api;
mod clients;
mod connection;
mod follow;
mod names;
mod setup;
mod snapshot;
mod state_reports;
mod streams;

pub use follow::Follower;
pub use setup::{new_nkey, setup};
pub use snapshot::Parts;

use super::settings::Settings;
use super::types::{Batch, BatchId, Client, Ends, LogError, Part, Place, StateReport, Step};
use super::{Log, check_name};
use crate::state::Link;
use api::{Appended, Stored};
use async_nats::HeaderMap;
use bulkmark_ledger::random_bytes;
use clients::Listed;
use connection::Connection;
use names::{ANSWER, BATCHES, CLIENTS, STEPS};
use sha2::{Digest as _, Sha256};
use state_reports::OwnName;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// A fleet's log in NATS.
pub struct Nats {
    connection: Arc<Connection>,
    /// The subject of own batches; none if this machine does not report.
    reports: Option<String>,
    own_name: OwnName,
    /// Part of the ids of messages, so that nobody else can predict them and pass off a message as a repetition.
    secret: [u8; 16],
}

impl Nats {
    /// Reads the configured files, and starts to connect; errors of the connection appear in the first answer.
    ///
    /// # Errors
    /// When a setting or a file cannot be used.
    pub async fn new(settings: &Settings, link: Arc<Link>) -> Result<Self, LogError> {
        if let Some(name) = &settings.name {
            check_name(name).map_err(|what| LogError::Setup(format!("name: {what}")))?;
        }
        let secret = random_bytes().map_err(|e| LogError::Setup(e.to_string()))?;
        let reports = settings.reporter().map(names::reports_of);
        let own_name = OwnName::of(settings)?;
        Ok(Self { connection: Arc::new(Connection::new(settings, link).await?), reports, own_name, secret })
    }

    fn id_of(&self, id: BatchId) -> String {
        let mut hash = Sha256::new();
        hash.update(self.secret);
        hash.update(id.spool.to_le_bytes());
        hash.update(id.number.to_le_bytes());
        hash.update(id.attempt.to_le_bytes());
        hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Log for Nats {
    type Batches = Follower<Batch>;
    type Steps = Follower<Step>;
    type Snapshot = Parts;

    fn link(&self) -> &Arc<Link> {
        self.connection.link()
    }

    async fn ends(&self) -> Result<Ends, LogError> {
        let batches = api::state(&self.connection, BATCHES.name, None).await?;
        let steps = api::state(&self.connection, STEPS.name, None).await?;
        let version = steps.config["metadata"]["bulkmark"].as_str();
        if version.is_some_and(|version| version != names::VERSION) {
            return Err(LogError::NotSetUp(format!(
                "the log was set up for another version of bulkmark: found {version:?}, expected {:?}",
                names::VERSION
            )));
        }
        self.link().compare_clock(seconds(steps.now));
        Ok(Ends {
            made: batches.made,
            batches: Place(batches.last),
            steps: Place(steps.last),
            first_step: Place(steps.first),
        })
    }

    async fn first_batch(&self) -> Result<Place, LogError> {
        Ok(Place(api::state(&self.connection, BATCHES.name, None).await?.first))
    }

    async fn append(&self, id: BatchId, bytes: Vec<u8>) -> Result<Place, LogError> {
        let missing =
            || LogError::Setup("client = is missing: as whom this machine's reports are known".to_owned());
        let subject = self.reports.as_deref().ok_or_else(missing)?;
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", self.id_of(id));
        headers.insert("Nats-Expected-Stream", BATCHES.name);
        match api::append(&self.connection, subject, &headers, bytes.into()).await? {
            Appended::At(place) => Ok(place),
            Appended::TooLate => Err(LogError::Unavailable("the log refuses the batch's place".to_owned())),
        }
    }

    async fn batches(&self, after: Place) -> Result<Self::Batches, LogError> {
        Follower::new(&self.connection, &BATCHES, after, false, batch).await
    }

    async fn steps(&self, after: Place) -> Result<Self::Steps, LogError> {
        Follower::new(&self.connection, &STEPS, after, true, step).await
    }

    async fn append_step(&self, after: Place, bytes: Vec<u8>) -> Result<Option<Place>, LogError> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Sequence", after.0.to_string());
        headers.insert("Nats-Expected-Stream", STEPS.name);
        match api::append(&self.connection, STEPS.subjects, &headers, bytes.into()).await? {
            Appended::At(place) => Ok(Some(place)),
            Appended::TooLate => Ok(None),
        }
    }

    async fn snapshot(&self) -> Result<Self::Snapshot, LogError> {
        snapshot::read(&self.connection).await
    }

    async fn newest_snapshot(&self) -> Result<Option<u64>, LogError> {
        snapshot::number(&self.connection).await
    }

    async fn put_snapshot(&self, parts: mpsc::Receiver<Option<Part>>) -> Result<Option<u64>, LogError> {
        snapshot::put(&self.connection, parts).await
    }

    async fn clients(&self) -> Result<Vec<Client>, LogError> {
        let list = api::last_of(&self.connection, CLIENTS.name, CLIENTS.subjects, ANSWER).await?;
        let missing =
            || LogError::NotSetUp("the log has no list of clients; see bulkmark fleet setup".to_owned());
        let list: Vec<Listed> = serde_json::from_slice(&list.ok_or_else(missing)?.payload)
            .map_err(|e| LogError::Unavailable(format!("the log's list of clients cannot be read: {e}")))?;
        Ok(list.into_iter().map(Client::from).collect())
    }

    async fn aggregators(&self) -> Result<Vec<String>, LogError> {
        Ok(state_reports::aggregators(&self.connection).await?.into_iter().map(|one| one.name).collect())
    }

    async fn publish_state(&self, report: Vec<u8>) -> Result<(), LogError> {
        state_reports::publish(&self.connection, &self.own_name, report).await
    }

    async fn state_reports(&self) -> Result<Vec<StateReport>, LogError> {
        state_reports::read(&self.connection).await
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Converts a message of the stream of batches; none if its subject names no client.
fn batch(stored: Stored) -> Option<Batch> {
    let client = stored.subject.strip_prefix("bulkmark.reports.")?.to_owned();
    check_name(&client).ok()?;
    let at = seconds(stored.at);
    Some(Batch { place: stored.place, client, at, bytes: stored.payload.into() })
}

#[expect(clippy::unnecessary_wraps, reason = "a reader's function may skip a message")]
fn step(stored: Stored) -> Option<Step> {
    Some(Step { place: stored.place, bytes: stored.payload.into() })
}
