// SPDX-License-Identifier: GPL-3.0-or-later
//! Optional addresses to listen on.

use super::address::Address;
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;

/// `HOST:PORT`, `unix:/PATH`, or nowhere (empty).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Listen(Option<Address>);

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(|address| Self(Some(address))) }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |address| address.fmt(f))
    }
}

impl Listen {
    /// Returns this port of the local machine.
    #[must_use]
    pub fn here(port: u16) -> Self {
        Self(Some(Address::Tcp(format!("127.0.0.1:{port}"))))
    }

    /// Returns the address, if there is one.
    #[must_use]
    pub const fn address(&self) -> Option<&Address> {
        self.0.as_ref()
    }

    /// Whether it is a literal address that other machines can reach. The address of a name is known only when it is bound.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        self.ip().is_some_and(|ip| !ip.is_loopback())
    }

    /// Whether it is a wildcard address, which is no target for clients.
    #[must_use]
    pub fn is_anywhere(&self) -> bool {
        self.ip().is_some_and(|ip| ip.is_unspecified())
    }

    fn ip(&self) -> Option<IpAddr> {
        self.0.as_ref()?.ip()
    }
}
