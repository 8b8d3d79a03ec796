// SPDX-License-Identifier: GPL-3.0-or-later
//! The counters of a daemon.

use super::bulk::{Mailing, Seen, Table};
use super::connections::Connections;
use super::histogram::Histogram;
use super::load::Load;
use super::minutes::Minutes;
use super::recent::{Recent, Ring};
use super::tasks::Tasks;
use crate::policy::{Action, Verdict};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What is kept of messages beside counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Nothing: nobody would see it.
    Nothing,
    /// The last verdicts, and what is bulk.
    Verdicts,
    /// Subjects as well.
    Subjects,
}

/// What became of a message.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// What was found.
    pub verdict: Verdict,
    /// What was done.
    pub action: Action,
    /// Whether it is bulk that was only marked since its count comes from too few networks.
    pub held: bool,
    /// Signatures that were reported for it.
    pub signatures: usize,
    /// The time from its end to the verdict.
    pub time: Duration,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// What a daemon did.
#[derive(Debug)]
pub struct Activity {
    /// Of the MTA to a milter, of clients to a server.
    pub connections: Arc<Connections>,
    /// What a server's readers take.
    pub load: Arc<Load>,
    /// What the daemon does all the time, and how often that ended.
    pub tasks: Arc<Tasks>,
    /// How long verdicts took.
    pub judging: Histogram,
    /// By verdict and action.
    messages: [[AtomicU64; Action::ALL.len()]; Verdict::ALL.len()],
    signatures: AtomicU64,
    held: AtomicU64,
    /// Those that failed, and those that did not.
    reloads: [AtomicU64; 2],
    reload_failed: AtomicBool,
    /// In seconds since 1970; 0: there was none.
    reloaded_at: AtomicU64,
    log_lines_dropped: fn() -> u64,
    /// Messages by verdict at a milter; at a server the first has signatures of reports.
    pub minutes: Minutes<{ Verdict::ALL.len() }>,
    record: Record,
    recent: Ring,
    bulk: Table,
}

impl Activity {
    /// Of a daemon that begins. The log knows itself which lines it dropped.
    #[must_use]
    pub fn new(log_lines_dropped: fn() -> u64, record: Record) -> Arc<Self> {
        Arc::new(Self {
            connections: Arc::default(),
            load: Arc::default(),
            tasks: Arc::default(),
            judging: Histogram::default(),
            messages: Default::default(),
            signatures: AtomicU64::new(0),
            held: AtomicU64::new(0),
            reloads: Default::default(),
            reload_failed: AtomicBool::new(false),
            reloaded_at: AtomicU64::new(0),
            log_lines_dropped,
            minutes: Minutes::default(),
            record,
            recent: Ring::default(),
            bulk: Table::new(record == Record::Subjects),
        })
    }

    /// Whether more than counts is wanted.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.record != Record::Nothing
    }

    /// Keeps what the page shows of a message, if it is wanted.
    pub fn record(&self, recent: Recent, bulk: Option<&Seen<'_>>) {
        if self.is_recording() {
            let mailing = bulk.map(|seen| self.bulk.add(seen, &recent.domain, recent.at));
            self.recent.push(Recent { mailing, ..recent });
        }
    }

    /// The last verdicts, the last one first.
    #[must_use]
    pub fn recent(&self) -> Vec<Recent> {
        self.recent.list()
    }

    /// What is bulk now: so many with the highest counts.
    #[must_use]
    pub fn bulk(&self, most: usize, now: u64) -> Vec<Mailing> {
        self.bulk.top(most, now)
    }

    /// Counts signatures that a client reported to a server.
    pub fn reported(&self, signatures: u64, now: u64) {
        self.minutes.add(0, signatures, now);
    }

    /// Counts a message.
    pub fn judged(&self, message: &Judged) {
        self.messages[message.verdict as usize][message.action as usize].fetch_add(1, Ordering::Relaxed);
        self.signatures.fetch_add(message.signatures as u64, Ordering::Relaxed);
        self.held.fetch_add(u64::from(message.held), Ordering::Relaxed);
        self.judging.add(message.time);
        self.minutes.add(message.verdict as usize, 1, message.now);
    }

    /// Counts a reload.
    pub fn reloaded(&self, well: bool, now: u64) {
        self.reloads[usize::from(well)].fetch_add(1, Ordering::Relaxed);
        self.reload_failed.store(!well, Ordering::Relaxed);
        if well {
            self.reloaded_at.store(now, Ordering::Relaxed);
        }
    }

    /// Whether the configuration in force is the one that was last to be read: no reload failed since.
    #[must_use]
    pub fn is_reloaded(&self) -> bool {
        !self.reload_failed.load(Ordering::Relaxed)
    }

    /// When a reload last went well, in seconds since 1970; none: not since the start.
    #[must_use]
    pub fn reloaded_at(&self) -> Option<u64> {
        Some(self.reloaded_at.load(Ordering::Relaxed)).filter(|&at| at > 0)
    }

    /// Messages by verdict and action: those that there were, and for each verdict what is usually done, so that it is there
    /// before the first.
    pub fn messages(&self) -> impl Iterator<Item = (Verdict, Action, u64)> {
        let all = Verdict::ALL.into_iter().flat_map(|verdict| Action::ALL.map(|action| (verdict, action)));
        all.filter_map(|(verdict, action)| {
            let count = self.messages[verdict as usize][action as usize].load(Ordering::Relaxed);
            (count > 0 || action == Action::Mark).then_some((verdict, action, count))
        })
    }

    /// Signatures that messages reported.
    #[must_use]
    pub fn signatures(&self) -> u64 {
        self.signatures.load(Ordering::Relaxed)
    }

    /// Bulk that was only marked since its count comes from too few networks.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// How many reloads went well, or did not.
    #[must_use]
    pub fn reloads(&self, well: bool) -> u64 {
        self.reloads[usize::from(well)].load(Ordering::Relaxed)
    }

    /// Log lines that the log daemon was too slow for.
    #[must_use]
    pub fn log_lines_dropped(&self) -> u64 {
        (self.log_lines_dropped)()
    }
}
