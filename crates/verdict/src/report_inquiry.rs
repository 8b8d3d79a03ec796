// SPDX-License-Identifier: GPL-3.0-or-later
//! From the signatures of a message to the weight of its user reports, by two questions: for nominations, and for revocations of the
//! nominated signatures.
//!
//! The weight is judged as counts are: by the body, or by as much agreement of the other signatures as bulk needs.

use super::allowed::agreement;
use bulkmark_policy::Weight;
use bulkmark_signature::Signatures;
use bulkmark_signature::near::Seen;
use bulkmark_types::{FederationKey, Signature, nomination, revocation};

/// The user reports of one message. Ask for the weights of [`nominations`](Self::nominations), then of [`revocations`](Self::revocations).
#[derive(Debug)]
pub struct ReportInquiry<'a> {
    signatures: &'a Signatures,
    /// Each signature with its nomination and the weight of that.
    weights: Vec<(Signature, Signature, u32)>,
}

impl<'a> ReportInquiry<'a> {
    /// An inquiry about a message with these signatures, which were made under `key`.
    #[must_use]
    pub fn new(signatures: &'a Signatures, key: &FederationKey) -> Self {
        let near = &signatures.near;
        let mut all: Vec<Signature> = signatures.body.ok().into_iter().collect();
        for signature in near.reported().chain(near.looked_up()) {
            if !all.contains(&signature) {
                all.push(signature);
            }
        }
        let weights = all.into_iter().map(|of| (of, nomination(key, of), 0)).collect();
        Self { signatures, weights }
    }

    /// The first question.
    #[must_use]
    pub fn nominations(&self) -> Vec<Signature> {
        self.weights.iter().map(|&(_, nomination, _)| nomination).collect()
    }

    /// The second question: the revocations of the nominated signatures. `nominated` are the weights in the order of the first question.
    /// Empty for a message that nobody nominated.
    pub fn revocations(&mut self, nominated: &[u32]) -> Vec<Signature> {
        self.weights.iter_mut().zip(nominated).for_each(|((.., weight), &nominated)| *weight = nominated);
        self.weights.retain(|&(.., weight)| weight > 0);
        self.weights.iter().map(|&(_, nomination, _)| revocation(nomination)).collect()
    }

    /// Subtracts the weights of the revocations.
    pub fn revoked(&mut self, weights: &[u32]) {
        self.weights
            .iter_mut()
            .zip(weights)
            .for_each(|((.., weight), &revoked)| *weight = weight.saturating_sub(revoked));
        self.weights.retain(|&(.., weight)| weight > 0);
    }

    /// Whether it was nominated, and not all of that was revoked.
    #[must_use]
    pub fn has_reports(&self) -> bool {
        !self.weights.is_empty()
    }

    /// The weight of spam reports. `counted` has the counts of its signatures: passages that keep coming with new text are no evidence here,
    /// either. Without it, only the body counts.
    #[must_use]
    pub fn weight(&self, counted: Option<&Seen>) -> Weight {
        let body = self.signatures.body.ok();
        let exact = self.weights.iter().find(|(of, ..)| Some(*of) == body).map_or(0, |&(.., weight)| weight);
        let near = counted.map_or(0, |counted| self.near(counted));
        Weight::of_units(exact.max(near))
    }

    fn near(&self, counted: &Seen) -> u32 {
        if self.signatures.near.is_empty() || !self.has_reports() {
            return 0;
        }
        let weights: Vec<_> = self.weights.iter().map(|&(of, _, weight)| (of, weight)).collect();
        agreement(&self.signatures.near, &weights, counted)
    }
}
