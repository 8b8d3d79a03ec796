// SPDX-License-Identifier: GPL-3.0-or-later
//! What a milter's ledger is told of what people say.

use super::Ledger;
use crate::ledger::errors::LedgerError;
use crate::ledger::state::overview::{Asked, Overview};
use crate::ledger::state::roles::State;
use crate::ledger::state::voices::{Said, Saying, Weighing};
use crate::signature::{ReporterId, Signature};
use std::sync::atomic::Ordering;

impl Ledger {
    /// Counts what somebody says of a message, once for each signature. The answer comes when it is on disk.
    ///
    /// # Errors
    /// When it is not; then nothing was counted, and it can be said again.
    pub async fn say(&self, saying: Saying) -> Result<Said, LedgerError> {
        self.ask_role(move |state: &mut State| state.say(&saying)).await
    }

    /// From now on, and until somebody speaks by others, these rules hold for who is trusted how much.
    ///
    /// # Errors
    /// When there are no counts.
    pub async fn weigh_by(&self, weighing: Weighing) -> Result<(), LedgerError> {
        self.ask(move |state: &mut State| state.counts_mut().trust.weighing = weighing).await
    }

    /// Takes back all that a reporter said, whatever of, which is a newcomer again then. Returns for how many signatures.
    ///
    /// # Errors
    /// When it is not on disk; then some of it may be taken back, and the rest can be.
    pub async fn forget(&self, reporter: ReporterId, now: u64) -> Result<usize, LedgerError> {
        let mut taken_back = 0;
        loop {
            let forgotten = self.ask_role(move |state: &mut State| state.forget(reporter, now)).await?;
            taken_back += forgotten.taken_back;
            // What cannot be taken back any further is not tried for ever.
            if !forgotten.more || forgotten.taken_back == 0 {
                return Ok(taken_back);
            }
        }
    }

    /// What was said here, by mailing, and who is trusted how much.
    ///
    /// # Errors
    /// When there are no counts.
    pub async fn overview(&self, asked: Asked) -> Result<Overview, LedgerError> {
        self.look(move |state: &State| state.overview(&asked)).await
    }

    /// What people say by these tagged signatures, at the time `now`, where the word of others' users weighs so many thousandths of
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
    pub fn has_people(&self) -> bool {
        self.shared.has_people.load(Ordering::Relaxed)
    }
}
