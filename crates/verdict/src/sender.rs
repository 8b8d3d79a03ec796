// SPDX-License-Identifier: GPL-3.0-or-later
//! The sender of a message as evidence: text that keeps coming from the same origin with different text each time is a signature or
//! disclaimer; text that comes so from ever new origins is a disguised campaign.

use bulkmark_signature::near::Unsure;
use bulkmark_types::{FederationKey, LetterOrigin, Provenance, Signature, stray_by};

/// The number of reports of a message that may be a letter, for its domain and network. A full filter returns one or two for a signature that
/// was never reported, and a partner can add five: neither makes two letters.
const TIMES: u32 = 4;

/// The sender.
#[derive(Debug, Default)]
pub(super) struct Sender(pub(super) Provenance);

impl Sender {
    fn origins(&self) -> impl Iterator<Item = LetterOrigin<'_>> {
        std::iter::once(LetterOrigin::Everybody).chain(self.0.origins())
    }

    /// The number of signatures to look up for each near signature.
    pub(super) fn questions(&self) -> usize {
        self.origins().count()
    }

    /// The signatures that count how often `of` came in messages that may be letters, by origin.
    pub(super) fn ask(&self, key: &FederationKey, of: Signature) -> impl Iterator<Item = Signature> {
        self.origins().map(move |origin| stray_by(key, of, origin))
    }

    /// The evidence about `of` from these counts.
    pub(super) fn evidence(&self, counts: &[u32]) -> Unsure {
        let mut evidence = Unsure::default();
        for (origin, &count) in self.origins().zip(counts) {
            match origin {
                LetterOrigin::Everybody => evidence.all = count,
                LetterOrigin::Domain(_) => evidence.domain = count / TIMES,
                LetterOrigin::Network(_) => evidence.network = count / TIMES,
            }
        }
        evidence
    }

    /// The signatures that a message that may be a letter reports for a signature below its text, with their numbers.
    pub(super) fn report(
        &self,
        key: &FederationKey,
        of: Signature,
    ) -> impl Iterator<Item = (Signature, u32)> {
        self.origins().map(move |origin| {
            let times = if origin == LetterOrigin::Everybody { 1 } else { TIMES };
            (stray_by(key, of, origin), times)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_signature::near::Known;
    use bulkmark_types::ClientNetwork;
    use std::collections::HashMap;

    fn sender(domain: Option<&str>, ip: Option<&str>) -> Sender {
        let network = ip.map(|ip| ClientNetwork::of(ip.parse().unwrap()));
        Sender(Provenance { network, domain: domain.map(str::to_owned) })
    }

    fn is_own(unsure: Unsure) -> bool {
        Known { count: 20, unsure, ..Known::default() }.is_own_block()
    }

    /// The evidence for `to` after these letters, from a filter that adds `shown` to each count.
    fn evidence(letters: &[&Sender], to: &Sender, shown: u32) -> Unsure {
        let (key, of) = (FederationKey::public(), Signature::from_bytes([7; 16]));
        let mut ledger = HashMap::new();
        for letter in letters {
            for (signature, times) in letter.report(&key, of) {
                *ledger.entry(signature).or_insert(shown) += times;
            }
        }
        let asked: Vec<u32> =
            to.ask(&key, of).map(|asked| ledger.get(&asked).copied().unwrap_or(shown)).collect();
        assert_eq!(asked.len(), to.questions());
        to.evidence(&asked)
    }

    /// A full filter returns one or two, and three with a partner's share.
    #[test]
    fn false_counts_of_a_full_filter_are_no_letters() {
        for who in [sender(Some("a.example"), None), sender(None, Some("192.0.2.7"))] {
            for shown in 0..=3 {
                assert!(!is_own(evidence(&[], &who, shown)), "{shown}");
                assert!(!is_own(evidence(&[&who], &who, shown)), "one letter and {shown}");
                assert!(is_own(evidence(&[&who, &who], &who, shown)), "two letters and {shown}");
            }
        }
        let both = sender(Some("a.example"), Some("192.0.2.7"));
        assert_eq!(evidence(&[], &both, 3), Unsure { all: 3, domain: 0, network: 0 });
        assert_eq!(evidence(&[&both, &both], &both, 3), Unsure { all: 5, domain: 2, network: 2 });
    }

    #[test]
    fn letters_count_for_their_domain_and_network_and_for_everybody() {
        let here = sender(Some("a.example"), Some("192.0.2.7"));
        let neighbour = sender(Some("b.example"), Some("192.0.2.8"));
        let elsewhere = sender(Some("a.example"), Some("198.51.100.7"));
        let unknown = sender(None, None);
        let letters = [&here, &neighbour, &elsewhere, &elsewhere, &unknown];
        assert_eq!(evidence(&letters, &here, 0), Unsure { all: 5, domain: 3, network: 2 });
        assert_eq!(evidence(&letters, &neighbour, 0), Unsure { all: 5, domain: 1, network: 2 });
        assert_eq!(evidence(&letters, &elsewhere, 0), Unsure { all: 5, domain: 3, network: 2 });
        assert_eq!(evidence(&letters, &unknown, 0), Unsure { all: 5, domain: 0, network: 0 });
    }
}
