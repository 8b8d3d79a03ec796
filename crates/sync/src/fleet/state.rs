// SPDX-License-Identifier: GPL-3.0-or-later
//! The state that the tasks of a fleet's machine share, and its status for people.

use super::anomalies::{Anomalies, Source, impossible, uncounted};
use super::cursor::{Cursor, own};
use super::members::{MemberStatus, Members};
use super::reporters::{ReporterStatus, Reporters};
use super::state_report::FleetMailing;
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

/// One machine of a fleet.
pub struct Fleet {
    /// The log's address, for people.
    url: String,
    links: Arc<Links>,
    link: Arc<Link>,
    /// The position of the reader of steps; none while it does not read.
    reached: watch::Sender<Option<Cursor>>,
    /// How often it stopped.
    stops: AtomicU64,
    /// The log's ends, when they were read last.
    ends: Mutex<Option<Ends>>,
    /// When a step was applied last, by a monotonic clock.
    stepped: Mutex<Option<Instant>>,
    /// When a step of this machine became part of the chain last.
    won_at: Mutex<Option<Instant>>,
    /// Whether the log's chain was found to differ.
    forked: AtomicBool,
    /// The count from which a partial copy must hold bulk.
    holds: Option<BulkBound>,
    counters: [AtomicU64; 7],
    anomalies: Anomalies,
    reporters: Reporters,
    /// The members with their state reports, at an aggregator.
    members: Mutex<Option<Members>>,
}

/// The counters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    /// Steps that were applied.
    Steps,
    /// Entries in their stream that are no steps.
    JunkSteps,
    /// Batches that could not be parsed, in steps made here.
    JunkBatches,
    /// Steps made here that became part of the chain.
    Won,
    /// Steps made here that lost against another one.
    Lost,
    /// Batches that were appended again, because the log lost them or nobody counted them.
    Again,
    /// Snapshots that were taken over.
    Snapshots,
}

/// The status of a fleet's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FleetStatus {
    /// The log's address.
    pub log: String,
    /// Whether this machine makes steps.
    pub aggregates: bool,
    /// Whether the ledger is at the end of the log's chain, as far as it was read.
    pub in_step: bool,
    /// Steps that are counted here.
    pub version: u64,
    /// The hash of the last one.
    pub chain: String,
    /// How often the log was found to be another one, or to have lost its end.
    pub epoch: u64,
    /// Batches up to this place are counted here.
    pub covers: u64,
    /// The place of the last batch in the log; none before the log's first answer.
    pub last_batch: Option<u64>,
    /// Batches behind `covers`; none if `covers` is of another log than the present one.
    pub batches_behind: Option<u64>,
    /// The number of places of steps that are not read yet.
    pub steps_behind: Option<u64>,
    /// Seconds since a step was applied.
    pub stepped_seconds_ago: Option<u64>,
    /// Seconds since a step made here became part of the chain; none at a milter.
    pub won_seconds_ago: Option<u64>,
    /// Steps that were applied since the start.
    pub steps: u64,
    /// Those of them made here.
    pub steps_won: u64,
    /// Steps made here that lost against another one.
    pub steps_lost: u64,
    /// Entries in the stream of steps that are no steps.
    pub junk_steps: u64,
    /// Batches that cannot be parsed, in steps made here.
    pub junk_batches: u64,
    /// Own batches that were appended again.
    pub batches_again: u64,
    /// Snapshots that were taken over.
    pub snapshots: u64,
    /// Anomalies, with their remedies.
    #[serde(default)]
    pub advice: Vec<String>,
    /// The clients that reported, at an aggregator.
    #[serde(default)]
    pub reporters: Vec<ReporterStatus>,
    /// The members with their state reports, at an aggregator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberStatus>,
    /// The largest mailings of the members that publish theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mailings: Vec<FleetMailing>,
}

impl Fleet {
    /// Creates the state for a log at this address, whose connection is the first of `links`.
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
            anomalies: Anomalies::default(),
            reporters: Reporters::default(),
            members: Mutex::default(),
        }
    }

    /// Marks it as a milter with a partial copy, which must hold bulk from this count on.
    #[must_use]
    pub fn holding(mut self, from: BulkBound) -> Self {
        self.holds = Some(from);
        self
    }

    /// Returns the count from which steps must tell bulk apart, if they do so only from `bound` on (0: not at all) and that is not enough;
    /// otherwise 0.
    pub(super) fn lacks_bulk(&self, bound: u32) -> u32 {
        let needed = self.holds.as_ref().map_or(0, |holds| holds());
        if bound == 0 || bound > needed { needed } else { 0 }
    }

    /// Records the log's ends, while the ledger is at `mark`.
    pub(super) fn set_ends(&self, ends: Ends, mark: FleetMark) {
        *self.ends.lock() = Some(ends);
        let same = ends.made == mark.made || mark.version == 0;
        self.anomalies.counted(mark.covers, same.then_some(ends.batches.0), Instant::now());
        self.link.touch();
    }

    /// Records that an aggregator read a batch of a client with this rate.
    pub(super) fn batch_read(&self, batch: &Batch, rate: Option<NonZeroU32>) {
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

    /// Records that a step of another version was skipped.
    pub(super) fn skipped_step(&self, place: Place, other: OtherForm) {
        let what = format!("a step at place {}: {other}", place.0);
        if self.anomalies.record(Source::Steps, what.clone(), Instant::now()) {
            log::warn!("{}: skipped in the log: {what}", self.url);
        }
    }

    /// Records that a batch could not be parsed, in a step made here.
    pub(super) fn skipped_batch(&self, what: &str) {
        let what = remote_text(what);
        if self.anomalies.record(Source::Batches, what.clone(), Instant::now()) {
            log::warn!("{}: skipped in the log: {what}", self.url);
        }
    }

    /// Records that the connection of a member was ended because it kept others waiting.
    pub(super) fn ended_stuck(&self, whose: &str) {
        let what = format!("the connection was ended of {}", remote_text(whose));
        if self.anomalies.record(Source::Stuck, what.clone(), Instant::now()) {
            log::warn!("{}: a member kept others waiting: {what}", self.url);
        }
    }

    /// Records how many own batches aggregators repeatedly skipped.
    pub(super) fn set_passed_over(&self, batches: u64) {
        if self.anomalies.set_passed_over(batches) {
            log::warn!("{}: {}", self.url, uncounted(batches));
        }
    }

    /// Sets the members, as they were read.
    pub(super) fn set_members(&self, members: Members) {
        *self.members.lock() = Some(members);
    }

    /// The log's address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the seconds since the ledger had all steps of the log.
    pub(super) fn staleness(&self) -> Option<u64> {
        self.links.staleness()
    }

    /// Sets the position of the reader of steps.
    pub(super) fn set_cursor(&self, cursor: Cursor) {
        self.links.set_active(Some(0));
        self.reached.send_if_modified(|reached| reached.replace(cursor) != Some(cursor));
    }

    /// Records that the reader of steps stopped.
    pub(super) fn stopped(&self) {
        self.links.set_active(None);
        self.stops.fetch_add(1, Ordering::Relaxed);
        self.reached.send_replace(None);
    }

    /// Returns a number that changes when the reader of steps stops.
    pub(super) fn session(&self) -> u64 {
        self.stops.load(Ordering::Relaxed)
    }

    /// Subscribes to the position of the reader of steps.
    pub(super) fn reached(&self) -> watch::Receiver<Option<Cursor>> {
        self.reached.subscribe()
    }

    /// Records that the log's chain differs from the local one.
    pub(super) fn set_forked(&self) {
        self.forked.store(true, Ordering::Relaxed);
    }

    /// Whether that was recorded since the last call.
    pub(super) fn take_forked(&self) -> bool {
        self.forked.swap(false, Ordering::Relaxed)
    }

    /// Records that a step was applied; `has_all` if steps contain all that must be held here.
    pub(super) fn stepped(&self, has_all: bool) {
        *self.stepped.lock() = Some(Instant::now());
        self.count(Count::Steps, 1);
        if has_all {
            self.set_fresh();
        }
    }

    /// Records that the ledger has all steps of the log.
    pub(super) fn set_fresh(&self) {
        self.link.set_fresh();
        self.set_working(Flow::Updates);
    }

    /// Records that a step made here became part of the chain.
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

    pub(super) fn set_failing(&self, flow: Flow, error: &impl std::fmt::Display) {
        // It may quote the log.
        self.link.set_failing(flow, remote_text(&error.to_string()));
    }

    pub(super) fn set_working(&self, flow: Flow) {
        self.link.set_working(flow);
    }

    /// Returns the status, for a ledger at `mark`.
    #[must_use]
    pub fn status(&self, mark: FleetMark, aggregates: bool) -> FleetStatus {
        let (ends, cursor) = (*self.ends.lock(), *self.reached.borrow());
        let members = self.members.lock();
        let ago = |at: &Mutex<Option<Instant>>| at.lock().map(|at| at.elapsed().as_secs());
        let same = ends.filter(|ends| ends.made == mark.made || mark.version == 0);
        FleetStatus {
            log: self.url.clone(),
            aggregates,
            in_step: cursor.is_some_and(|cursor| cursor.has_all(own(mark))),
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
            advice: impossible(mark).into_iter().chain(self.anomalies.advice(Instant::now())).collect(),
            reporters: self.reporters.status(),
            members: members.as_ref().map(Members::status).unwrap_or_default(),
            mailings: members.as_ref().map(Members::mailings).unwrap_or_default(),
        }
    }
}

/// Why following, pushing or aggregating stopped for now.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    /// The log failed.
    #[error("{0}{advice}", advice = advice(.0))]
    Log(#[from] LogError),
    /// The local ledger failed.
    #[error(transparent)]
    Ledger(#[from] bulkmark_ledger::LedgerError),
    /// The log's content is unusable.
    #[error("{0}")]
    Unfit(String),
    /// The log is of a fleet with another key or window, which only people can change.
    #[error("{0}")]
    Unlike(String),
}

/// The remedy, to be appended to the error.
fn advice(error: &LogError) -> String {
    error.advice().map(|advice| format!("; {advice}")).unwrap_or_default()
}
