// SPDX-License-Identifier: GPL-3.0-or-later
//! A ledger in memory, and what a message counts by it.

use bulkmark_mail::RawMessage;
use bulkmark_signature::signatures;
use bulkmark_types::{FederationKey, Signature};
use bulkmark_verdict::{Inquiry, Mode, Question};
use std::collections::HashMap;

/// What went by under one key.
pub(super) struct Ledger<'a> {
    key: &'a FederationKey,
    settings: bulkmark_signature::Settings,
    counts: HashMap<Signature, u32>,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(key: &'a FederationKey) -> Self {
        Self { key, settings: bulkmark_signature::Settings::default(), counts: HashMap::new() }
    }

    /// Counts a message to one recipient; the highest of its counts, 0 where it is not counted.
    pub(super) fn count(&mut self, message: &RawMessage) -> u32 {
        let signatures = signatures(message, self.key, &self.settings);
        let mut inquiry = Inquiry::new(&signatures, self.key, Mode::Report(1));
        while let Some(Question { reported, once, asked, times, .. }) = inquiry.ask() {
            for (signatures, times) in [(&reported, times), (&once, 1)] {
                for signature in signatures {
                    *self.counts.entry(*signature).or_default() += times;
                }
            }
            let all = [&reported, &once, &asked].into_iter().flatten();
            let counts: Vec<u32> = all.map(|s| self.counts.get(s).copied().unwrap_or(0)).collect();
            inquiry.answer(&counts);
        }
        let counts = inquiry.counts();
        counts.body.unwrap_or(0).max(counts.near.unwrap_or(0))
    }
}
