// SPDX-License-Identifier: GPL-3.0-or-later
//! The provenance of a message: the origins by which letters are distinguished.

use super::key::FederationKey;
use super::signature::Signature;
use super::sources::ClientNetwork;

/// The sender of a message, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The network of the client.
    pub network: Option<ClientNetwork>,
    /// The verified domain of the From field, in lower case.
    pub domain: Option<String>,
}

impl Provenance {
    /// The origins of this message besides [`LetterOrigin::Everybody`].
    pub fn origins(&self) -> impl Iterator<Item = LetterOrigin<'_>> {
        let domain = self.domain.as_deref().map(LetterOrigin::Domain);
        domain.into_iter().chain(self.network.map(LetterOrigin::Network))
    }
}

/// The origin of a letter: the senders whose messages a [`stray_by`] signature counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LetterOrigin<'a> {
    /// All senders.
    Everybody,
    /// A domain, in lower case.
    Domain(&'a str),
    /// A client network.
    Network(ClientNetwork),
}

/// The signature that counts how often `of` was below text that may be new, in messages of this origin.
#[must_use]
pub fn stray_by(key: &FederationKey, of: Signature, origin: LetterOrigin<'_>) -> Signature {
    match origin {
        LetterOrigin::Everybody => key.stray_by(of, 0, &[]),
        LetterOrigin::Domain(domain) => key.stray_by(of, 1, domain.as_bytes()),
        LetterOrigin::Network(network) => key.stray_by(of, 2, network.bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn owners_kinds_and_keys_never_meet() {
        let other = FederationKey::from_bytes(b"0123456789abcdef").unwrap();
        let network = |ip: &str| LetterOrigin::Network(ClientNetwork::of(ip.parse().unwrap()));
        let origins = [
            LetterOrigin::Everybody,
            LetterOrigin::Domain(""),
            LetterOrigin::Domain("a.example"),
            network("192.0.2.7"),
            network("2001:db8::1"),
        ];
        let mut all = HashSet::new();
        for key in [&FederationKey::public(), &other] {
            for of in [1, 2].map(|n| Signature::from_bytes([n; 16])) {
                all.extend(origins.map(|origin| stray_by(key, of, origin)));
            }
        }
        assert_eq!(all.len(), 2 * 2 * origins.len());
    }
}
