// SPDX-License-Identifier: GPL-3.0-or-later
//! A question of an inquiry to a ledger.

use bulkmark_types::{FederationKey, Signature, outbound};

/// A question to the ledger: reports and look-ups. The answer has a count for each signature, in the order of the fields; those of reported
/// signatures include this report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// Signatures to report `times` times.
    pub reported: Vec<Signature>,
    /// Signatures to report once, regardless of recipients. No signature is in both, or twice in one.
    pub once: Vec<Signature>,
    /// Signatures that derive from earlier answers, and the number to add for each. The answer has no counts for these.
    pub also: Vec<(Signature, u32)>,
    /// Whether they derive from the body's count: anybody with the body's signature can compute them.
    pub also_exact: bool,
    /// Signatures to look up.
    pub asked: Vec<Signature>,
    /// The number of those at the end that derive from the body's signature.
    pub asked_exact: usize,
    /// The number of reports of `reported`; if zero, nothing is reported.
    pub times: u32,
}

impl Question {
    /// The same for the signatures that stand for these in outbound mail.
    pub(super) fn outbound(self, key: &FederationKey) -> Self {
        let all = |of: Vec<Signature>| of.into_iter().map(|signature| outbound(key, signature)).collect();
        let Self { reported, once, also, also_exact, asked, asked_exact, times } = self;
        let also = also.into_iter().map(|(signature, times)| (outbound(key, signature), times)).collect();
        Self {
            reported: all(reported),
            once: all(once),
            also,
            also_exact,
            asked: all(asked),
            asked_exact,
            times,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reported.is_empty() && self.once.is_empty() && self.also.is_empty() && self.asked.is_empty()
    }
}
