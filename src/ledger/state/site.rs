// SPDX-License-Identifier: GPL-3.0-or-later
//! A milter that counts for itself.

use crate::ledger::state::counts::Counts;
use crate::ledger::state::report::Report;
use crate::ledger::state::retries::Retries;
use crate::ledger::state::saying::{Said, Saying};
use crate::ledger::state::spool::Spool;
use crate::ledger::state::trusted::Known;

/// The state of a milter that counts for itself.
pub(crate) struct Site {
    pub(crate) counts: Counts,
    pub(crate) retries: Retries,
    /// What waited for a server when this milter had one: it counts, and is never sent.
    pub(crate) left: Spool,
}

impl Site {
    /// Counts a message's report.
    pub(crate) fn report(&mut self, report: &Report) {
        self.counts.clock = report.now;
        let again = self.retries.again(&mut self.counts.changes, report);
        for (signature, times, _) in report.additions(again) {
            self.counts.add(signature, times, report.now);
        }
    }

    /// Counts what somebody says.
    pub(crate) fn say(&mut self, saying: &Saying, known: &[Known]) -> Said {
        let (said, raise) = self.counts.hear(saying, known);
        raise.into_iter().for_each(|(signature, units, _)| self.counts.add(signature, units, saying.now));
        said
    }
}
