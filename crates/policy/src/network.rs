// SPDX-License-Identifier: GPL-3.0-or-later
//! Networks of IP addresses.

use ipnet::IpNet;
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network, written as `192.0.2.0/24` or `2001:db8::/32`; a single address is a network too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Network(IpNet);

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Network {
    /// Whether it has all addresses of IPv4 or IPv6.
    #[must_use]
    pub fn is_everybody(&self) -> bool {
        self.0.prefix_len() == 0
    }

    /// Whether the address is in it; an IPv4 address that is written as IPv6 counts as IPv4.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.0.contains(&ip.to_canonical())
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network
            .map(|network| Self(network.trunc()))
            .map_err(|_| format!("found \"{text}\", expected an address or network such as 192.0.2.0/24"))
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
