// SPDX-License-Identifier: GPL-3.0-or-later
//! Who sends a message, and what that tells of it: text that comes from the same senders again and again with ever other text is
//! their signature or disclaimer; text that comes so from ever new ones is a campaign in disguise.

use bulkmark_signature::near::Unsure;
use bulkmark_types::{FederationKey, Provenance, Signature, Whose, stray_by};

/// A message that may be a letter is reported so many times for its sender. A full filter shows one or two for what was never
/// reported, and a partner can add five: neither makes two letters.
const TIMES: u32 = 4;

/// Who sends it.
#[derive(Debug, Default)]
pub(super) struct Sender(pub(super) Provenance);

impl Sender {
    fn whose(&self) -> impl Iterator<Item = Whose<'_>> {
        std::iter::once(Whose::Everybody).chain(self.0.whose())
    }

    /// How many signatures are asked for each.
    pub(super) fn questions(&self) -> usize {
        self.whose().count()
    }

    /// The signatures that say how often `of` came in messages that may be letters.
    pub(super) fn ask(&self, key: &FederationKey, of: Signature) -> impl Iterator<Item = Signature> {
        self.whose().map(move |whose| stray_by(key, of, whose))
    }

    /// What is said of `of` by the counts of these.
    pub(super) fn told(&self, counts: &[u32]) -> Unsure {
        let mut told = Unsure::default();
        for (whose, &count) in self.whose().zip(counts) {
            match whose {
                Whose::Everybody => told.all = count,
                Whose::Domain(_) => told.domain = count / TIMES,
                Whose::Network(_) => told.network = count / TIMES,
            }
        }
        told
    }

    /// What a message that may be a letter reports of what stands below it, and how often.
    pub(super) fn report(
        &self,
        key: &FederationKey,
        of: Signature,
    ) -> impl Iterator<Item = (Signature, u32)> {
        self.whose().map(move |whose| {
            let times = if whose == Whose::Everybody { 1 } else { TIMES };
            (stray_by(key, of, whose), times)
        })
    }
}
