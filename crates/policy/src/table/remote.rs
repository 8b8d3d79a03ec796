// SPDX-License-Identifier: GPL-3.0-or-later
//! Tables of a server. This crate sends no requests: it returns the questions for a message, and takes the answers.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

/// The protocol of a table's server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// As in Postfix's socketmap_table(5), for the map of this name.
    Socketmap(String),
    /// As in Postfix's tcp_table(5).
    Tcp,
}

/// A table of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RemoteTable {
    /// The protocol.
    pub protocol: Protocol,
    /// `HOST:PORT`, or the path of a Unix socket, which begins with a slash.
    pub address: String,
}

impl FromStr for RemoteTable {
    type Err = &'static str;

    /// As Postfix writes it: `socketmap:inet:HOST:PORT:NAME`, `socketmap:unix:/PATH:NAME`, `tcp:HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str =
            "expected socketmap:inet:HOST:PORT:NAME, socketmap:unix:/PATH:NAME or tcp:HOST:PORT";
        let host_and_port = |address: &str| {
            let (host, port) = address.rsplit_once(':')?;
            (!host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)).then(|| address.to_owned())
        };
        let read = || {
            if let Some(address) = text.strip_prefix("tcp:") {
                return Some(Self { protocol: Protocol::Tcp, address: host_and_port(address)? });
            }
            let (address, name) = text.strip_prefix("socketmap:")?.rsplit_once(':')?;
            let address = match address.strip_prefix("unix:") {
                Some(path) => path.starts_with('/').then(|| path.to_owned()),
                None => host_and_port(address.strip_prefix("inet:")?),
            };
            let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
            Some(Self {
                protocol: Protocol::Socketmap(name.to_owned()),
                address: address.filter(|_| is_name)?,
            })
        };
        read().ok_or(EXPECTED)
    }
}

impl fmt::Display for RemoteTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.address.starts_with('/') { "unix" } else { "inet" };
        match &self.protocol {
            Protocol::Socketmap(name) => write!(f, "socketmap:{kind}:{}:{name}", self.address),
            Protocol::Tcp => write!(f, "tcp:{}", self.address),
        }
    }
}

/// A name to look up in a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Question {
    /// The table.
    pub table: RemoteTable,
    /// The normalized name.
    pub name: String,
    /// The keys under which it is looked up; the first that exists counts.
    pub keys: Vec<String>,
}

/// The answers of tables for a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answers {
    found: HashMap<RemoteTable, HashSet<String>>,
    /// The reason why a table did not answer, if that matters.
    pub failed: Option<String>,
}

impl Answers {
    /// Records that a table has the name of a question.
    pub fn add(&mut self, question: Question) {
        self.found.entry(question.table).or_default().insert(question.name);
    }

    pub(super) fn has(&self, table: &RemoteTable, name: &str) -> bool {
        self.found.get(table).is_some_and(|names| names.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_postfix() {
        for text in [
            "socketmap:inet:127.0.0.1:10055:wanted",
            "socketmap:unix:/run/a/s:b",
            "tcp:db.example:10040",
            "tcp:[::1]:1",
        ] {
            assert_eq!(text.parse::<RemoteTable>().map(|table| table.to_string()), Ok(text.to_owned()));
        }
        for bad in [
            "socketmap:inet:127.0.0.1:wanted",
            "socketmap:unix:run:a",
            "socketmap:unix:/run/a",
            "tcp:a",
            "tcp::1",
            "tcp:a:0",
        ] {
            assert!(bad.parse::<RemoteTable>().is_err(), "{bad}");
        }
    }
}
