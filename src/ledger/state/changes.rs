// SPDX-License-Identifier: GPL-3.0-or-later
//! What changed in a state and is not on disk yet.

use crate::ledger::history::past::Past;
use crate::ledger::history::vector::Origin;
use crate::ledger::history::window::Window;
use crate::ledger::state::receipts::{Receipt, Reporter};
use crate::ledger::state::report::RetryKey;
use crate::ledger::state::spool::Waiting;
use crate::ledger::state::voices::VoiceKey;
use crate::signature::{ReporterId, Signature};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// One report as the journal holds it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) window: Window,
    pub(crate) signature: Signature,
    pub(crate) times: u32,
    /// The origin of the limited client who reported it.
    pub(crate) client: Option<Origin>,
}

/// A window in which something was counted for the first time. Its size must be known before its first report is: the next start may
/// be told another capacity, and others may know of reports that are only in the journal here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    pub(crate) window: Window,
    /// The number of its first report.
    pub(crate) first: u64,
    /// Signatures that it is made for.
    pub(crate) capacity: u32,
}

/// An update as it is kept and handed on.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) origin: Origin,
    pub(crate) version: u64,
    /// When it was made or came, in seconds since 1970.
    pub(crate) at: u64,
    pub(crate) bytes: Arc<[u8]>,
}

/// A note of bulk as it is kept and handed on.
#[derive(Debug, Clone)]
pub(crate) struct KeptNote {
    pub(crate) number: u64,
    /// When it was made or came, in seconds since 1970.
    pub(crate) at: u64,
    pub(crate) bytes: Arc<[u8]>,
}

/// A step of a fleet's chain, as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct KeptStep {
    pub(crate) version: u64,
    /// Where the log has it.
    pub(crate) place: u64,
    pub(crate) bytes: Arc<[u8]>,
}

/// What changed since the last commit.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) begun: Vec<Begun>,
    pub(crate) entries: Vec<Entry>,
    /// The last batch of each of these reporters; none for those that are forgotten. One that is forgotten and comes again
    /// has one place here, so what came last holds.
    pub(crate) receipts: HashMap<Reporter, Option<(u64, Receipt)>>,
    /// When each of these was refused; none for what need not be remembered any more.
    pub(crate) refused: HashMap<RetryKey, Option<u64>>,
    pub(crate) waiting: Vec<Waiting>,
    /// Numbers of batches that are new or were acknowledged.
    pub(crate) batches: BTreeSet<u64>,
    pub(crate) updates: Vec<Kept>,
    pub(crate) notes: Vec<KeptNote>,
    pub(crate) steps: Vec<KeptStep>,
    /// Limited clients that are new, of whom an update was made, or whose counts were taken back.
    pub(crate) clients: BTreeSet<String>,
    /// Histories of others of which updates were passed over, since they count nowhere any more.
    pub(crate) past: Vec<Past>,
    /// Rows of what somebody said that are new, or others than they were, or gone.
    pub(crate) voices: BTreeSet<VoiceKey>,
    /// Signatures that somebody spoke of, the same; by their nominations.
    pub(crate) cases: BTreeSet<Signature>,
    /// Those of whom is known more, or less, than before.
    pub(crate) standings: BTreeSet<ReporterId>,
    /// Windows that left before their time was told.
    pub(crate) over: Vec<Window>,
    /// Reports or batches left the spool, or it has another number.
    pub(crate) settled: bool,
    /// The number below which the spool's reports have other numbers than on disk.
    pub(crate) renumbered: Option<u64>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
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
    pub(crate) fn is_promised(&self) -> bool {
        !(self.voices.is_empty() && self.cases.is_empty() && self.standings.is_empty())
    }

    /// What waits, by number of rows.
    pub(crate) const fn len(&self) -> usize {
        self.entries.len() + self.waiting.len() + self.updates.len() + self.notes.len() + self.steps.len()
    }
}

/// What is of no more use.
#[derive(Default)]
pub(crate) struct Expired {
    pub(crate) local: Vec<Window>,
    pub(crate) merged: Vec<Window>,
    pub(crate) held: Vec<Window>,
    pub(crate) retries: Vec<RetryKey>,
    /// Updates that came before this time need not be kept for others; none says that all are kept.
    pub(crate) updates_before: Option<u64>,
    /// The time; none when nobody told it.
    pub(crate) now: Option<u64>,
}
