// SPDX-License-Identifier: GPL-3.0-or-later
//! A milter that counts for itself.

use crate::state::counts::Counts;
use crate::state::report::{Addition, Report};
use crate::state::retries::Retries;
use crate::state::saying::{Said, Saying};
use crate::state::spool::Spool;
use crate::state::trusted::Known;

/// The state of a milter that counts for itself.
pub struct Site {
    /// All counts.
    pub counts: Counts,
    /// Messages that were refused for the moment.
    pub retries: Retries,
    /// What waited for a server when this milter had one: it counts, and is never sent.
    pub left: Spool,
}

impl Site {
    /// Counts a message's report.
    pub fn report(&mut self, report: &Report) {
        self.counts.clock = report.now;
        let again = self.retries.again(&mut self.counts.changes, report);
        report.additions(again).for_each(|addition| self.add(addition, report.now));
    }

    /// Counts what somebody says.
    pub fn say(&mut self, saying: &Saying, known: &[Known]) -> Said {
        let (said, raise) = self.counts.hear(saying, known);
        raise.into_iter().for_each(|addition| self.add(addition, saying.now));
        said
    }

    fn add(&mut self, Addition { signature, times, .. }: Addition, now: u64) {
        self.counts.add(signature, times, now);
    }
}
