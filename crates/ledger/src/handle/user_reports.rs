// SPDX-License-Identifier: GPL-3.0-or-later
//! What a milter's ledger is told of user reports.

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
    /// Counts what somebody says of a message, once for each signature. The answer comes when it is on disk.
    ///
    /// # Errors
    /// When it is not; then nothing was counted, and it can be said again.
    pub async fn say(&self, saying: Submission) -> Result<Tally, LedgerError> {
        self.ask_role(move |state: &mut State| state.submit(&saying)).await
    }

    /// From now on, and until somebody speaks by others, these rules hold for who is trusted how much.
    ///
    /// # Errors
    /// When there are no counts.
    pub async fn weigh_by(&self, weighing: Weighing) -> Result<(), LedgerError> {
        self.ask(move |state: &mut State| state.counts_mut().trust.weighing = weighing).await
    }

    /// Takes back all that a reporter said, whatever of, which is a newcomer again then. Returns of how many signatures it
    /// was taken back, and of how many it is left, and leaves with its window.
    ///
    /// # Errors
    /// When it is not on disk; then some of it may be taken back, and the rest can be.
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

    /// The administrator vouches for a reporter, which is trusted in full from now on, until others contradict it. False if as many are
    /// known as there is place for.
    ///
    /// # Errors
    /// When it is not on disk.
    pub async fn vouch(&self, reporter: ReporterId, now: u64) -> Result<bool, LedgerError> {
        self.ask_role(move |state: &mut State| state.vouch(reporter, now)).await
    }

    /// What was said here, by mailing, and who is trusted how much.
    ///
    /// # Errors
    /// When there are no counts.
    pub async fn overview(&self, asked: OverviewFilter) -> Result<Overview, LedgerError> {
        let gathered = self.look(move |state: &State| state.gather(asked.now)).await?;
        let sorted = aside(move || gathered.sort(&asked)).await?;
        self.look(move |state: &State| state.overview(&sorted, &asked)).await
    }

    /// The reporter whose hash begins so.
    ///
    /// # Errors
    /// When there are no counts. [`Unclear`] where none or several are meant.
    pub async fn reporter_of(&self, prefix: String) -> Result<Result<ReporterId, Unclear>, LedgerError> {
        let speakers = self.look(State::reporters).await?;
        aside(move || only(speakers, "reporter", &prefix)).await
    }

    /// Who spoke of the mailing whose name begins so.
    ///
    /// # Errors
    /// As [`Self::reporter_of`].
    pub async fn spoken_of(
        &self,
        prefix: String,
        now: u64,
    ) -> Result<Result<MailingReports, Unclear>, LedgerError> {
        let mailings = self.look(State::mailings).await?;
        let mailing = match aside(move || only(mailings, "mailing", &prefix)).await? {
            Ok(mailing) => mailing,
            Err(unclear) => return Ok(Err(unclear)),
        };
        self.look(move |state: &State| Ok(state.mailing_reports(mailing, now))).await
    }

    /// User reports by these tagged signatures, at the time `now`, where the word of others' users weighs so many thousandths of
    /// that of one's own.
    ///
    /// # Errors
    /// When there are no counts.
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

    /// Whether people said anything, of whatever message, that may still count. If not, nobody need be asked.
    #[must_use]
    pub fn has_user_reports(&self) -> bool {
        self.shared.has_user_reports.load(Ordering::Relaxed)
    }
}

/// Does what needs much time and no ledger: mail is counted meanwhile.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LedgerError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| LedgerError::Closed)
}
