// SPDX-License-Identifier: GPL-3.0-or-later
//! From the signatures of a message to user reports of it, by two questions: what was nominated, and what of that was revoked.
//!
//! It is judged as counts are: by the body, or by as much agreement of the other signatures as bulk needs.

use super::allowed::agreement;
use bulkmark_policy::Weight;
use bulkmark_signature::Signatures;
use bulkmark_signature::near::Seen;
use bulkmark_types::{FederationKey, Signature, nomination, revocation};

/// User reports of one message. Ask for the weights of [`nominations`](Self::nominations), then of
/// [`revocations`](Self::revocations).
#[derive(Debug)]
pub struct Hearing<'a> {
    signatures: &'a Signatures,
    /// Each signature with its nomination, and what is said by that.
    said: Vec<(Signature, Signature, u32)>,
}

impl<'a> Hearing<'a> {
    /// About a message with these signatures, which were made under `key`.
    #[must_use]
    pub fn new(signatures: &'a Signatures, key: &FederationKey) -> Self {
        let near = &signatures.near;
        let mut all: Vec<Signature> = signatures.body.ok().into_iter().collect();
        for signature in near.reported().chain(near.looked_up()) {
            if !all.contains(&signature) {
                all.push(signature);
            }
        }
        let said = all.into_iter().map(|of| (of, nomination(key, of), 0)).collect();
        Self { signatures, said }
    }

    /// What is to be asked first.
    #[must_use]
    pub fn nominations(&self) -> Vec<Signature> {
        self.said.iter().map(|&(_, nomination, _)| nomination).collect()
    }

    /// What is to be asked then: of what was nominated, by these weights in the order of the question. Nothing of a message that
    /// nobody called spam.
    pub fn revocations(&mut self, nominated: &[u32]) -> Vec<Signature> {
        self.said.iter_mut().zip(nominated).for_each(|((.., said), &weight)| *said = weight);
        self.said.retain(|&(.., weight)| weight > 0);
        self.said.iter().map(|&(_, nomination, _)| revocation(nomination)).collect()
    }

    /// Takes the weights of the revocations.
    pub fn revoked(&mut self, weights: &[u32]) {
        self.said
            .iter_mut()
            .zip(weights)
            .for_each(|((.., said), &weight)| *said = said.saturating_sub(weight));
        self.said.retain(|&(.., weight)| weight > 0);
    }

    /// Whether anybody called it spam, and it was not all revoked.
    #[must_use]
    pub fn is_said(&self) -> bool {
        !self.said.is_empty()
    }

    /// How much it is called spam. `counted` is what is known of how often its signatures were seen: passages that keep coming with
    /// new text are no evidence here, either. Where that is not known, only the body is.
    #[must_use]
    pub fn weight(&self, counted: Option<&Seen>) -> Weight {
        let body = self.signatures.body.ok();
        let exact = self.said.iter().find(|(of, ..)| Some(*of) == body).map_or(0, |&(.., weight)| weight);
        let near = counted.map_or(0, |counted| self.near(counted));
        Weight::of_units(exact.max(near))
    }

    fn near(&self, counted: &Seen) -> u32 {
        if self.signatures.near.is_empty() || !self.is_said() {
            return 0;
        }
        let said: Vec<_> = self.said.iter().map(|&(of, _, weight)| (of, weight)).collect();
        agreement(&self.signatures.near, &said, counted)
    }
}
