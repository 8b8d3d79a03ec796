// SPDX-License-Identifier: GPL-3.0-or-later
//! All that a message is judged by. A reload puts new rules in the place of the old ones; a message keeps those under
//! which it began.

use super::envelope::Envelope;
use super::header::HeaderName;
use super::reason::Exempt;
use crate::policy::{
    Actions, Authentication, Counts, Mailboxes, Network, OnFailure, Per, Thresholds, WhiteList,
};
use crate::signature::{self, FederationKey};
use std::time::Duration;

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
    /// The longest time from the end of a message to its verdict.
    pub deadline: Duration,
    /// The age of the upstream's counts, in seconds, from which on the header tells it.
    pub max_staleness: u64,
    /// Whether bulk is acted on when they are older than that.
    pub act_when_stale: bool,
    /// How long tables elsewhere are given for their answers.
    pub table_timeout: Duration,
    /// Whether bulk is acted on where one did not answer.
    pub act_when_unanswered: bool,
    /// What counts as one report.
    pub per: Per,
    /// Which recipients are one.
    pub mailboxes: Mailboxes,
    /// From which count on a message is bulk.
    pub thresholds: Thresholds,
    /// What is done with bulk.
    pub actions: Actions,
    /// Which bulk is wanted.
    pub whitelist: WhiteList,
    /// Of which mail other servers are told nothing.
    pub private: WhiteList,
    /// Whether they are told the exact signatures of all other mail.
    pub shares_exact: bool,
    /// Whose word counts on DKIM, SPF and DMARC.
    pub authentication: Authentication,
    /// How signatures are made.
    pub signature: signature::Settings,
    /// Under which key.
    pub key: FederationKey,
}

impl Rules {
    /// Those of a configuration that says nothing.
    #[cfg(test)]
    pub(super) fn of_tests() -> Self {
        Self {
            hostname: None,
            header: HeaderName::default(),
            exempt_networks: Vec::new(),
            exempt_loopback: true,
            exempt_authenticated: true,
            on_failure: OnFailure::default(),
            deadline: Duration::from_secs(10),
            max_staleness: 600,
            act_when_stale: true,
            table_timeout: Duration::from_secs(2),
            act_when_unanswered: false,
            per: Per::default(),
            mailboxes: Mailboxes::default(),
            thresholds: Thresholds::default(),
            actions: Actions::default(),
            whitelist: WhiteList::default(),
            private: WhiteList::default(),
            shares_exact: true,
            authentication: Authentication::default(),
            signature: signature::Settings::default(),
            key: FederationKey::public(),
        }
    }

    /// All of its white lists, whose files may be read again.
    pub fn lists(&self) -> impl Iterator<Item = &WhiteList> {
        [&self.whitelist, &self.private].into_iter()
    }

    /// Whether a count has reached its threshold.
    #[must_use]
    pub fn is_bulk(&self, counts: Counts) -> bool {
        self.thresholds.body.is_reached(counts.body) || self.thresholds.near.is_reached(counts.near)
    }

    /// Why a message with this envelope is neither counted nor judged, if so. A client without an address is a local one.
    #[must_use]
    pub fn exempt(&self, envelope: &Envelope) -> Option<Exempt> {
        if self.exempt_loopback && envelope.client.is_none_or(|ip| ip.is_loopback()) {
            return Some(Exempt::Loopback);
        }
        let is_in = |ip| self.exempt_networks.iter().any(|network| network.contains(ip));
        if envelope.client.is_some_and(is_in) {
            return Some(Exempt::Network);
        }
        (self.exempt_authenticated && envelope.authenticated).then_some(Exempt::Authenticated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exempt(change: impl FnOnce(&mut Rules), client: &str, authenticated: bool) -> Option<Exempt> {
        let mut rules = Rules::of_tests();
        change(&mut rules);
        rules.exempt(&Envelope { client: client.parse().ok(), authenticated, ..Envelope::default() })
    }

    #[test]
    fn who_is_exempt() {
        for local in ["", "127.0.0.1", "::1"] {
            assert_eq!(exempt(|_| (), local, true), Some(Exempt::Loopback));
            assert_eq!(exempt(|rules| rules.exempt_loopback = false, local, false), None);
        }
        assert_eq!(exempt(|_| (), "192.0.2.7", false), None);
        assert_eq!(exempt(|_| (), "192.0.2.7", true), Some(Exempt::Authenticated));
        assert_eq!(exempt(|rules| rules.exempt_authenticated = false, "192.0.2.7", true), None);
        let network = |rules: &mut Rules| rules.exempt_networks = vec!["192.0.2.0/24".parse().unwrap()];
        assert_eq!(exempt(network, "192.0.2.7", true), Some(Exempt::Network));
        assert_eq!(exempt(network, "198.51.100.7", false), None);
    }
}
