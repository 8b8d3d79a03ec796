// SPDX-License-Identifier: GPL-3.0-or-later
//! What is known of each signature that somebody here spoke of: whose words are to be judged, and when; of which mailing it is.

use bulkmark_trust::{JUDGED_AFTER, Voice};
use bulkmark_types::{ReporterId, Signature};
use std::collections::{BTreeSet, HashMap};

/// Voices of a signature that are kept to be judged. Whoever comes later told nothing new, and newcomers beyond weigh nothing.
pub const MAX_VOICES: usize = 256;

/// Characters of a subject that are kept.
const MAX_SUBJECT: usize = 120;

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The signature itself, as mail is counted by it.
    pub of: Signature,
    /// The first nomination of the message by which its mailing became known; that of its body, if it has one.
    pub mailing: Signature,
    /// When somebody first said something of it.
    pub first: u64,
    /// When somebody last did.
    pub last: u64,
    /// Signatures of the message that is judged, each for its part.
    pub parts: u8,
    /// Whether those who spoke were judged.
    pub judged: bool,
    /// The subject of the first message, where that may be kept; of a mailing only one case has it.
    pub subject: String,
    /// The reporters who spoke of it, oldest first, up to [`MAX_VOICES`].
    pub voices: Vec<Voice>,
}

impl Case {
    /// Keeps so much of the subject of a first message; that of a later one changes nothing.
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
    /// Those that are to be judged, by the time of the first word.
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

    /// Puts one back that was read from disk.
    pub fn restore(&mut self, nomination: Signature, case: Case) {
        if !case.judged {
            self.open.insert((case.first, nomination));
        }
        self.all.insert(nomination, case);
    }

    /// The case of a nomination; `begin` makes it when it is missing.
    pub fn entry(&mut self, nomination: Signature, begin: impl FnOnce() -> Case) -> &mut Case {
        let open = &mut self.open;
        self.all.entry(nomination).or_insert_with(|| {
            let case = begin();
            open.insert((case.first, nomination));
            case
        })
    }

    /// Those whose time to be judged has come, as many as `most`.
    pub fn due(&self, now: u64, most: usize) -> Vec<Signature> {
        let due = self.open.iter().take_while(|(first, _)| first.saturating_add(JUDGED_AFTER) <= now);
        due.take(most).map(|&(_, nomination)| nomination).collect()
    }

    /// This one was judged.
    pub fn close(&mut self, nomination: Signature) {
        if let Some(case) = self.all.get_mut(&nomination) {
            case.judged = true;
            self.open.remove(&(case.first, nomination));
        }
    }

    /// Nothing that this reporter said of it counts any more; nor, if `is_last`, anybody else.
    pub fn leave(&mut self, who: ReporterId, nomination: Signature, is_last: bool) {
        if is_last {
            if let Some(case) = self.all.remove(&nomination) {
                self.open.remove(&(case.first, nomination));
            }
        } else if let Some(case) = self.all.get_mut(&nomination) {
            case.voices.retain(|voice| voice.who != who);
        }
    }
}
