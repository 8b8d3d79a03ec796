// SPDX-License-Identifier: GPL-3.0-or-later
//! What changed in a state and is not on disk yet.

use crate::history::past::Past;
use crate::history::vector::Origin;
use crate::history::window::Window;
use crate::state::receipts::{Receipt, Reporter};
use crate::state::report::RetryKey;
use crate::state::spool::Waiting;
use crate::state::voices::VoiceKey;
use bulkmark_types::{ReporterId, Signature};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// One report as the journal holds it.
#[derive(Debug, Clone)]
pub struct Entry {
    pub window: Window,
    pub signature: Signature,
    pub times: u32,
    /// The origin of the limited client who reported it.
    pub client: Option<Origin>,
}

/// A window in which something was counted for the first time. Its size must be known before its first report is: the next start may
/// be told another capacity, and others may know of reports that are only in the journal here.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    pub window: Window,
    /// The number of its first report.
    pub first: u64,
    /// Signatures that it is made for.
    pub capacity: u32,
}

/// An update as it is kept and handed on.
#[derive(Debug, Clone)]
pub struct Kept {
    pub origin: Origin,
    pub version: u64,
    /// When it was made or came, in seconds since 1970.
    pub at: u64,
    pub bytes: Arc<[u8]>,
}

/// A note of bulk as it is kept and handed on.
#[derive(Debug, Clone)]
pub struct KeptNote {
    pub number: u64,
    /// When it was made or came, in seconds since 1970.
    pub at: u64,
    pub bytes: Arc<[u8]>,
}

/// A step of a fleet's chain, as it is kept.
#[derive(Debug, Clone)]
pub struct KeptStep {
    pub version: u64,
    /// Where the log has it.
    pub place: u64,
    pub bytes: Arc<[u8]>,
}

/// What changed since the last commit.
#[derive(Default)]
pub struct Changes {
    pub begun: Vec<Begun>,
    pub entries: Vec<Entry>,
    /// The last batch of each of these reporters; none for those that are forgotten. One that is forgotten and comes again
    /// has one place here, so what came last holds.
    pub receipts: HashMap<Reporter, Option<(u64, Receipt)>>,
    /// When each of these was refused; none for what need not be remembered any more.
    pub refused: HashMap<RetryKey, Option<u64>>,
    pub waiting: Vec<Waiting>,
    /// Numbers of batches that are new or were acknowledged.
    pub batches: BTreeSet<u64>,
    pub updates: Vec<Kept>,
    pub notes: Vec<KeptNote>,
    pub steps: Vec<KeptStep>,
    /// Limited clients that are new, of whom an update was made, or whose counts were taken back.
    pub clients: BTreeSet<String>,
    /// Histories of others of which updates were passed over, since they count nowhere any more.
    pub past: Vec<Past>,
    /// Rows of what somebody said that are new, or others than they were, or gone.
    pub voices: BTreeSet<VoiceKey>,
    /// Signatures that somebody spoke of, the same; by their nominations.
    pub cases: BTreeSet<Signature>,
    /// Those of whom is known more, or less, than before.
    pub standings: BTreeSet<ReporterId>,
    /// Windows that left before their time was told.
    pub over: Vec<Window>,
    /// Reports or batches left the spool, or it has another number.
    pub settled: bool,
    /// The number below which the spool's reports have other numbers than on disk.
    pub renumbered: Option<u64>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.begun.is_empty()
            && self.entries.is_empty()
            && self.receipts.is_empty()
            && self.refused.is_empty()
            && self.waiting.is_empty()
            && self.batches.is_empty()
            && self.updates.is_empty()
            && self.notes.is_empty()
            && self.steps.is_empty()
            && self.clients.is_empty()
            && self.voices.is_empty()
            && self.cases.is_empty()
            && self.standings.is_empty()
            && !self.settled
    }

    /// Whether something of it was promised to be on disk when it is answered, however relaxed all else is.
    pub fn is_promised(&self) -> bool {
        !(self.voices.is_empty() && self.cases.is_empty() && self.standings.is_empty())
    }

    /// What waits, by number of rows.
    pub const fn len(&self) -> usize {
        self.entries.len() + self.waiting.len() + self.updates.len() + self.notes.len() + self.steps.len()
    }
}

/// What is of no more use.
#[derive(Default)]
pub struct Expired {
    pub local: Vec<Window>,
    pub merged: Vec<Window>,
    pub held: Vec<Window>,
    pub retries: Vec<RetryKey>,
    /// Updates that came before this time need not be kept for others; none says that all are kept.
    pub updates_before: Option<u64>,
    /// The time; none when nobody told it.
    pub now: Option<u64>,
}
