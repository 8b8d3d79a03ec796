// SPDX-License-Identifier: GPL-3.0-or-later
//! What changed in a state and is not on disk yet.

use crate::history::past::Past;
use crate::history::vector::Origin;
use crate::history::window::Window;
use crate::state::kept::{KeptNote, KeptStep, KeptUpdate};
use crate::state::receipts::{Receipt, Reporter};
use crate::state::report::RetryKey;
use crate::state::spool::SpoolChanges;
use crate::state::words::VoiceKey;
use bulkmark_types::{ReporterId, Signature};
use std::collections::{BTreeSet, HashMap};

/// One report as the journal holds it.
#[derive(Debug, Clone)]
pub struct JournalEntry {
    /// The window in which it counts.
    pub window: Window,
    /// The signature that was seen.
    pub signature: Signature,
    /// How often it was seen.
    pub times: u32,
    /// The origin of the limited client who reported it.
    pub client: Option<Origin>,
}

/// A window in which something was counted for the first time. Its size must be known before its first report is: the next start may
/// be told another capacity, and others may know of reports that are only in the journal here.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    /// The window that began.
    pub window: Window,
    /// The number of its first report.
    pub first: u64,
    /// Signatures that it is made for.
    pub capacity: u32,
}

/// What changed since the last commit.
#[derive(Default)]
pub struct Changes {
    /// Windows of own counts that are new.
    pub begun: Vec<Begun>,
    /// Own reports for the journal, in the order of their numbers.
    pub entries: Vec<JournalEntry>,
    /// The last batch of each of these reporters; none for those that are forgotten. One that is forgotten and comes again
    /// has one place here, so what came last holds.
    pub receipts: HashMap<Reporter, Option<(u64, Receipt)>>,
    /// When each of these was refused; none for what need not be remembered any more.
    pub refused: HashMap<RetryKey, Option<u64>>,
    /// The changes of the spool.
    pub spool: SpoolChanges,
    /// Updates that were made or applied.
    pub updates: Vec<KeptUpdate>,
    /// Notes of bulk that were made or applied.
    pub notes: Vec<KeptNote>,
    /// Steps of a fleet's chain that were applied, or found in another place of the log.
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
}

impl Changes {
    /// Whether a commit would write nothing.
    pub fn is_empty(&self) -> bool {
        // A field that is new is missed here by the compiler.
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
            voices,
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
            && voices.is_empty()
            && cases.is_empty()
            && standings.is_empty()
            && over.is_empty()
    }

    /// Whether something of it was promised to be on disk when it is answered, however relaxed all else is.
    pub fn is_promised(&self) -> bool {
        !(self.voices.is_empty() && self.cases.is_empty() && self.standings.is_empty())
    }

    /// What waits, by number of rows.
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
    fn whatever_changed_is_to_be_written() {
        assert!(Changes::default().is_empty());
        let over = vec![Window { start: 0, length: 60 }];
        assert!(!Changes { over, ..Changes::default() }.is_empty());
        let spool = SpoolChanges { renumbered: Some(0), ..SpoolChanges::default() };
        assert!(!Changes { spool, ..Changes::default() }.is_empty());
    }
}
