// SPDX-License-Identifier: GPL-3.0-or-later
//! A replicated log, by which a fleet's milters and aggregators communicate, in one order for all of them.
//!
//! It holds five things, as opaque bytes:
//!
//! - **batches** of reports, each with the client that the log authenticated (its account or role), not the one that it claims;
//! - **steps**, in one chain, made of the batches by aggregators. Each names the hash of the one before it, so two that follow the same one
//!   may both be there; readers take the first and ignore all others. The condition of [`Log::append_step`] only saves the losers' work;
//! - one **snapshot**: the sum of all steps so far;
//! - the **clients** that may report, and their limits;
//! - the last **state report** of each member, for an hour. Nothing relies on it: it is for people.
//!
//! Nothing relies on an acknowledgement. A milter keeps a batch until a step covers it, and appends it again until then. So a log
//! that loses what it acknowledged loses nothing for good.

mod members;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "postgres")]
pub mod postgres;
mod settings;
mod tls;
mod types;

pub use members::{Duty, Member, SetUp};
pub use settings::{Address, Engine, Host, Settings, check_name};
pub use tls::client_tls;
pub use types::{
    Batch, BatchId, Client, Ends, LogError, MAX_BYTES, MAX_STATE_REPORT, Part, Place, StateReport, Step,
};

use crate::state::Link;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::mpsc;

/// An engine that orders batches and steps, and keeps them.
///
/// All methods may be called concurrently, repeatedly after any error, and after any time. If a message is lost or late, the engine returns
/// an error within its own bound ([`LogError::Unavailable`]); the request may have been executed all the same.
pub trait Log: Send + Sync + 'static {
    /// Reads batches.
    type Batches: Reader<Item = Batch>;
    /// Reads steps.
    type Steps: Reader<Item = Step>;
    /// Reads the parts of a snapshot.
    type Snapshot: Reader<Item = Option<Part>>;

    /// Returns the state of the connection.
    fn link(&self) -> &Arc<Link>;

    /// Returns where batches and steps begin and end now, and which log it is.
    fn ends(&self) -> impl Future<Output = Result<Ends, LogError>> + Send;

    /// Appends a batch, and returns its place as far as the engine knows it. If the engine recognizes a repetition by its [`BatchId`], it
    /// does not store it again; that saves work and is not relied on.
    fn append(&self, id: BatchId, bytes: Vec<u8>) -> impl Future<Output = Result<Place, LogError>> + Send;

    /// Reads the batches behind a place, in order, without end: the reader waits for new ones.
    fn batches(&self, after: Place) -> impl Future<Output = Result<Self::Batches, LogError>> + Send;

    /// Returns the first batch that is still kept, or the next one if none is; for members that may read batches.
    fn first_batch(&self) -> impl Future<Output = Result<Place, LogError>> + Send;

    /// Reads the steps behind a place, in order, without end.
    ///
    /// [`LogError::Gone`], here or from the reader, if steps behind `after` are no longer kept, or the log does not reach that far.
    fn steps(&self, after: Place) -> impl Future<Output = Result<Self::Steps, LogError>> + Send;

    /// Appends a step, unless there is one behind `after`. None if there is.
    fn append_step(
        &self,
        after: Place,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<Option<Place>, LogError>> + Send;

    /// Reads the parts of the newest complete snapshot, in order, then none; [`LogError::Gone`] if there is no snapshot. For a moment after
    /// a snapshot was put, an engine of several nodes may deliver the one before it.
    fn snapshot(&self) -> impl Future<Output = Result<Self::Snapshot, LogError>> + Send;

    /// Returns the unique number of the newest snapshot; none if there is no snapshot. It costs little.
    fn newest_snapshot(&self) -> impl Future<Output = Result<Option<u64>, LogError>> + Send;

    /// Stores a snapshot, given by its parts up to `None`, as the newest, and returns its number; older ones may be removed. A reader gets
    /// all of it or an error. Nothing is stored if the channel ends without `None`, and a writer that dies leaves nothing for good. None if
    /// another one was put meanwhile, which is as good.
    fn put_snapshot(
        &self,
        parts: mpsc::Receiver<Option<Part>>,
    ) -> impl Future<Output = Result<Option<u64>, LogError>> + Send;

    /// Returns the clients that may report.
    fn clients(&self) -> impl Future<Output = Result<Vec<Client>, LogError>> + Send;

    /// Returns the names of the members that may append steps; for members that may read batches.
    fn aggregators(&self) -> impl Future<Output = Result<Vec<String>, LogError>> + Send;

    /// Stores the state report of this member, under its own name, in the place of the one before. At most [`MAX_STATE_REPORT`] bytes.
    fn publish_state(&self, report: Vec<u8>) -> impl Future<Output = Result<(), LogError>> + Send;

    /// Ends connections of members that keep all others waiting, and returns a text for each; for members that may append steps. Does
    /// nothing if the engine cannot have such connections.
    fn end_stuck(&self) -> impl Future<Output = Result<Vec<String>, LogError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Returns the names of rights that this member has, does not need, and can harm the others with. Empty if the engine has no such
    /// rights.
    fn exposures(&self) -> impl Future<Output = Result<Vec<String>, LogError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Returns the last state report of each member within an hour, by name; for members that may read batches.
    fn state_reports(&self) -> impl Future<Output = Result<Vec<StateReport>, LogError>> + Send;
}

/// Reads items one after the other.
pub trait Reader: Send {
    /// The items.
    type Item;

    /// Returns the next item; after an error, nothing more. The future may be dropped at any time, and requested again.
    fn next(&mut self) -> impl Future<Output = Result<Self::Item, LogError>> + Send;
}
