// SPDX-License-Identifier: GPL-3.0-or-later
//! User reports in a milter's ledger.

use super::Ledger;
use crate::errors::LedgerError;
use bulkmark_counts::state::overview::{Overview, OverviewFilter};
use bulkmark_counts::state::reporters::{MailingReports, Unclear, only};
use bulkmark_counts::state::roles::State;
use bulkmark_counts::state::submission::{Submission, Tally, Weighing};
use bulkmark_counts::state::submit::Withdrawal;
use bulkmark_types::{ReporterId, Signature};
use std::sync::atomic::Ordering;

impl Ledger {
    /// Counts a user report about a message, once for each signature. The answer comes when the report is on disk.
    ///
    /// # Errors
    /// If it is not on disk; then nothing was counted, and it can be submitted again.
    pub async fn submit(&self, saying: Submission) -> Result<Tally, LedgerError> {
        self.ask_role(move |state: &mut State| state.submit(&saying)).await
    }

    /// Sets the rules for the trust in reporters, until the next call.
    ///
    /// # Errors
    /// If there are no counts.
    pub async fn set_weighing(&self, weighing: Weighing) -> Result<(), LedgerError> {
        self.ask(move |state: &mut State| state.counts_mut().trust.weighing = weighing).await
    }

    /// Withdraws all reports of one reporter, who becomes a newcomer again. Returns the number of signatures whose report was withdrawn,
    /// and of those whose report stays until its window ends.
    ///
    /// # Errors
    /// If that is not on disk; then some reports may be withdrawn, and a new call withdraws the rest.
    pub async fn forget(&self, reporter: ReporterId, now: u64) -> Result<Withdrawal, LedgerError> {
        let (mut all, mut from) = (Withdrawal::default(), None);
        loop {
            let part = self.ask_role(move |state: &mut State| state.forget(reporter, from, now)).await?;
            all.signatures += part.withdrawn;
            all.left += part.left;
            from = part.next;
            if from.is_none() {
                return Ok(all);
            }
        }
    }

    /// Records that the administrator vouches for a reporter, who is fully trusted until others contradict. Returns false if the table
    /// of reporters is full.
    ///
    /// # Errors
    /// If it is not on disk.
    pub async fn vouch(&self, reporter: ReporterId, now: u64) -> Result<bool, LedgerError> {
        self.ask_role(move |state: &mut State| state.vouch(reporter, now)).await
    }

    /// Returns the user reports made here, by mailing, and the trust in each reporter.
    ///
    /// # Errors
    /// If there are no counts.
    pub async fn overview(&self, asked: OverviewFilter) -> Result<Overview, LedgerError> {
        let gathered = self.query(move |state: &State| state.gather(asked.now)).await?;
        let sorted = off_thread(move || gathered.sort(&asked)).await?;
        self.query(move |state: &State| state.overview(&sorted, &asked)).await
    }

    /// Returns the reporter whose hash has this prefix.
    ///
    /// # Errors
    /// If there are no counts. [`Unclear`] if no reporter or several match.
    pub async fn reporter_of(&self, prefix: String) -> Result<Result<ReporterId, Unclear>, LedgerError> {
        let reporters = self.query(State::reporters).await?;
        off_thread(move || only(reporters, "reporter", &prefix)).await
    }

    /// Whether this reporter has reports here, or a trust of its own.
    ///
    /// # Errors
    /// As [`Self::reporter_of`].
    pub async fn knows_reporter(&self, reporter: ReporterId) -> Result<bool, LedgerError> {
        Ok(self.query(State::reporters).await?.contains(&reporter))
    }

    /// Returns the user reports about the mailing whose name has this prefix.
    ///
    /// # Errors
    /// As [`Self::reporter_of`].
    pub async fn mailing_reports(
        &self,
        prefix: String,
        now: u64,
    ) -> Result<Result<MailingReports, Unclear>, LedgerError> {
        let mailings = self.query(State::mailings).await?;
        let mailing = match off_thread(move || only(mailings, "mailing", &prefix)).await? {
            Ok(mailing) => mailing,
            Err(unclear) => return Ok(Err(unclear)),
        };
        self.query(move |state: &State| Ok(state.mailing_reports(mailing, now))).await
    }

    /// Returns the weighted user reports for these tagged signatures at the time `now`. A report by users of other sites weighs this many
    /// `thousandths` of a local one.
    ///
    /// # Errors
    /// If there are no counts.
    pub async fn weighed(
        &self,
        signatures: Vec<Signature>,
        thousandths: u32,
        now: u64,
    ) -> Result<Vec<u32>, LedgerError> {
        let weighed =
            move |state: &State| signatures.iter().map(|&of| state.weighed(of, thousandths, now)).collect();
        self.read(weighed).await
    }

    /// Whether any user report may still count. If not, no message needs a lookup.
    #[must_use]
    pub fn has_user_reports(&self) -> bool {
        self.shared.has_user_reports.load(Ordering::Relaxed)
    }
}

/// Runs slow work that needs no ledger on another thread, while mail is counted.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LedgerError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| LedgerError::Closed)
}
