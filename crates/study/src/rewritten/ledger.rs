// SPDX-License-Identifier: GPL-3.0-or-later
//! A ledger in memory, and its counts of messages.

use bulkmark_mail::RawMessage;
use bulkmark_signature::signatures;
use bulkmark_types::{ClientNetwork, FederationKey, Provenance, Signature};
use bulkmark_verdict::{Inquiry, Mode, Question};
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// The mail so far under one key.
pub(super) struct Ledger<'a> {
    key: &'a FederationKey,
    settings: bulkmark_signature::Settings,
    counts: HashMap<Signature, u32>,
    /// The number of messages so far, each from another network.
    messages: u32,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(key: &'a FederationKey) -> Self {
        Self { key, settings: bulkmark_signature::Settings::default(), counts: HashMap::new(), messages: 0 }
    }

    /// Counts a message to one recipient; returns the highest of its counts, 0 if it is not counted.
    pub(super) fn count(&mut self, message: &RawMessage) -> u32 {
        let signatures = signatures(message, self.key, &self.settings);
        self.messages += 1;
        let network = ClientNetwork::of(Ipv4Addr::from_bits(self.messages << 8).into());
        let sender = Provenance { network: Some(network), domain: None };
        let mut inquiry = Inquiry::new(&signatures, self.key, Mode::Report(1)).sent_by(sender);
        while let Some(Question { reported, once, also, asked, times, .. }) = inquiry.ask() {
            for (signature, times) in also {
                *self.counts.entry(signature).or_default() += times;
            }
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
