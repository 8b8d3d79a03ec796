// SPDX-License-Identifier: GPL-3.0-or-later
//! Addresses to listen on, as in configurations.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The text of [`Endpoint::Systemd`] in configurations.
pub(super) const SYSTEMD: &str = "systemd";

/// An address: `HOST:PORT` or `unix:/PATH`. Postfix writes `inet:HOST:PORT` or `unix:/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Host and port, as one text.
    Tcp(String),
    /// The absolute path of a Unix socket.
    Unix(PathBuf),
}

/// Whether a text is `HOST:PORT`.
fn is_tcp(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            // `inet` would be a host.
            None if is_tcp(text) && !text.starts_with("inet:") => Ok(Self::Tcp(text.to_owned())),
            _ => Err(format!("found {text:?}, expected \"HOST:PORT\" or \"unix:/PATH\"")),
        }
    }
}

impl Address {
    /// Parses Postfix's notation.
    ///
    /// # Errors
    /// The text that was found and the expected form.
    pub fn of_postfix(text: &str) -> Result<Self, String> {
        let inet = text.strip_prefix("inet6:").or_else(|| text.strip_prefix("inet:"));
        let unix = text.strip_prefix("unix:").or_else(|| text.strip_prefix("local:"));
        match (inet, unix) {
            (Some(address), _) if is_tcp(address) => Ok(Self::Tcp(address.to_owned())),
            (_, Some(path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            _ => Err(format!(
                "found \"{text}\", expected inet:HOST:PORT such as \"inet:127.0.0.1:8720\", or unix:/PATH"
            )),
        }
    }

    /// Returns its IP address, if it has one. The addresses of a name are known only when it is bound.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        let Self::Tcp(address) = self else { return None };
        let host = address.rsplit_once(':').map_or(&**address, |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    /// Formats it in Postfix's notation.
    #[must_use]
    pub fn in_postfix(&self) -> String {
        match self {
            Self::Tcp(address) => format!("inet:{address}"),
            Self::Unix(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The endpoint of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// An address, which the daemon binds.
    At(Address),
    /// The socket that systemd passes.
    Systemd,
}

impl Endpoint {
    /// Returns this port of the local machine.
    #[must_use]
    pub fn here(port: u16) -> Self {
        Self::At(Address::Tcp(format!("127.0.0.1:{port}")))
    }

    fn read(text: &str, address: impl Fn(&str) -> Result<Address, String>) -> Result<Self, String> {
        if text == SYSTEMD {
            return Ok(Self::Systemd);
        }
        address(text).map(Self::At).map_err(|e| format!("{e}, or \"{SYSTEMD}\""))
    }

    /// Parses Postfix's notation, or `systemd`.
    ///
    /// # Errors
    /// The text that was found and the expected form.
    pub fn of_postfix(text: &str) -> Result<Self, String> {
        Self::read(text, Address::of_postfix)
    }

    /// Deserializes a key whose addresses are `HOST:PORT` or `unix:/PATH`.
    ///
    /// # Errors
    /// The text that was found and the expected form.
    pub fn plain<'de, D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        Self::read(&String::deserialize(value)?, str::parse).map_err(D::Error::custom)
    }

    /// Deserializes a key whose addresses are in Postfix's notation.
    ///
    /// # Errors
    /// As [`plain`](Self::plain).
    pub fn postfix<'de, D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        Self::of_postfix(&String::deserialize(value)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for good in ["inet:127.0.0.1:8720", "inet:[::1]:8720", "inet:localhost:0", "unix:/run/b.sock"] {
            assert_eq!(Address::of_postfix(good).unwrap().in_postfix(), good);
        }
        for bad in
            ["", "inet:8720", "inet:127.0.0.1:99999", "unix:run/b.sock", "127.0.0.1:8720", "inet::8720"]
        {
            assert!(Address::of_postfix(bad).is_err(), "{bad}");
        }
        for good in ["127.0.0.1:8720", "[::1]:8720", "localhost:0", "unix:/run/b.sock"] {
            assert_eq!(good.parse::<Address>().unwrap().to_string(), good);
        }
        for bad in ["", "8720", ":8720", "inet:127.0.0.1:8720", "127.0.0.1:99999", "unix:run/b.sock", "unix:"]
        {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
