// SPDX-License-Identifier: GPL-3.0-or-later
//! Who knows counts, and what else a milter knows: the daemon itself, or a command that asks it.

use crate::lookup::{Evidence, Tables, Verifiers};
use crate::orders::Orders;
use bulkmark_counts::Shares;
use bulkmark_types::Signature;
use bulkmark_verdict::{Envelope, Rules};

/// A message that is asked about.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The rules in force.
    pub rules: &'a Rules,
    /// Who sends it to whom.
    pub envelope: &'a Envelope,
    /// What can be verified of it.
    pub evidence: Option<&'a Evidence>,
}

/// Who knows counts.
pub trait Source: Sync {
    /// Why there are none.
    type Error: Send;

    /// Those of these signatures, in their order. Where it may ask, who holds only a part asks others for the rest.
    fn shares(
        &self,
        signatures: &[Signature],
        may_ask: bool,
    ) -> impl Future<Output = Result<Vec<Shares>, Self::Error>> + Send;

    /// Which of these pairs of a user and somebody the user wrote to there are.
    fn know(&self, pairs: &[u64]) -> impl Future<Output = Vec<bool>> + Send;

    /// Whether only bulk is held of others' counts.
    fn is_partial(&self) -> bool;

    /// What the administrator ordered.
    fn orders(&self) -> &Orders;

    /// Who asks the tables of white lists.
    fn tables(&self) -> &Tables;

    /// Who verifies mail.
    fn verifiers(&self) -> &Verifiers;
}
