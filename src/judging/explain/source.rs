// SPDX-License-Identifier: GPL-3.0-or-later
//! The source of counts and of a milter's other knowledge: the daemon itself, or a command that asks it.

use crate::lookup::{Evidence, Tables, Verifiers};
use crate::orders::Orders;
use bulkmark_counts::Shares;
use bulkmark_types::Signature;
use bulkmark_verdict::{Envelope, Rules};

/// A message to explain.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The rules in force.
    pub rules: &'a Rules,
    /// The envelope.
    pub envelope: &'a Envelope,
    /// The evidence for verification.
    pub evidence: Option<&'a Evidence>,
}

/// A source of counts.
pub trait Source: Sync {
    /// The reason why there are none.
    type Error: Send;

    /// The counts of these signatures, in their order. If it `may_ask`, a source with a partial copy asks its server for the rest.
    fn shares(
        &self,
        signatures: &[Signature],
        may_ask: bool,
    ) -> impl Future<Output = Result<Vec<Shares>, Self::Error>> + Send;

    /// Which of these pairs of a user and a correspondent exist.
    fn know(&self, pairs: &[u64]) -> impl Future<Output = Vec<bool>> + Send;

    /// Whether it has only a partial copy of others' counts.
    fn is_partial(&self) -> bool;

    /// The administrator's orders.
    fn orders(&self) -> &Orders;

    /// The client of white lists' remote tables.
    fn tables(&self) -> &Tables;

    /// The verifiers of mail.
    fn verifiers(&self) -> &Verifiers;
}
