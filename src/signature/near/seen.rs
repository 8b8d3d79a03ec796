// SPDX-License-Identifier: GPL-3.0-or-later
//! What a ledger answered.

use crate::signature::types::Signature;
use std::collections::HashMap;

/// How often signatures were seen before this message.
#[derive(Debug, Default)]
pub struct Seen(HashMap<Signature, u32>);

impl Seen {
    /// Of these signatures, so many times each.
    #[must_use]
    pub fn new(signatures: &[Signature], counts: &[u32]) -> Self {
        let mut seen = Self::default();
        seen.add(signatures, counts);
        seen
    }

    /// The same of others.
    pub fn add(&mut self, signatures: &[Signature], counts: &[u32]) {
        self.0.extend(signatures.iter().copied().zip(counts.iter().copied()));
    }

    /// How often; what was not asked for was never seen.
    #[must_use]
    pub fn count(&self, signature: Signature) -> u32 {
        self.0.get(&signature).copied().unwrap_or(0)
    }

    /// Whether it was seen at all.
    #[must_use]
    pub fn has(&self, signature: Signature) -> bool {
        self.count(signature) > 0
    }
}
