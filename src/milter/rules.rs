// SPDX-License-Identifier: GPL-3.0-or-later
//! All that a message is judged by. A reload puts new rules in the place of the old ones; a message keeps those under
//! which it began.

use super::header::HeaderName;
use crate::policy::{Actions, Network, Per, Thresholds, WhiteList};
use crate::signature::{self, FederationKey};
use serde::Deserialize;
use std::net::IpAddr;

/// What happens to a message that could not be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It is delivered, with the verdict `unknown`.
    #[default]
    Accept,
    /// It is refused for the moment.
    Tempfail,
}

/// The rules in force.
#[derive(Debug)]
pub struct Rules {
    /// This mail server's name in the header; where there is none, the one that the MTA tells.
    pub hostname: Option<String>,
    /// The name of the header.
    pub header: HeaderName,
    /// Clients whose mail is neither counted nor judged.
    pub exempt_networks: Vec<Network>,
    /// Whether loopback clients and local submission are such.
    pub exempt_loopback: bool,
    /// Whether authenticated clients are such.
    pub exempt_authenticated: bool,
    /// What happens to a message that could not be judged.
    pub on_failure: OnFailure,
    /// The age of the upstream's counts, in seconds, from which on the header tells it.
    pub max_staleness: u64,
    /// Whether bulk is acted on when they are older than that.
    pub act_when_stale: bool,
    /// What counts as one report.
    pub per: Per,
    /// From which count on a message is bulk.
    pub thresholds: Thresholds,
    /// What is done with bulk.
    pub actions: Actions,
    /// Which bulk is wanted.
    pub whitelist: WhiteList,
    /// How signatures are made.
    pub signature: signature::Settings,
    /// Under which key.
    pub key: FederationKey,
}

impl Rules {
    /// Why mail of this client is not looked at, if so. A client without an address is a local one; an address is in its
    /// canonical form.
    pub(super) fn exempt_client(&self, ip: Option<IpAddr>) -> Option<&'static str> {
        if self.exempt_loopback && ip.is_none_or(|ip| ip.is_loopback()) {
            return Some("loopback");
        }
        let ip = ip?;
        self.exempt_networks.iter().any(|network| network.contains(ip)).then_some("network")
    }
}
