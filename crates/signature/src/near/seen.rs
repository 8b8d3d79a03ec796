// SPDX-License-Identifier: GPL-3.0-or-later
//! What a ledger answered.

use super::known::Known;
use bulkmark_types::Signature;
use std::collections::HashMap;

/// What is known of signatures from before this message.
#[derive(Debug, Default)]
pub struct Seen(HashMap<Signature, Known>);

impl Seen {
    /// These were seen so many times each.
    pub fn add(&mut self, signatures: &[Signature], counts: &[u32]) {
        for (signature, &count) in signatures.iter().zip(counts) {
            self.0.entry(*signature).or_default().count = count;
        }
    }

    /// The [strays](super::stray) of these were seen so many times each.
    pub fn add_strays(&mut self, of: &[Signature], counts: &[u32]) {
        for (signature, &count) in of.iter().zip(counts) {
            self.0.entry(*signature).or_default().strays = count;
        }
    }

    /// What is known of it; what was not asked for was never seen.
    #[must_use]
    pub fn known(&self, signature: Signature) -> Known {
        self.0.get(&signature).copied().unwrap_or_default()
    }

    /// Whether it was seen at all.
    #[must_use]
    pub fn has(&self, signature: Signature) -> bool {
        self.known(signature).count > 0
    }
}
