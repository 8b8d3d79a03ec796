// SPDX-License-Identifier: GPL-3.0-or-later
//! The lists of clients and of aggregators, as they stand in the log.

use crate::ledger::Limits;
use crate::sync::log::members::{Duty, Member};
use crate::sync::log::types::Client;
use serde::{Deserialize, Serialize};

/// A client in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) name: String,
    /// Influence and quota; none of an own one.
    pub(super) limits: Option<(u32, u32)>,
    pub(super) withdrawn: u32,
}

impl From<Listed> for Client {
    fn from(listed: Listed) -> Self {
        let limits = listed.limits.map(|(influence, quota)| Limits { influence, quota });
        Self { name: listed.name, limits, withdrawn: listed.withdrawn }
    }
}

impl From<Client> for Listed {
    fn from(client: Client) -> Self {
        let limits = client.limits.map(|limits| (limits.influence, limits.quota));
        Self { name: client.name, limits, withdrawn: client.withdrawn }
    }
}

/// An aggregator in the list, by what NATS knows it: the public half of its nkey, where it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) nkey: Option<String>,
}

impl Named {
    /// None of a milter.
    pub(super) fn of(member: &Member) -> Option<Self> {
        (member.duty == Duty::Aggregator)
            .then(|| Self { name: member.name.clone(), nkey: member.nkey.clone() })
    }
}
