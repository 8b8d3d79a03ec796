// SPDX-License-Identifier: GPL-3.0-or-later
//! A replicated log: what a fleet's milters and aggregators say to one another, in one order for all of them.
//!
//! It holds five things, whose bytes it does not understand:
//!
//! - **batches** of reports, each by the client that the log proves (its account or role), never by what it says;
//! - **steps**, in one chain: what aggregators made of the batches. Each names the hash of the one before it, so two that follow the
//!   same one may both be there; readers take the first and ignore all others. The condition of [`Log::append_step`] only saves the
//!   losers' work;
//! - one **snapshot**: all that the steps made so far;
//! - the **clients** that may report, and their limits;
//! - of each **member**, what it told last of itself, for an hour. Nothing relies on that: it is for people.
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
/// All of it may be called at the same time, again after any error, and after any time. What is lost on the way, or comes late, is
/// an error after a time that the engine bounds ([`LogError::Unavailable`]); what was asked for may have been done all the same.
pub trait Log: Send + Sync + 'static {
    /// Reads batches.
    type Batches: Reader<Item = Batch>;
    /// Reads steps.
    type Steps: Reader<Item = Step>;
    /// Reads the parts of a snapshot.
    type Snapshot: Reader<Item = Option<Part>>;

    /// What is known of the connection.
    fn link(&self) -> &Arc<Link>;

    /// Where batches and steps begin and end now, and which log it is.
    fn ends(&self) -> impl Future<Output = Result<Ends, LogError>> + Send;

    /// Appends a batch. One that the engine still knows by its [`BatchId`] is not stored again, if the engine can tell; that saves
    /// work and is not relied on. Where it is stored, as far as the engine says so.
    fn append(&self, id: BatchId, bytes: Vec<u8>) -> impl Future<Output = Result<Place, LogError>> + Send;

    /// The batches behind a place, in their order, without end: it waits for those that come.
    fn batches(&self, after: Place) -> impl Future<Output = Result<Self::Batches, LogError>> + Send;

    /// The first batch that is still kept, or the next one where none is; for those who may read batches.
    fn first_batch(&self) -> impl Future<Output = Result<Place, LogError>> + Send;

    /// The steps behind a place, in their order, without end.
    ///
    /// [`LogError::Gone`], here or from the reader, when steps behind `after` are not kept any more, or the log has not as many.
    fn steps(&self, after: Place) -> impl Future<Output = Result<Self::Steps, LogError>> + Send;

    /// Appends a step, unless one was appended behind `after`. None when one was.
    fn append_step(
        &self,
        after: Place,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<Option<Place>, LogError>> + Send;

    /// The parts of the newest whole snapshot, in their order, then none; [`LogError::Gone`] where there is no snapshot.
    fn snapshot(&self) -> impl Future<Output = Result<Self::Snapshot, LogError>> + Send;

    /// The number of the newest snapshot, which no other one has; none where there is no snapshot. It costs little.
    fn newest_snapshot(&self) -> impl Future<Output = Result<Option<u64>, LogError>> + Send;

    /// Keeps a snapshot, whose parts these are up to `None`, as the newest, and returns its number; older ones may go. Whoever reads it has
    /// all of it or an error. Nothing is kept when the channel ends without `None`, and a writer that dies leaves nothing for good. None
    /// where another one was put meanwhile, which is as good.
    fn put_snapshot(
        &self,
        parts: mpsc::Receiver<Option<Part>>,
    ) -> impl Future<Output = Result<Option<u64>, LogError>> + Send;

    /// Who may report.
    fn clients(&self) -> impl Future<Output = Result<Vec<Client>, LogError>> + Send;

    /// The names of those who may append steps; for those who may read batches.
    fn aggregators(&self) -> impl Future<Output = Result<Vec<String>, LogError>> + Send;

    /// Keeps this as what this member, by its own name, says of itself, in the place of what it said before. At most [`MAX_STATE_REPORT`] bytes.
    fn publish_state(&self, report: Vec<u8>) -> impl Future<Output = Result<(), LogError>> + Send;

    /// Ends what members hold open for so long that all others wait for it, and returns whose it was, for people; for those who may append
    /// steps. Nothing where the engine has no such thing.
    fn end_stuck(&self) -> impl Future<Output = Result<Vec<String>, LogError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Names of what this member may do, needs not, and can harm the others by. Nothing where the engine has no such thing.
    fn exposures(&self) -> impl Future<Output = Result<Vec<String>, LogError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// What each member said last of itself within an hour, by their names; for those who may read batches.
    fn state_reports(&self) -> impl Future<Output = Result<Vec<StateReport>, LogError>> + Send;
}

/// Brings one after the other.
pub trait Reader: Send {
    /// What it brings.
    type Item;

    /// The next one; after an error, nothing more. What it waits for may be given up, and asked for again, at any time.
    fn next(&mut self) -> impl Future<Output = Result<Self::Item, LogError>> + Send;
}
