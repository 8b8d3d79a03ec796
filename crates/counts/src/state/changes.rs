// SPDX-License-Identifier: GPL-3.0-or-later
//! Changes of a state that are not on disk yet.

use crate::history::past::Past;
use crate::history::vector::Origin;
use crate::history::window::Window;
use crate::state::kept::{KeptNote, KeptStep, KeptUpdate};
use crate::state::receipts::{LastBatch, Reporter};
use crate::state::report::RetryKey;
use crate::state::spool::SpoolChanges;
use crate::state::user_report::ReportKey;
use bulkmark_types::{ReporterId, Signature};
use std::collections::{BTreeSet, HashMap};

/// One report in the journal.
#[derive(Debug, Clone)]
pub struct JournalEntry {
    /// The window in which it counts.
    pub window: Window,
    /// The reported signature.
    pub signature: Signature,
    /// The number of times that it was seen.
    pub times: u32,
    /// The origin of the limited client who reported it.
    pub client: Option<Origin>,
}

/// A window with its first report. Its size must be on disk before that report: the next start may have another capacity configured, and
/// others may know reports that are only in the journal here.
#[derive(Debug, Clone, Copy)]
pub struct NewWindow {
    /// The window that began.
    pub window: Window,
    /// The number of its first report.
    pub first: u64,
    /// The capacity of its first slice, in signatures.
    pub capacity: u32,
}

/// The changes since the last commit.
#[derive(Default)]
pub struct Changes {
    /// New windows of own counts.
    pub begun: Vec<NewWindow>,
    /// Own reports for the journal, in the order of their numbers.
    pub entries: Vec<JournalEntry>,
    /// The last batch of each of these reporters; `None` for forgotten ones. A reporter that is forgotten and comes again has one entry, so
    /// the later change holds.
    pub receipts: HashMap<Reporter, Option<LastBatch>>,
    /// The time at which each of these was refused; `None` if it is no longer remembered.
    pub refused: HashMap<RetryKey, Option<u64>>,
    /// The changes of the spool.
    pub spool: SpoolChanges,
    /// Updates that were made or applied.
    pub updates: Vec<KeptUpdate>,
    /// Notes of bulk that were made or applied.
    pub notes: Vec<KeptNote>,
    /// Steps of a fleet's chain that were applied, or found in another place of the log.
    pub steps: Vec<KeptStep>,
    /// Limited clients that are new, have a new update, or whose counts were withdrawn.
    pub clients: BTreeSet<String>,
    /// Others' histories with updates that were skipped, since their reports have expired.
    pub past: Vec<Past>,
    /// Rows of user reports that are new, changed or gone.
    pub user_reports: BTreeSet<ReportKey>,
    /// Cases that are new, changed or gone, by their nominations.
    pub cases: BTreeSet<Signature>,
    /// Reporters whose standings changed.
    pub standings: BTreeSet<ReporterId>,
    /// Windows that were dropped before the first request gave the time.
    pub over: Vec<Window>,
}

impl Changes {
    /// Whether a commit would write nothing.
    pub fn is_empty(&self) -> bool {
        // The compiler reports a new field that is missing here.
        let Self {
            begun,
            entries,
            receipts,
            refused,
            spool,
            updates,
            notes,
            steps,
            clients,
            past,
            user_reports,
            cases,
            standings,
            over,
        } = self;
        begun.is_empty()
            && entries.is_empty()
            && receipts.is_empty()
            && refused.is_empty()
            && spool.is_empty()
            && updates.is_empty()
            && notes.is_empty()
            && steps.is_empty()
            && clients.is_empty()
            && past.is_empty()
            && user_reports.is_empty()
            && cases.is_empty()
            && standings.is_empty()
            && over.is_empty()
    }

    /// Whether any change must be on disk when its request is answered, even with relaxed durability.
    pub fn is_promised(&self) -> bool {
        !(self.user_reports.is_empty() && self.cases.is_empty() && self.standings.is_empty())
    }

    /// The number of waiting rows.
    pub const fn len(&self) -> usize {
        self.entries.len()
            + self.spool.waiting.len()
            + self.updates.len()
            + self.notes.len()
            + self.steps.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_is_written() {
        assert!(Changes::default().is_empty());
        let over = vec![Window { start: 0, length: 60 }];
        assert!(!Changes { over, ..Changes::default() }.is_empty());
        let spool = SpoolChanges { renumbered: Some(0), ..SpoolChanges::default() };
        assert!(!Changes { spool, ..Changes::default() }.is_empty());
    }
}
