// SPDX-License-Identifier: GPL-3.0-or-later
//! A ledger in memory, asked as the milter asks its own.

use bulkmark_mail::RawMessage;
use bulkmark_policy::Counts;
use bulkmark_signature::{Settings, signatures};
use bulkmark_types::{FederationKey, Provenance, Signature};
use bulkmark_verdict::{Inquiry, Mode, Question};
use std::collections::HashMap;

/// Counts under one key.
pub(crate) struct Ledger {
    key: FederationKey,
    counts: HashMap<Signature, u32>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { key: FederationKey::public(), counts: HashMap::new() }
    }
}

impl Ledger {
    /// A ledger with the key of this number.
    pub(crate) fn under(key: u8) -> Self {
        let key = format!("the key number {key} of the tests");
        Self { key: FederationKey::from_bytes(key.as_bytes()).unwrap(), counts: HashMap::new() }
    }

    /// Reports a message and returns its near count, this one included; 0 if it has no near signatures.
    pub(crate) fn see(&mut self, raw: &[u8]) -> u32 {
        self.report(raw, 1).near.unwrap_or(0)
    }

    /// The same for a message from this sender.
    pub(crate) fn see_from(&mut self, sender: &Provenance, raw: &[u8]) -> u32 {
        self.count(raw, 1, sender.clone()).near.unwrap_or(0)
    }

    /// Reports a message to this many recipients.
    pub(crate) fn report(&mut self, raw: &[u8], recipients: u32) -> Counts {
        self.count(raw, recipients, Provenance::default())
    }

    fn count(&mut self, raw: &[u8], recipients: u32, sender: Provenance) -> Counts {
        let signatures = signatures(&RawMessage::from_bytes(raw), &self.key, &Settings::default());
        let mut inquiry = Inquiry::new(&signatures, &self.key, Mode::Report(recipients)).sent_by(sender);
        while let Some(Question { reported, once, also, asked, times, .. }) = inquiry.ask() {
            let all = reported.iter().map(|&signature| (signature, times));
            for (signature, times) in all.chain(once.iter().map(|&signature| (signature, 1))).chain(also) {
                *self.counts.entry(signature).or_default() += times;
            }
            let count = |signature| self.counts.get(signature).copied().unwrap_or(0);
            inquiry.answer(&[&reported, &once, &asked].into_iter().flatten().map(count).collect::<Vec<_>>());
        }
        inquiry.counts()
    }
}
