// SPDX-License-Identifier: GPL-3.0-or-later
//! One condition of an entry: a form and a value.

use super::authentication::Proven;
use super::facts::Facts;
use super::network::Network;
use super::patterns::{Name, Pattern};
use crate::signature::Signature;
use std::fmt;

/// What must be so for an entry to match.
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

impl Condition {
    /// Reads a form and its value.
    ///
    /// # Errors
    /// What was found and what was expected.
    pub(super) fn parse(form: &str, value: &str) -> Result<Self, String> {
        let bare = value.strip_prefix('<').and_then(|v| v.strip_suffix('>')).unwrap_or(value);
        let address = || Pattern::parse(bare);
        let no_user = |text| Pattern::parse(text).filter(|pattern| !matches!(pattern, Pattern::User(_)));
        let domain = || no_user(value).filter(|pattern| !pattern.to_string().contains('@'));
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

    /// Whether it holds of a message, whoever its recipients are. One of recipients holds of none.
    pub(super) fn holds(&self, known: &Known<'_>) -> bool {
        let any = |pattern: &Pattern, names: &[Name]| names.iter().any(|name| pattern.matches(name));
        match self {
            Self::Ip(network) => known.facts.client_ip.is_some_and(|ip| network.contains(ip)),
            Self::Host(pattern) => any(pattern, &known.host),
            Self::Sender(pattern) => any(pattern, &known.sender),
            Self::NullSender => known.facts.sender == Some(""),
            Self::From(pattern) => any(pattern, &known.from),
            Self::Recipient(_) => false,
            Self::ListId(pattern) => any(pattern, &known.list_id),
            Self::Signature(signature) => known.facts.signature == Some(*signature),
            Self::Dkim(pattern) => any(pattern, &known.dkim),
            Self::Spf(pattern) => any(pattern, &known.spf),
            Self::Dmarc(pattern) => any(pattern, &known.dmarc),
        }
    }

    /// Whether anybody can make it hold, since it is about what a sender writes.
    pub(super) const fn is_forgeable(&self) -> bool {
        matches!(self, Self::Sender(_) | Self::NullSender | Self::From(_) | Self::ListId(_))
    }

    /// Whether it is about single recipients.
    pub(super) const fn is_of_recipient(&self) -> bool {
        matches!(self, Self::Recipient(_))
    }

    /// Whether it holds only where somebody verifies mail.
    pub(super) const fn is_proof(&self) -> bool {
        matches!(self, Self::Dkim(_) | Self::Spf(_) | Self::Dmarc(_))
    }
}

/// What is known of a message, its names as they are compared.
pub(super) struct Known<'a> {
    facts: &'a Facts<'a>,
    host: Vec<Name>,
    sender: Vec<Name>,
    from: Vec<Name>,
    list_id: Vec<Name>,
    dkim: Vec<Name>,
    spf: Vec<Name>,
    dmarc: Vec<Name>,
}

impl<'a> Known<'a> {
    pub(super) fn of(facts: &'a Facts<'a>) -> Self {
        let one =
            |name: Option<&str>| name.filter(|name| !name.is_empty()).map(Name::of).into_iter().collect();
        let all = |names: &[String]| names.iter().map(|name| Name::of(name)).collect();
        let proven =
            |names: fn(&Proven) -> &Vec<String>| facts.proven.map_or(&[][..], |proven| names(proven));
        Self {
            facts,
            host: one(facts.client_host),
            sender: one(facts.sender),
            from: all(facts.from),
            list_id: one(facts.list_id),
            dkim: all(proven(|proven| &proven.dkim)),
            spf: facts.spf().map(Name::of).collect(),
            dmarc: all(proven(|proven| &proven.dmarc)),
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
