// SPDX-License-Identifier: GPL-3.0-or-later
//! Groups of addresses that count as one user.

use std::net::{IpAddr, Ipv6Addr};

/// Returns the address under which an address counts: an IPv4 address itself; of an IPv6 address the first 64 bits, since one user usually
/// has all addresses that begin so.
#[must_use]
pub fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_counts_as_one() {
        for (address, network) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(network_of(address.parse().unwrap()), network.parse::<IpAddr>().unwrap());
        }
    }
}
