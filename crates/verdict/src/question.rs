// SPDX-License-Identifier: GPL-3.0-or-later
//! What an inquiry puts to a ledger.

use bulkmark_types::{FederationKey, Signature, outbound};

/// What to put to the ledger. The answer has a count for each signature, in the order of the fields; those of what is reported
/// include this report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// What was seen `times` times.
    pub reported: Vec<Signature>,
    /// What was seen once, to however many recipients the message goes. No signature is in both, or twice in one.
    pub once: Vec<Signature>,
    /// What follows from answers before, and how often each is added. The answer has no counts for these.
    pub also: Vec<(Signature, u32)>,
    /// Whether that follows from the count of the body: whoever has the body's signature can tell it.
    pub also_exact: bool,
    /// What is only asked for.
    pub asked: Vec<Signature>,
    /// How many of these, the last ones, follow from the body's signature.
    pub asked_exact: usize,
    /// How often `reported` was seen; nothing is reported if it is zero.
    pub times: u32,
}

impl Question {
    /// The same about signatures that stand for these in outbound mail.
    pub(super) fn apart(self, key: &FederationKey) -> Self {
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
