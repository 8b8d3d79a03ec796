// SPDX-License-Identifier: GPL-3.0-or-later
//! Mailings, indexed by their signatures.

use super::order::Allowance;
use bulkmark_signature::Signatures;
use bulkmark_signature::near::Seen;
use bulkmark_types::Signature;
use bulkmark_verdict::belongs_to;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Mailings in the form in which messages are compared with them.
#[derive(Debug, Default)]
pub(super) struct Mailings {
    /// The signatures of each mailing, in the order of the list.
    all: Vec<HashSet<Signature>>,
    /// The indexes of the mailings with a signature.
    by_signature: HashMap<Signature, Vec<usize>>,
}

impl Mailings {
    pub(super) fn new<'a>(orders: impl Iterator<Item = &'a Allowance>) -> Self {
        let all: Vec<HashSet<_>> = orders.map(|order| order.parsed().collect()).collect();
        let mut by_signature: HashMap<_, Vec<usize>> = HashMap::new();
        for (i, signatures) in all.iter().enumerate() {
            signatures.iter().for_each(|&signature| by_signature.entry(signature).or_default().push(i));
        }
        Self { all, by_signature }
    }

    /// Returns the indexes of the mailings of a message with these signatures and counts, the lowest first. Costs one lookup for each signature,
    /// and more only for mailings with one of them, which `may_compare` can bound.
    pub(super) fn find(
        &self,
        signatures: &Signatures,
        counted: Option<&Seen>,
        mut may_compare: impl FnMut(usize) -> bool,
    ) -> Vec<usize> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let near = signatures.near.reported().chain(signatures.near.looked_up());
        let all = signatures.body.ok().into_iter().chain(near);
        let candidates: BTreeSet<usize> =
            all.filter_map(|signature| self.by_signature.get(&signature)).flatten().copied().collect();
        let belongs = |i: &usize| may_compare(*i) && belongs_to(&self.all[*i], signatures, counted);
        candidates.into_iter().filter(belongs).collect()
    }
}
