// SPDX-License-Identifier: GPL-3.0-or-later
//! By whom a message came: what evidence is told apart by.

use super::key::FederationKey;
use super::signature::Signature;
use super::sources::ClientNetwork;

/// Who brought a message, as far as that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The network of the client.
    pub network: Option<ClientNetwork>,
    /// The domain that stands behind the From field, if it was verified that it does. In lower case.
    pub domain: Option<String>,
}

impl Provenance {
    /// Those whose message it is, besides everybody's.
    pub fn whose(&self) -> impl Iterator<Item = Whose<'_>> {
        let domain = self.domain.as_deref().map(Whose::Domain);
        domain.into_iter().chain(self.network.map(Whose::Network))
    }
}

/// Whose messages something is said of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose<'a> {
    /// Everybody's.
    Everybody,
    /// Those of a domain, in lower case.
    Domain(&'a str),
    /// Those of a client network.
    Network(ClientNetwork),
}

/// The signature that says of another: it was found below what may be new text, in a message of theirs.
#[must_use]
pub fn stray_by(key: &FederationKey, of: Signature, whose: Whose<'_>) -> Signature {
    match whose {
        Whose::Everybody => key.stray_by(of, 0, &[]),
        Whose::Domain(domain) => key.stray_by(of, 1, domain.as_bytes()),
        Whose::Network(network) => key.stray_by(of, 2, network.bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn owners_kinds_and_keys_never_meet() {
        let other = FederationKey::from_bytes(b"0123456789abcdef").unwrap();
        let network = |ip: &str| Whose::Network(ClientNetwork::of(ip.parse().unwrap()));
        let whose = [
            Whose::Everybody,
            Whose::Domain(""),
            Whose::Domain("a.example"),
            network("192.0.2.7"),
            network("2001:db8::1"),
        ];
        let mut all = HashSet::new();
        for key in [&FederationKey::public(), &other] {
            for of in [1, 2].map(|n| Signature::from_bytes([n; 16])) {
                all.extend(whose.map(|whose| stray_by(key, of, whose)));
            }
        }
        assert_eq!(all.len(), 2 * 2 * whose.len());
    }
}
