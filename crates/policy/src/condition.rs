// SPDX-License-Identifier: GPL-3.0-or-later
//! One condition of an entry: a form and a value.

use super::authentication::VerifiedNames;
use super::facts::Facts;
use super::name::Name;
use super::network::Network;
use super::patterns::Pattern;
use super::table::{KINDS, RemoteTable, Table};
use bulkmark_types::Signature;
use std::fmt;
use std::sync::Arc;

/// A condition that must hold for an entry to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Ip(Network),
    Host(Pattern),
    Sender(Pattern),
    NullSender,
    From(Pattern),
    Recipient(Pattern),
    ListId(Pattern),
    Signature(Signature),
    Dkim(Pattern),
    Spf(Pattern),
    Dmarc(Pattern),
}

/// Opens tables.
pub(super) trait Open {
    /// Opens the table of this kind in the file that Postfix calls `path`.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    fn open(&mut self, kind: &str, path: &str) -> Result<Table, String>;
}

/// Reads an entry: one condition, or several with "&" between them.
///
/// # Errors
/// The text that was found, and the expected one.
pub(super) fn parse(entry: &str, open: &mut dyn Open) -> Result<Vec<Condition>, String> {
    let words: Vec<&str> = entry.split_whitespace().collect();
    let conditions = words.split(|&word| word == "&").map(|words| {
        let (form, value) =
            words.split_first().map_or(("", String::new()), |(form, value)| (*form, value.join(" ")));
        Condition::parse(form, &value, open)
    });
    conditions.collect()
}

/// The table that a value names, if it names one.
fn table(form: &str, value: &str, open: &mut dyn Open) -> Option<Result<Pattern, String>> {
    let (kind, path) = value.split_once(':')?;
    let table = match kind {
        _ if ["ip", "signature"].contains(&form) => return None,
        "cdb" | "lmdb" => open.open(kind, path),
        "socketmap" | "tcp" => {
            let table =
                value.parse().map_err(|expected| format!("found \"{value}\" after {form}, {expected}"));
            table.map(|table| Table::Remote(Arc::new(table)))
        }
        _ if OTHER_KINDS.contains(&kind) => Err(format!(
            "found \"{value}\" after {form}, expected a table of the type {KINDS}; postmap(1) makes cdb and lmdb"
        )),
        _ => return None,
    };
    Some(table.map(Pattern::Table))
}

/// Postfix's other types of tables, for a better error message.
const OTHER_KINDS: [&str; 20] = [
    "btree", "cidr", "dbm", "environ", "fail", "hash", "inline", "internal", "ldap", "memcache", "mysql",
    "nis", "pcre", "pgsql", "pipemap", "proxy", "regexp", "sqlite", "static", "texthash",
];

impl Condition {
    fn parse(form: &str, value: &str, open: &mut dyn Open) -> Result<Self, String> {
        let bare = value.strip_prefix('<').and_then(|v| v.strip_suffix('>')).unwrap_or(value);
        let table = table(form, value, open).transpose()?;
        let pattern = |text| table.clone().or_else(|| Pattern::parse(text));
        let address = || pattern(bare);
        let no_user = |text| pattern(text).filter(|pattern| !matches!(pattern, Pattern::User(_)));
        let domain =
            || no_user(value).filter(|pattern| table.is_some() || !pattern.to_string().contains('@'));
        let (condition, expected) = match form {
            "ip" => (value.parse().ok().map(Self::Ip), "an address or network such as 192.0.2.0/24"),
            "host" => (no_user(value).map(Self::Host), "a host name, a domain, or .domain for all below it"),
            "sender" if value == "<>" => (Some(Self::NullSender), ""),
            "sender" => (address().map(Self::Sender), "an address, a domain, .domain, user@ or <>"),
            "from" => (address().map(Self::From), "an address, a domain, .domain or user@"),
            "recipient" => (address().map(Self::Recipient), "an address, a domain, .domain or user@"),
            "list-id" => (no_user(bare).map(Self::ListId), "a list id such as <news.example.org>"),
            "signature" => {
                let signature = value.parse().ok().map(Self::Signature);
                (signature, "32 hexadecimal digits, as bulkmark signature prints them")
            }
            "dkim" => {
                (domain().map(Self::Dkim), "the domain of a DKIM signature, or .domain for all below it")
            }
            "spf" => (no_user(bare).map(Self::Spf), "an envelope sender's address or domain, or .domain"),
            "dmarc" => {
                (domain().map(Self::Dmarc), "the domain of a From address, or .domain for all below it")
            }
            _ => {
                return Err(format!(
                    "found \"{form}\", expected ip, host, sender, from, recipient, list-id, signature, dkim, spf, dmarc or \
                     include"
                ));
            }
        };
        condition.ok_or_else(|| format!("found \"{value}\" after {form}, expected {expected}"))
    }

    /// Whether it holds for a message, regardless of recipients. A `recipient` condition never does.
    pub(super) fn holds(&self, known: &NormalizedFacts<'_>) -> bool {
        let any = |pattern: &Pattern, names: &[Name]| {
            names.iter().any(|name| pattern.matches(name, known.facts.answers))
        };
        match self {
            Self::Ip(network) => known.facts.client_ip.is_some_and(|ip| network.contains(ip)),
            Self::Host(pattern) => any(pattern, &known.host),
            Self::Sender(pattern) => any(pattern, &known.sender),
            Self::NullSender => known.facts.sender == Some(""),
            Self::From(pattern) => any(pattern, &known.from),
            Self::Recipient(_) => false,
            Self::ListId(pattern) => any(pattern, &known.list_id),
            Self::Signature(signature) => known.facts.signatures().any(|of| of == *signature),
            Self::Dkim(pattern) => any(pattern, &known.dkim),
            Self::Spf(pattern) => any(pattern, &known.spf),
            Self::Dmarc(pattern) => any(pattern, &known.dmarc),
        }
    }

    /// The claimed names that must be verified for it to hold.
    pub(super) fn claims(&self, known: &NormalizedFacts<'_>) -> VerifiedNames {
        let matching = |pattern: &Pattern, names: &[Name]| {
            let names = names.iter().filter(|name| pattern.matches(name, known.facts.answers));
            names.map(|name| name.whole().to_owned()).collect()
        };
        match self {
            Self::Dkim(pattern) => {
                VerifiedNames { dkim: matching(pattern, &known.dkim), ..VerifiedNames::default() }
            }
            Self::Spf(pattern) => {
                VerifiedNames { spf: matching(pattern, &known.spf), ..VerifiedNames::default() }
            }
            Self::Dmarc(pattern) => {
                VerifiedNames { dmarc: matching(pattern, &known.dmarc), ..VerifiedNames::default() }
            }
            _ => VerifiedNames::default(),
        }
    }

    /// The index of the names that it compares, and its pattern.
    fn pattern(&self) -> Option<(usize, &Pattern)> {
        Some(match self {
            Self::Ip(_) | Self::NullSender | Self::Signature(_) => return None,
            Self::Host(pattern) => (0, pattern),
            Self::Sender(pattern) => (1, pattern),
            Self::From(pattern) => (2, pattern),
            Self::Recipient(pattern) => (3, pattern),
            Self::ListId(pattern) => (4, pattern),
            Self::Dkim(pattern) => (5, pattern),
            Self::Spf(pattern) => (6, pattern),
            Self::Dmarc(pattern) => (7, pattern),
        })
    }

    /// The index of the names that it compares, and the remote table that it asks for them.
    pub(super) fn remote(&self) -> Option<(usize, &RemoteTable)> {
        let (names, pattern) = self.pattern()?;
        Some((names, pattern.remote()?))
    }

    /// Whether any sender can make it hold, since it checks text that the sender writes.
    pub(super) const fn is_forgeable(&self) -> bool {
        matches!(self, Self::Sender(_) | Self::NullSender | Self::From(_) | Self::ListId(_))
    }

    /// The pattern of a `recipient` condition.
    pub(super) const fn recipient(&self) -> Option<&Pattern> {
        match self {
            Self::Recipient(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// The method that must verify mail for it to hold.
    pub(super) const fn method(&self) -> Option<&'static str> {
        match self {
            Self::Dkim(_) => Some("dkim"),
            Self::Spf(_) => Some("spf"),
            Self::Dmarc(_) => Some("dmarc"),
            _ => None,
        }
    }
}

/// The facts about a message, with its names normalized.
pub(super) struct NormalizedFacts<'a> {
    facts: &'a Facts<'a>,
    pub(super) host: Vec<Name>,
    pub(super) sender: Vec<Name>,
    pub(super) from: Vec<Name>,
    pub(super) list_id: Vec<Name>,
    pub(super) dkim: Vec<Name>,
    pub(super) spf: Vec<Name>,
    pub(super) dmarc: Vec<Name>,
}

impl<'a> NormalizedFacts<'a> {
    pub(super) fn of(facts: &'a Facts<'a>) -> Self {
        let one =
            |name: Option<&str>| name.filter(|name| !name.is_empty()).map(Name::of).into_iter().collect();
        let all = |names: &[String]| names.iter().map(|name| Name::of(name)).collect();
        let verified = |names: fn(&VerifiedNames) -> &Vec<String>| {
            facts.verified.map_or(&[][..], |verified| names(verified))
        };
        Self {
            facts,
            host: one(facts.client_host),
            sender: one(facts.sender),
            from: all(facts.from),
            list_id: one(facts.list_id),
            dkim: all(verified(|verified| &verified.dkim)),
            spf: facts.spf().map(Name::of).collect(),
            dmarc: all(verified(|verified| &verified.dmarc)),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(network) => write!(f, "ip {network}"),
            Self::Host(pattern) => write!(f, "host {pattern}"),
            Self::Sender(pattern) => write!(f, "sender {pattern}"),
            Self::NullSender => f.write_str("sender <>"),
            Self::From(pattern) => write!(f, "from {pattern}"),
            Self::Recipient(pattern) => write!(f, "recipient {pattern}"),
            Self::ListId(pattern) => write!(f, "list-id <{pattern}>"),
            Self::Signature(signature) => write!(f, "signature {signature}"),
            Self::Dkim(pattern) => write!(f, "dkim {pattern}"),
            Self::Spf(pattern) => write!(f, "spf {pattern}"),
            Self::Dmarc(pattern) => write!(f, "dmarc {pattern}"),
        }
    }
}
