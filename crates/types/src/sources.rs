// SPDX-License-Identifier: GPL-3.0-or-later
//! The client networks that a signature came from, as further signatures that are counted like all others, so that a whole federation gets
//! them. docs/signatures.md describes what they are made of, and why.

use super::key::FederationKey;
use super::signature::{Kind, Signature};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The number of buckets for networks. With 64, the four other networks of a campaign from five are in three different buckets in 99 of 100
/// cases, and all buckets of a signature can be looked up.
pub const BUCKETS: u8 = 64;

/// A network reports its bucket this many times at once, and the bucket counts as present from this count on. A full filter returns one or
/// two for a signature that was never reported, and a partner can add five: neither these nor both together should make a network.
pub const PRESENT: u32 = 8;

/// The network of a client: the first 24 bits of an IPv4 address, or the first 48 of an IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientNetwork {
    /// The first 24 bits of IPv4.
    V4([u8; 3]),
    /// The first 48 bits of IPv6.
    V6([u8; 6]),
}

impl ClientNetwork {
    /// The network of an address. An IPv4 address inside an IPv6 one (mapped, 6to4, or NAT64 with the well-known prefix) counts as IPv4:
    /// otherwise each of them would be a network, or all of them one.
    #[must_use]
    pub fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::of_v4(ip),
            IpAddr::V6(ip) => embedded(ip).map_or_else(|| Self::of_v6(ip), Self::of_v4),
        }
    }

    fn of_v4(ip: Ipv4Addr) -> Self {
        let [a, b, c, _] = ip.octets();
        Self::V4([a, b, c])
    }

    fn of_v6(ip: Ipv6Addr) -> Self {
        let octets = ip.octets();
        Self::V6(std::array::from_fn(|i| octets[i]))
    }

    /// Its bytes; IPv4 and IPv6 differ in their number.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        }
    }

    /// The network as other sites see it. A customer of an IPv6 provider has a /48, or may have a /44, out of the provider's /32; so a whole
    /// /32 is one network, like a /24 of IPv4. One's own copies are distinguished by the smaller network.
    #[must_use]
    pub fn provider(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6([bytes @ .., _, _]) => bytes,
        }
    }

    /// The bucket of its [provider](Self::provider), below [`BUCKETS`]: the same for all signatures, so that the buckets of several can be
    /// merged.
    #[must_use]
    pub fn bucket(&self, key: &FederationKey) -> u8 {
        key.network(self.provider()) % BUCKETS
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::V4([a, b, c]) => write!(f, "{}/24", Ipv4Addr::new(a, b, c, 0)),
            Self::V6(first) => {
                let octets: [u8; 16] = std::array::from_fn(|i| first.get(i).copied().unwrap_or(0));
                write!(f, "{}/48", Ipv6Addr::from(octets))
            }
        }
    }
}

/// The IPv4 address inside an address of 6to4 (RFC 3056) or NAT64 (RFC 6052).
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    match ip.octets() {
        [0x20, 0x02, a, b, c, d, ..] | [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => {
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

/// The signature that counts how often `of` came from this network.
#[must_use]
pub fn source_count(key: &FederationKey, of: Signature, network: &ClientNetwork) -> Signature {
    key.source_count(of, network.bytes())
}

/// The signature that marks that `of` came from some network of this bucket.
#[must_use]
pub fn source_bucket(key: &FederationKey, of: Signature, bucket: u8) -> Signature {
    key.source_bucket(of, bucket)
}

/// The signature that counts the messages with `of`, regardless of the number of recipients.
#[must_use]
pub fn message_count(key: &FederationKey, of: Signature) -> Signature {
    key.signature(Kind::Message, &[&of.to_bytes()])
}

/// The signature that stands for `of` in mail that one's own users send.
#[must_use]
pub fn outbound(key: &FederationKey, of: Signature) -> Signature {
    key.signature(Kind::Outbound, &[&of.to_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn network(ip: &str) -> String {
        ClientNetwork::of(ip.parse().unwrap()).to_string()
    }

    #[test]
    fn an_address_is_in_its_network() {
        for ip in ["192.0.2.7", "192.0.2.255", "::ffff:192.0.2.9", "2002:c000:207:1::1", "64:ff9b::192.0.2.8"]
        {
            assert_eq!(network(ip), "192.0.2.0/24", "{ip}");
        }
        assert_eq!(network("2001:db8:7:1::1"), "2001:db8:7::/48");
        assert_eq!(network("2001:db8:7:ffff:1::1"), "2001:db8:7::/48");
        assert_ne!(network("2001:db8:8::1"), network("2001:db8:7::1"));
        // For other sites, all customers of a provider are one network.
        let of = |ip: &str| ClientNetwork::of(ip.parse().unwrap());
        let key = FederationKey::public();
        let buckets: HashSet<u8> = (0..64).map(|n| of(&format!("2001:db8:{n:x}::1")).bucket(&key)).collect();
        assert_eq!(buckets.len(), 1);
        let buckets: HashSet<u8> = (0..64).map(|n| of(&format!("2001:{n:x}::1")).bucket(&key)).collect();
        assert!(buckets.len() > 30);
    }

    #[test]
    fn networks_kinds_and_keys_never_meet() {
        let key = FederationKey::public();
        let other = FederationKey::from_bytes(b"0123456789abcdef").unwrap();
        let [a, b] = [1, 2].map(|n| Signature::from_bytes([n; 16]));
        let networks = ["192.0.2.7", "192.0.3.7", "2001:db8:7::1"];
        let mut all = HashSet::from([a, b]);
        let mut made = 2;
        for key in [&key, &other] {
            for of in [a, b] {
                let counts =
                    networks.map(|ip| source_count(key, of, &ClientNetwork::of(ip.parse().unwrap())));
                all.extend(counts);
                all.extend([outbound(key, of), message_count(key, of)]);
                all.extend((0..BUCKETS).map(|bucket| source_bucket(key, of, bucket)));
                made += networks.len() + usize::from(BUCKETS) + 2;
            }
        }
        assert_eq!(all.len(), made);
    }

    #[test]
    fn networks_fall_into_all_buckets() {
        let key = FederationKey::public();
        let bucket = |n: u16| ClientNetwork::V4([10, n.to_le_bytes()[0], n.to_le_bytes()[1]]).bucket(&key);
        let mut full = [0u32; BUCKETS as usize];
        (0..6400).for_each(|n| full[usize::from(bucket(n))] += 1);
        assert!(full.iter().all(|&networks| (50..=160).contains(&networks)), "{full:?}");
    }
}
