// SPDX-License-Identifier: GPL-3.0-or-later
//! What the tasks of a fleet's machine tell one another, and people.

use super::cursor::{Cursor, own};
use super::members::{MemberStatus, Members};
use super::notes::{Among, Notes, impossible, uncounted};
use super::reporters::{ReporterStatus, Reporters};
use super::word::FleetMailing;
use crate::follow_bulk::BulkBound;
use crate::log::{Batch, Ends, LogError, Place};
use crate::state::{Flow, Link, Links};
use bulkmark_counts::{FleetMark, OtherForm};
use bulkmark_types::remote_text;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::watch;

/// One machine's part in a fleet.
pub struct Fleet {
    /// The log's address, for people.
    url: String,
    links: Arc<Links>,
    link: Arc<Link>,
    /// Where the reader of steps is; none while it does not read.
    reached: watch::Sender<Option<Cursor>>,
    /// How often it stopped.
    stops: AtomicU64,
    /// What the log said last of its ends.
    ends: Mutex<Option<Ends>>,
    /// When a step was applied last, by a clock that nobody sets.
    stepped: Mutex<Option<Instant>>,
    /// When this machine's own step became one of the chain last.
    won_at: Mutex<Option<Instant>>,
    /// Whether the log's chain was found to be another one.
    forked: AtomicBool,
    /// From which count on bulk must be held here, where nothing else is.
    holds: Option<BulkBound>,
    counters: [AtomicU64; 7],
    notes: Notes,
    reporters: Reporters,
    /// What all members say of themselves, at an aggregator.
    members: Mutex<Option<Members>>,
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    /// Steps that were applied.
    Steps,
    /// What was in their stream and is none.
    JunkSteps,
    /// Batches that could not be read, in steps that were made here.
    JunkBatches,
    /// Steps made here that became one of the chain.
    Won,
    /// Steps made here that did not.
    Lost,
    /// Batches that were appended again, since the log did not have them or nobody counted them.
    Again,
    /// Snapshots that were taken over.
    Snapshots,
}

/// A fleet at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FleetStatus {
    /// The log's address.
    pub log: String,
    /// Whether this machine makes steps.
    pub aggregates: bool,
    /// Whether what is counted here is where the log's chain ends, as far as that was read.
    pub in_step: bool,
    /// Steps that are counted here.
    pub version: u64,
    /// The hash of the last of them.
    pub chain: String,
    /// How often the log was found to be another one, or to have lost its end.
    pub epoch: u64,
    /// Batches up to this place are counted here.
    pub covers: u64,
    /// Where the last batch is in the log; none before it said so.
    pub last_batch: Option<u64>,
    /// Batches behind `covers`; none when that counts on another log than the present one.
    pub batches_behind: Option<u64>,
    /// Places of steps that are not read yet.
    pub steps_behind: Option<u64>,
    /// Seconds since a step was applied.
    pub stepped_seconds_ago: Option<u64>,
    /// Seconds since a step that was made here became one of the chain; none at a milter.
    pub won_seconds_ago: Option<u64>,
    /// Steps that were applied since the start.
    pub steps: u64,
    /// Those of them that were made here.
    pub steps_won: u64,
    /// Steps that were made here, and another was first.
    pub steps_lost: u64,
    /// What stood in the stream of steps and is none.
    pub junk_steps: u64,
    /// Batches that nobody can read, in steps that were made here.
    pub junk_batches: u64,
    /// Own batches that were appended again.
    pub batches_again: u64,
    /// Snapshots that were taken over.
    pub snapshots: u64,
    /// What is odd, and what to do about it.
    #[serde(default)]
    pub advice: Vec<String>,
    /// Who reported, at an aggregator.
    #[serde(default)]
    pub reporters: Vec<ReporterStatus>,
    /// What all members say of themselves, at an aggregator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberStatus>,
    /// The largest mailings of those of them that tell theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mailings: Vec<FleetMailing>,
}

impl Fleet {
    /// Of a log at this address, whose connection is the first of `links`.
    #[must_use]
    pub fn new(url: &str, links: Arc<Links>) -> Self {
        let link = links.get(0).unwrap_or_default();
        Self {
            url: url.to_owned(),
            links,
            link,
            reached: watch::Sender::new(None),
            stops: AtomicU64::new(0),
            ends: Mutex::default(),
            stepped: Mutex::default(),
            won_at: Mutex::default(),
            forked: AtomicBool::new(false),
            holds: None,
            counters: Default::default(),
            notes: Notes::default(),
            reporters: Reporters::default(),
            members: Mutex::default(),
        }
    }

    /// The same for a milter that holds bulk alone, from this count on.
    #[must_use]
    pub fn holding(mut self, from: BulkBound) -> Self {
        self.holds = Some(from);
        self
    }

    /// From which count on bulk is to be told, if it is told from `bound` on (0: not at all) and that does not do; else 0.
    pub(super) fn lacks_bulk(&self, bound: u32) -> u32 {
        let needed = self.holds.as_ref().map_or(0, |holds| holds());
        if bound == 0 || bound > needed { needed } else { 0 }
    }

    /// What the log said of its ends, where what is counted is at `mark`.
    pub(super) fn has_ends(&self, ends: Ends, mark: FleetMark) {
        *self.ends.lock() = Some(ends);
        let same = ends.made == mark.made || mark.version == 0;
        self.notes.counted(mark.covers, same.then_some(ends.batches.0), Instant::now());
        self.link.heard();
    }

    /// A batch was read, by an aggregator, of a client with this rate.
    pub(super) fn reads(&self, batch: &Batch, rate: Option<NonZeroU32>) {
        if self.reporters.read(batch, rate) {
            log::warn!(
                "{}: {} reports more than its rate, {} signatures a second, and this log does not hold it back: it may push the \
                 batches of others out before they are counted",
                self.url,
                remote_text(&batch.client),
                rate.map_or(0, NonZeroU32::get)
            );
        }
    }

    /// A step at this place was made by a program of another version.
    pub(super) fn meets_step(&self, place: Place, other: OtherForm) {
        let what = format!("a step at place {}: {other}", place.0);
        if self.notes.meets(Among::Steps, what.clone(), Instant::now()) {
            log::warn!("{}: passed over in the log: {what}", self.url);
        }
    }

    /// A batch cannot be read, in a step that was made here.
    pub(super) fn meets_batch(&self, what: &str) {
        let what = remote_text(what);
        if self.notes.meets(Among::Batches, what.clone(), Instant::now()) {
            log::warn!("{}: passed over in the log: {what}", self.url);
        }
    }

    /// A member held something open in the log, and so others up.
    pub(super) fn ends_stuck(&self, whose: &str) {
        let what = format!("the connection was ended of {}", remote_text(whose));
        if self.notes.meets(Among::Stuck, what.clone(), Instant::now()) {
            log::warn!("{}: a member kept others waiting: {what}", self.url);
        }
    }

    /// So many own batches were passed over by aggregators again and again.
    pub(super) fn passes_over(&self, batches: u64) {
        if self.notes.passes_over(batches) {
            log::warn!("{}: {}", self.url, uncounted(batches));
        }
    }

    /// All members spoke so.
    pub(super) fn gathers(&self, members: Members) {
        *self.members.lock() = Some(members);
    }

    /// The log's address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Seconds since all was here that the log has.
    pub(super) fn staleness(&self) -> Option<u64> {
        self.links.staleness()
    }

    /// The reader of steps is here.
    pub(super) fn reaches(&self, cursor: Cursor) {
        self.links.set_active(Some(0));
        self.reached.send_if_modified(|reached| reached.replace(cursor) != Some(cursor));
    }

    /// The reader of steps stopped.
    pub(super) fn stopped(&self) {
        self.links.set_active(None);
        self.stops.fetch_add(1, Ordering::Relaxed);
        self.reached.send_replace(None);
    }

    /// A number that is another one after the reader of steps stopped.
    pub(super) fn session(&self) -> u64 {
        self.stops.load(Ordering::Relaxed)
    }

    /// Tells where the reader of steps is.
    pub(super) fn reached(&self) -> watch::Receiver<Option<Cursor>> {
        self.reached.subscribe()
    }

    /// The log's chain is another one than that which is known here.
    pub(super) fn forks(&self) {
        self.forked.store(true, Ordering::Relaxed);
    }

    /// Whether it was found to be so since this was asked last.
    pub(super) fn take_forked(&self) -> bool {
        self.forked.swap(false, Ordering::Relaxed)
    }

    /// A step was applied, which has what is held here.
    pub(super) fn stepped(&self, has_all: bool) {
        *self.stepped.lock() = Some(Instant::now());
        self.count(Count::Steps, 1);
        if has_all {
            self.is_fresh();
        }
    }

    /// What is counted here is all that the log has.
    pub(super) fn is_fresh(&self) {
        self.link.is_fresh();
        self.works(Flow::Updates);
    }

    /// A step that was made here became one of the chain.
    pub(super) fn won(&self) {
        *self.won_at.lock() = Some(Instant::now());
        self.count(Count::Won, 1);
    }

    pub(super) fn count(&self, what: Count, number: u64) {
        self.counters[what as usize].fetch_add(number, Ordering::Relaxed);
    }

    fn counted(&self, what: Count) -> u64 {
        self.counters[what as usize].load(Ordering::Relaxed)
    }

    pub(super) fn fails(&self, flow: Flow, error: &impl std::fmt::Display) {
        // It may repeat what the log said.
        self.link.fails(flow, remote_text(&error.to_string()));
    }

    pub(super) fn works(&self, flow: Flow) {
        self.link.works(flow);
    }

    /// All of it, for people, where what is counted is at `mark`.
    #[must_use]
    pub fn status(&self, mark: FleetMark, aggregates: bool) -> FleetStatus {
        let (ends, cursor) = (*self.ends.lock(), *self.reached.borrow());
        let members = self.members.lock();
        let ago = |at: &Mutex<Option<Instant>>| at.lock().map(|at| at.elapsed().as_secs());
        let same = ends.filter(|ends| ends.made == mark.made || mark.version == 0);
        FleetStatus {
            log: self.url.clone(),
            aggregates,
            in_step: cursor.is_some_and(|cursor| cursor.is_at(own(mark))),
            version: mark.version,
            chain: mark.chain.to_string(),
            epoch: mark.epoch,
            covers: mark.covers,
            last_batch: ends.map(|ends| ends.batches.0),
            batches_behind: same.map(|ends| ends.batches.0.saturating_sub(mark.covers)),
            steps_behind: ends
                .zip(cursor)
                .map(|(ends, Cursor { place: Place(place), .. })| ends.steps.0.saturating_sub(place)),
            stepped_seconds_ago: ago(&self.stepped),
            won_seconds_ago: ago(&self.won_at),
            steps: self.counted(Count::Steps),
            steps_won: self.counted(Count::Won),
            steps_lost: self.counted(Count::Lost),
            junk_steps: self.counted(Count::JunkSteps),
            junk_batches: self.counted(Count::JunkBatches),
            batches_again: self.counted(Count::Again),
            snapshots: self.counted(Count::Snapshots),
            advice: impossible(mark).into_iter().chain(self.notes.told(Instant::now())).collect(),
            reporters: self.reporters.status(),
            members: members.as_ref().map(Members::status).unwrap_or_default(),
            mailings: members.as_ref().map(Members::mailings).unwrap_or_default(),
        }
    }
}

/// What ended following, pushing or aggregating for the moment.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    /// The log.
    #[error("{0}{advice}", advice = advice(.0))]
    Log(#[from] LogError),
    /// The own ledger.
    #[error(transparent)]
    Ledger(#[from] bulkmark_ledger::LedgerError),
    /// What the log has does not do.
    #[error("{0}")]
    Unfit(String),
    /// The log is of a fleet with another key or window, and only people can change that.
    #[error("{0}")]
    Unlike(String),
}

/// What helps, behind what is wrong.
fn advice(error: &LogError) -> String {
    error.advice().map(|advice| format!("; {advice}")).unwrap_or_default()
}
