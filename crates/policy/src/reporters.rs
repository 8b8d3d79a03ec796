// SPDX-License-Identifier: GPL-3.0-or-later
//! `user-reports.trust`: the weight of reports of users without history, and of other sites' users.

use super::fraction::Fraction;
use super::persons::Persons;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// One of the named choices, or a site's own weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reporters {
    /// Weight of other sites' user reports beside those of one's own users.
    pub federation_weight: Fraction,
    /// Weight of a report from a user without history.
    pub new_reporter: Persons,
    /// Weight of all such users together, for one signature.
    pub max_newcomers: Persons,
}

impl Reporters {
    /// `careful`: anybody may have an account, here or elsewhere.
    const CAREFUL: Self = Self {
        federation_weight: Fraction::HALF,
        new_reporter: Persons::thousandths(250),
        max_newcomers: Persons::thousandths(1000),
    };

    /// `own`: all accounts here belong to one's own users.
    const OWN: Self = Self {
        new_reporter: Persons::thousandths(1000),
        max_newcomers: Persons::thousandths(1_000_000),
        ..Self::CAREFUL
    };

    /// `all-own`: all accounts of all servers belong to their own users.
    const ALL_OWN: Self = Self { federation_weight: Fraction::ONE, ..Self::OWN };
}

impl Default for Reporters {
    fn default() -> Self {
        Self::CAREFUL
    }
}

/// The table; the default of each key is that of `careful`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Table {
    federation_weight: Fraction,
    new_reporter: Persons,
    max_newcomers: Persons,
}

impl Default for Table {
    fn default() -> Self {
        let Reporters { federation_weight, new_reporter, max_newcomers } = Reporters::CAREFUL;
        Self { federation_weight, new_reporter, max_newcomers }
    }
}

struct Choice;

impl<'de> Visitor<'de> for Choice {
    type Value = Reporters;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "\"careful\", \"own\", \"all-own\", or { new-reporter = 0.25, max-newcomers = 1.0, federation-weight = 0.5 }",
        )
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Reporters, E> {
        match name {
            "careful" => Ok(Reporters::CAREFUL),
            "own" => Ok(Reporters::OWN),
            "all-own" => Ok(Reporters::ALL_OWN),
            _ => {
                Err(E::custom(format!("found \"{name}\", expected one of careful, own, all-own, or a table")))
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Reporters, A::Error> {
        let Table { federation_weight, new_reporter, max_newcomers } =
            Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Reporters { federation_weight, new_reporter, max_newcomers })
    }
}

impl<'de> Deserialize<'de> for Reporters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Choice)
    }
}
