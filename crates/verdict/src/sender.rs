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
        Known { count: 50, unsure, ..Known::default() }.is_own_block()
    }

    /// What `to` learns after these letters, from a filter that adds `shown` to each count.
    fn told(letters: &[&Sender], to: &Sender, shown: u32) -> Unsure {
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
        to.told(&asked)
    }

    /// A full filter shows one or two, and three with a partner's share.
    #[test]
    fn what_a_full_filter_shows_is_no_letter() {
        for who in [sender(Some("a.example"), None), sender(None, Some("192.0.2.7"))] {
            for shown in 0..=3 {
                assert!(!is_own(told(&[], &who, shown)), "{shown}");
                assert!(!is_own(told(&[&who], &who, shown)), "one letter and {shown}");
                assert!(is_own(told(&[&who, &who], &who, shown)), "two letters and {shown}");
            }
        }
        let both = sender(Some("a.example"), Some("192.0.2.7"));
        assert_eq!(told(&[], &both, 3), Unsure { all: 3, domain: 0, network: 0 });
        assert_eq!(told(&[&both, &both], &both, 3), Unsure { all: 5, domain: 2, network: 2 });
    }

    #[test]
    fn letters_are_of_their_domain_and_network_and_of_everybody() {
        let here = sender(Some("a.example"), Some("192.0.2.7"));
        let neighbour = sender(Some("b.example"), Some("192.0.2.8"));
        let elsewhere = sender(Some("a.example"), Some("198.51.100.7"));
        let unknown = sender(None, None);
        let letters = [&here, &neighbour, &elsewhere, &elsewhere, &unknown];
        assert_eq!(told(&letters, &here, 0), Unsure { all: 5, domain: 3, network: 2 });
        assert_eq!(told(&letters, &neighbour, 0), Unsure { all: 5, domain: 1, network: 2 });
        assert_eq!(told(&letters, &elsewhere, 0), Unsure { all: 5, domain: 3, network: 2 });
        assert_eq!(told(&letters, &unknown, 0), Unsure { all: 5, domain: 0, network: 0 });
    }
}
