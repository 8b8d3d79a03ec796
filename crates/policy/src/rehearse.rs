// SPDX-License-Identifier: GPL-3.0-or-later
//! `actions.rehearse`: the mail for which actions are only rehearsed.

use super::fraction::Fraction;
use humantime_serde::re::humantime::parse_rfc3339;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::time::UNIX_EPOCH;

/// `actions.rehearse`: the mail for which actions are only rehearsed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rehearse {
    /// None: actions are taken.
    #[default]
    Never,
    /// All mail.
    Always,
    /// Mail for this fraction of the recipients' mailboxes.
    Recipients(Fraction),
    /// Mail from this fraction of the clients' networks: /24 of IPv4, /48 of IPv6.
    Clients(Fraction),
    /// All mail before this time.
    Until(Time),
}

/// A point in time: a date such as `2026-12-01`, which begins at midnight, or `2026-12-01T07:00:00Z`; both by UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(u64);

impl Time {
    /// Seconds since 1970.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0
    }
}

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let whole = if text.contains('T') { text.clone() } else { format!("{text}T00:00:00Z") };
        let time = parse_rfc3339(&whole).ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let wanted = || format!("found {text:?}, expected a date such as \"2026-12-01\"");
        time.map(|since| Self(since.as_secs())).ok_or_else(wanted)
    }
}

impl<'de> Deserialize<'de> for Rehearse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Choice)
    }
}

/// The table of `actions.rehearse`, which has one key.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Table {
    recipients: Option<Fraction>,
    clients: Option<Fraction>,
    until: Option<Time>,
}

struct Choice;

impl<'de> Visitor<'de> for Choice {
    type Value = Rehearse;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, { recipients = 0.9 }, { clients = 0.9 } or { until = \"2026-12-01\" }")
    }

    fn visit_bool<E: Error>(self, always: bool) -> Result<Rehearse, E> {
        Ok(if always { Rehearse::Always } else { Rehearse::Never })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rehearse, A::Error> {
        let table = Table::deserialize(MapAccessDeserializer::new(map))?;
        match table {
            Table { recipients: Some(part), clients: None, until: None } => Ok(Rehearse::Recipients(part)),
            Table { recipients: None, clients: Some(part), until: None } => Ok(Rehearse::Clients(part)),
            Table { recipients: None, clients: None, until: Some(time) } => Ok(Rehearse::Until(time)),
            Table { recipients: None, clients: None, until: None } => {
                Err(Error::custom("found an empty table, expected one of recipients, clients and until"))
            }
            _ => Err(Error::custom("recipients, clients and until exclude each other, expected one of them")),
        }
    }
}
