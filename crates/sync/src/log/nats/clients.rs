// SPDX-License-Identifier: GPL-3.0-or-later
//! The lists of clients and of aggregators in the log.

use crate::log::members::{Duty, Member};
use crate::log::types::Client;
use bulkmark_counts::Limits;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// A client in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) name: String,
    /// Influence and quota; none for an own client.
    pub(super) limits: Option<(u32, u32)>,
    pub(super) withdrawn: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<NonZeroU32>,
}

impl From<Listed> for Client {
    fn from(listed: Listed) -> Self {
        let limits = listed.limits.map(|(influence, quota)| Limits { influence, quota });
        Self { name: listed.name, limits, withdrawn: listed.withdrawn, rate: listed.rate }
    }
}

impl From<Client> for Listed {
    fn from(client: Client) -> Self {
        let limits = client.limits.map(|limits| (limits.influence, limits.quota));
        Self { name: client.name, limits, withdrawn: client.withdrawn, rate: client.rate }
    }
}

/// An aggregator in the list, with the public half of its nkey if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) nkey: Option<String>,
}

impl Named {
    /// Returns the entry of an aggregator; none for a milter.
    pub(super) fn of(member: &Member) -> Option<Self> {
        (member.duty == Duty::Aggregator)
            .then(|| Self { name: member.name.clone(), nkey: member.nkey.clone() })
    }
}
