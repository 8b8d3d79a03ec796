// SPDX-License-Identifier: GPL-3.0-or-later
//! The networks that a count came from, as programs and users see them.

use super::envelope::Envelope;
use super::rules::Rules;
use bulkmark_policy::{Backing, Decision, Held, Sources};
use serde::Serialize;

/// The networks of a message that is bulk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SourceNetworks {
    /// Other networks than its own.
    others: u32,
    /// Its own network, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    /// The number of copies from its own network.
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<u32>,
    /// The number of other networks that are needed.
    min_sources: u32,
    /// Whether it is only marked because of its sources.
    held: bool,
}

impl SourceNetworks {
    /// The networks, if it is bulk and networks matter.
    #[must_use]
    pub fn of(rules: &Rules, envelope: &Envelope, decision: &Decision) -> Option<Self> {
        let Backing::Known(Sources { others, own }) = decision.backing else { return None };
        Some(Self {
            others,
            network: envelope.network().map(|network| network.to_string()),
            own,
            min_sources: rules.terms(decision.by).thresholds.min_sources.get(),
            held: decision.held == Some(Held::Sources),
        })
    }

    /// The same as a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { others, network, own, min_sources, held } = self;
        let own = match (network, own) {
            (Some(network), Some(0)) => format!("none from its own network, {network}, was counted"),
            // The first copies of a text are not counted by network, nor are those above the threshold.
            (Some(network), Some(own)) => format!("its own network, {network}, sent {own} or more"),
            _ => "its own is not known (--ip)".to_owned(),
        };
        let others = match others {
            1 => "it came from 1 other network".to_owned(),
            others => format!("it came from {others} other networks"),
        };
        let follows = if *held { "too few to do more than mark it" } else { "enough to act on it" };
        format!("{others}; {own}: {follows} (min-sources {min_sources})")
    }
}
