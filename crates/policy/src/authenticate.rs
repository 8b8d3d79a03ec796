// SPDX-License-Identifier: GPL-3.0-or-later
//! `[authentication]`: the source of results of DKIM, SPF and DMARC.

use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The source of results of DKIM, SPF and DMARC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Authenticate {
    /// None.
    #[default]
    No,
    /// Authentication-Results of trusted servers.
    Header,
    /// The milter verifies them.
    #[serde(rename = "self")]
    Here,
}

/// The name under which a server reports its results, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AuthservId(pub(super) String);

impl TryFrom<String> for AuthservId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if text.is_empty() || !text.chars().all(is_plain) {
            return Err(format!("found \"{text}\", expected a name such as mx.example.org"));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

/// A DNS server: an address, with a port unless it is 53.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct NameServer(pub SocketAddr);

impl TryFrom<String> for NameServer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let address = text.parse().or_else(|_| text.parse().map(|ip: IpAddr| SocketAddr::new(ip, 53)));
        address.map(Self).map_err(|_| {
            format!("found \"{text}\", expected an address such as 192.0.2.53, or with a port 127.0.0.1:5353")
        })
    }
}

impl fmt::Display for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `[authentication]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Authentication {
    /// The source of results.
    pub authenticate: Authenticate,
    /// The trusted servers.
    pub authserv_ids: Vec<AuthservId>,
    /// The methods whose results count, since these servers verify them for every message.
    pub methods: Vec<Method>,
    /// The DNS servers for keys and records; if empty, those of the system.
    pub nameservers: Vec<NameServer>,
    /// The time that a message waits for all their answers together, a fifth of `verdict-deadline`.
    #[serde(skip)]
    pub timeout: Duration,
}

impl Default for Authentication {
    fn default() -> Self {
        Self {
            authenticate: Authenticate::No,
            authserv_ids: Vec::new(),
            methods: vec![Method::Dkim],
            nameservers: Vec::new(),
            timeout: Duration::from_secs(2),
        }
    }
}

impl Authentication {
    /// Whether results of this method count.
    pub(super) fn verifies(&self, method: &str) -> bool {
        match self.authenticate {
            Authenticate::No => false,
            Authenticate::Header => self.methods.iter().any(|one| one.name() == method),
            Authenticate::Here => true,
        }
    }

    /// Whether the milter verifies mail itself.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.authenticate == Authenticate::Here
    }

    /// Checks that the keys fit together.
    ///
    /// # Errors
    /// The key, and its problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.authenticate == Authenticate::Header && self.authserv_ids.is_empty() {
            let message = "authenticate is \"header\", expected the names of servers whose Authentication-Results fields count, \
                           such as [\"mx.example.org\"]";
            return Err(("authserv-ids", message.to_owned()));
        }
        Ok(())
    }
}

/// A method of authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// DKIM.
    Dkim,
    /// SPF.
    Spf,
    /// DMARC.
    Dmarc,
}

impl Method {
    /// The name in configurations and lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dkim => "dkim",
            Self::Spf => "spf",
            Self::Dmarc => "dmarc",
        }
    }
}
