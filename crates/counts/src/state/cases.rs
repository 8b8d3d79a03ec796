// SPDX-License-Identifier: GPL-3.0-or-later
//! The signatures with user reports: their votes, the time of their judgement, and their mailing.

use bulkmark_trust::{JUDGED_AFTER, Vote};
use bulkmark_types::{ReporterId, Signature};
use std::collections::{BTreeSet, HashMap};

/// The most votes of a signature. Later reporters only repeat, and later newcomers have no weight.
pub const MAX_VOTES: usize = 256;

/// The most characters of a stored subject.
const MAX_SUBJECT: usize = 120;

/// One signature with user reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The signature itself, which counts mail.
    pub of: Signature,
    /// The first nomination of the mailing's first reported message; that of its body if it has one.
    pub mailing: Signature,
    /// The time of the first report.
    pub first: u64,
    /// The time of the last report.
    pub last: u64,
    /// The number of signatures of the message that are judged, each for its part.
    pub parts: u8,
    /// Whether its reporters were judged.
    pub judged: bool,
    /// The subject of the first message, if it may be stored; only one case of a mailing has it.
    pub subject: String,
    /// The votes, oldest first, up to [`MAX_VOTES`].
    pub votes: Vec<Vote>,
}

impl Case {
    /// Stores the beginning of the first message's subject; later ones are ignored.
    pub fn name(&mut self, subject: &str) {
        if self.subject.is_empty() {
            self.subject = subject.chars().take(MAX_SUBJECT).collect();
        }
    }
}

/// All cases, by nomination.
#[derive(Default)]
pub struct Cases {
    all: HashMap<Signature, Case>,
    /// The cases to judge, by the time of the first report.
    open: BTreeSet<(u64, Signature)>,
}

impl Cases {
    /// The case of this nomination.
    pub fn get(&self, nomination: Signature) -> Option<&Case> {
        self.all.get(&nomination)
    }

    /// All cases, each with its nomination, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Signature, &Case)> {
        self.all.iter()
    }

    /// Restores a case that was read from disk.
    pub fn restore(&mut self, nomination: Signature, case: Case) {
        if !case.judged {
            self.open.insert((case.first, nomination));
        }
        self.all.insert(nomination, case);
    }

    /// The case of a nomination; `begin` makes a missing one.
    pub fn entry(&mut self, nomination: Signature, begin: impl FnOnce() -> Case) -> &mut Case {
        let open = &mut self.open;
        self.all.entry(nomination).or_insert_with(|| {
            let case = begin();
            open.insert((case.first, nomination));
            case
        })
    }

    /// The cases that are due for judgement, at most `most`.
    pub fn due(&self, now: u64, most: usize) -> Vec<Signature> {
        let due = self.open.iter().take_while(|(first, _)| first.saturating_add(JUDGED_AFTER) <= now);
        due.take(most).map(|&(_, nomination)| nomination).collect()
    }

    /// Marks a case as judged.
    pub fn close(&mut self, nomination: Signature) {
        if let Some(case) = self.all.get_mut(&nomination) {
            case.judged = true;
            self.open.remove(&(case.first, nomination));
        }
    }

    /// Removes this reporter's vote; if `is_last`, the whole case.
    pub fn leave(&mut self, reporter: ReporterId, nomination: Signature, is_last: bool) {
        if is_last {
            if let Some(case) = self.all.remove(&nomination) {
                self.open.remove(&(case.first, nomination));
            }
        } else if let Some(case) = self.all.get_mut(&nomination) {
            case.votes.retain(|vote| vote.reporter != reporter);
        }
    }
}
