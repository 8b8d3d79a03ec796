// SPDX-License-Identifier: GPL-3.0-or-later
//! The rules by which messages are judged. A reload replaces them; a message keeps the rules under which it began.

use super::envelope::Envelope;
use super::header::HeaderName;
use super::reason::Exempt;
use bulkmark_policy::{
    Actions, Authentication, Correspondence, Correspondents, DEFAULT, Despite, ExemptClients, Mailboxes,
    Network, OnFailure, OutboundSettings, Party, Per, Policies, Policy, PolicyRef, Range, Rehearsal,
    Rehearse, Terms, Thresholds, Traps, UserReportSettings, VerifiedNames, WhiteList,
};
use bulkmark_types::FederationKey;
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

/// The rules in force.
#[derive(Debug)]
pub struct Rules {
    /// This mail server's name in the header; if `None`, the name that the MTA sends.
    pub hostname: Option<String>,
    /// The name of the header.
    pub header: HeaderName,
    /// Clients whose mail is neither counted nor judged.
    pub exempt_networks: Vec<Network>,
    /// One's own mail servers in front, whose Received fields name the client.
    pub relays: Vec<Network>,
    /// Kinds of clients whose mail is neither counted nor judged.
    pub exempt: ExemptClients,
    /// The treatment of a message that could not be judged.
    pub on_failure: OnFailure,
    /// The longest time from the end of a message to its verdict.
    pub deadline: Duration,
    /// The age of the upstream's counts, in seconds, from which on the header shows it.
    pub max_staleness: u64,
    /// The time that remote tables have for their answers.
    pub table_timeout: Duration,
    /// Doubts that do not keep bulk from being acted on.
    pub despite: Despite,
    /// The unit of a report.
    pub per: Per,
    /// The rules by which addresses are one mailbox.
    pub mailboxes: Mailboxes,
    /// The policies, which override the following settings.
    pub policies: Policies,
    /// The thresholds.
    pub thresholds: Thresholds,
    /// The actions.
    pub actions: Actions,
    /// The white list of wanted bulk.
    pub whitelist: WhiteList,
    /// The settings of outbound mail.
    pub outbound: OutboundSettings,
    /// The mail of which no signatures are sent to other servers.
    pub private: WhiteList,
    /// Whether the exact signatures of all other mail are sent to them.
    pub shares_exact: bool,
    /// Whether user reports are sent to them.
    pub shares_user_reports: bool,
    /// The settings of user reports.
    pub user_reports: UserReportSettings,
    /// The traps.
    pub traps: Traps,
    /// The source of results of DKIM, SPF and DMARC.
    pub authentication: Authentication,
    /// The settings of signatures.
    pub signature: bulkmark_signature::Settings,
    /// The key of signatures.
    pub key: FederationKey,
}

/// The rules of an empty configuration.
impl Default for Rules {
    fn default() -> Self {
        Self {
            hostname: None,
            header: HeaderName::default(),
            exempt_networks: Vec::new(),
            relays: Vec::new(),
            exempt: ExemptClients::default(),
            on_failure: OnFailure::default(),
            deadline: Duration::from_secs(10),
            max_staleness: 600,
            table_timeout: Duration::from_secs(2),
            despite: Despite::default(),
            per: Per::default(),
            mailboxes: Mailboxes::default(),
            policies: Policies::default(),
            thresholds: Thresholds::default(),
            actions: Actions::default(),
            whitelist: WhiteList::default(),
            outbound: OutboundSettings::default(),
            private: WhiteList::default(),
            shares_exact: true,
            shares_user_reports: true,
            user_reports: UserReportSettings::default(),
            traps: Traps::default(),
            authentication: Authentication::default(),
            signature: bulkmark_signature::Settings::default(),
            key: FederationKey::public(),
        }
    }
}

impl Rules {
    /// All its white lists, whose files can be reloaded.
    pub fn lists(&self) -> impl Iterator<Item = &WhiteList> {
        let of_policies = self.policies.0.iter().map(|policy| &policy.whitelist);
        [&self.whitelist, &self.private].into_iter().chain(of_policies)
    }

    /// Whether the milter verifies mail, so that it needs the raw header.
    #[must_use]
    pub fn verifies(&self) -> bool {
        self.authentication.is_here()
            && (self.spares_correspondents() || self.lists().any(WhiteList::needs_verification))
    }

    /// The numbers of these correspondences between a recipient and an address: for each of them, one number for each key.
    #[must_use]
    pub fn correspondences(&self, all: &[Correspondence]) -> Vec<u64> {
        let of = |of: &Correspondence| {
            let (user, other) = (self.mailboxes.mailbox(&of.recipient), self.mailboxes.mailbox(&of.address));
            self.key.all().map(move |key| bulkmark_types::correspondence(key, &user, &other))
        };
        all.iter().flat_map(of).collect()
    }

    /// Those correspondences of which a number is known. `known` belongs to the numbers that [`correspondences`](Self::correspondences) returns.
    #[must_use]
    pub fn known_of(&self, all: Vec<Correspondence>, known: &[bool]) -> Vec<Correspondence> {
        let known = known.chunks(self.key.all().count()).map(|keys| keys.contains(&true));
        all.into_iter().zip(known).filter_map(|(of, is_known)| is_known.then_some(of)).collect()
    }

    /// Whether correspondents matter for some recipients.
    #[must_use]
    pub fn spares_correspondents(&self) -> bool {
        self.all_terms().any(|terms| terms.actions.correspondents == Correspondents::NeverRefuse)
    }

    /// Whether some list needs a signature that a message claims to have, regardless of other conditions; or one would verify a
    /// correspondent.
    #[must_use]
    pub fn asks_for_signature(&self, claimed: &VerifiedNames, correspondences: &[Correspondence]) -> bool {
        let shows = |of: &Correspondence| !of.claims(claimed).dkim.is_empty();
        self.authentication.is_here()
            && (self.lists().any(|list| list.asks_for_signature(claimed))
                || correspondences.iter().any(shows))
    }

    /// Whether a message with this envelope is outbound. It is counted separately, and bulk is only marked; its account is watched.
    #[must_use]
    pub fn is_outbound(&self, envelope: &Envelope) -> bool {
        let matches = &self.outbound.matches;
        !matches.is_empty() && matches.fits(&envelope.origin())
    }

    /// The reason why a message with this envelope is neither counted nor judged, if so. A client without an address is local. Outbound mail
    /// comes from such clients, and is not exempt for that reason.
    #[must_use]
    pub fn exempt(&self, envelope: &Envelope) -> Option<Exempt> {
        if self.is_outbound(envelope) {
            return None;
        }
        if self.exempt.loopback && envelope.client.is_none_or(|ip| ip.is_loopback()) {
            return Some(Exempt::Loopback);
        }
        let is_in = |ip| self.exempt_networks.iter().any(|network| network.contains(ip));
        if envelope.client.is_some_and(is_in) {
            return Some(Exempt::Network);
        }
        (self.exempt.authenticated && envelope.authenticated).then_some(Exempt::Authenticated)
    }

    /// The same for a message whose client another program names: a missing client is unknown, not local.
    #[must_use]
    pub fn exempt_if_client_known(&self, envelope: &Envelope) -> Option<Exempt> {
        let is_known = envelope.client.is_some() || envelope.authenticated;
        match self.exempt(envelope) {
            Some(Exempt::Loopback) if envelope.client.is_none() => {
                (self.exempt.authenticated && envelope.authenticated).then_some(Exempt::Authenticated)
            }
            exempt => exempt.filter(|_| is_known),
        }
    }

    /// The recipients of a message, grouped by policy; unknown recipients are one party.
    #[must_use]
    pub fn parties<'a>(&self, envelope: &'a Envelope) -> Vec<Party<'a>> {
        self.policies.parties(&envelope.origin(), &envelope.recipients, &self.mailboxes)
    }

    /// Whether some copy is judged and counted.
    #[must_use]
    pub fn judges_any(&self, parties: &[Party<'_>]) -> bool {
        parties.iter().any(|party| self.judges(party.by))
    }

    /// Whether mail under this policy is judged and counted.
    #[must_use]
    pub fn judges(&self, by: PolicyRef) -> bool {
        self.policy(by).is_none_or(|policy| policy.judge)
    }

    fn policy(&self, by: PolicyRef) -> Option<&Policy> {
        self.policies.0.get(by.0?)
    }

    /// The terms of a policy.
    #[must_use]
    pub fn terms(&self, by: PolicyRef) -> Terms<'_> {
        static NONE: LazyLock<WhiteList> = LazyLock::new(WhiteList::default);
        let (thresholds, actions, list) = match self.policy(by) {
            Some(policy) => (&policy.thresholds, &policy.actions, &policy.whitelist),
            None => (&self.thresholds, &self.actions, &*NONE),
        };
        Terms { by, thresholds, actions, rehearsal: None, lists: [&self.whitelist, list] }
    }

    /// The reason why `actions` are only rehearsed for these recipients of a message, if so.
    #[must_use]
    pub fn rehearsal(&self, envelope: &Envelope, actions: &Actions, to: &[String]) -> Option<Rehearsal> {
        let (paused, now, part) = (envelope.is_paused, envelope.now, bulkmark_types::part);
        if let Rehearse::Clients(_) = actions.rehearse {
            let network = envelope.network().map(|network| network.to_string());
            return Rehearsal::of(actions, paused, now, network.into_iter(), part);
        }
        let mailboxes = to.iter().map(|to| self.mailboxes.mailbox(to));
        Rehearsal::of(actions, paused, now, mailboxes, part)
    }

    /// The name of a policy in header and log; `None` if there are no policies besides the defaults.
    #[must_use]
    pub fn name(&self, by: PolicyRef) -> Option<&str> {
        (!self.policies.0.is_empty()).then(|| self.policy(by).map_or(DEFAULT, |policy| policy.name.as_str()))
    }

    /// The terms of all policies that judge mail.
    fn all_terms(&self) -> impl Iterator<Item = Terms<'_>> {
        let all =
            std::iter::once(PolicyRef(None)).chain((0..self.policies.0.len()).map(|i| PolicyRef(Some(i))));
        all.filter(|&by| self.judges(by)).map(|by| self.terms(by))
    }

    /// Whether a client is one of one's own mail servers in front.
    #[must_use]
    pub fn is_relay(&self, client: Option<IpAddr>) -> bool {
        client.is_some_and(|ip| self.relays.iter().any(|relay| relay.contains(ip)))
    }

    /// The range of the thresholds of all policies.
    #[must_use]
    pub fn range(&self) -> Range {
        let mut all = self.all_terms().map(|terms| terms.thresholds);
        let first = Range::from(all.next().unwrap_or(&self.thresholds));
        all.fold(first, Range::with)
    }

    /// The count from which on a partial copy must hold a signature: half of the lowest threshold.
    #[must_use]
    pub fn hold_from(&self) -> u32 {
        let Thresholds { body, near, .. } = self.range().lowest;
        body.get().min(near.get()).div_ceil(2)
    }

    /// Whether some messages are refused temporarily.
    #[must_use]
    pub fn has_tempfail(&self) -> bool {
        self.on_failure == OnFailure::Tempfail || self.all_terms().any(|terms| terms.actions.has_tempfail())
    }

    /// The mailboxes whose copies are counted: a recipient who is named twice, or in two spellings, still gets one copy.
    #[must_use]
    pub fn mailboxes(&self, parties: &[Party<'_>]) -> HashSet<String> {
        let counted = parties.iter().filter(|party| self.judges(party.by));
        counted.flat_map(|party| party.recipients.iter()).map(|to| self.mailboxes.mailbox(to)).collect()
    }

    /// The number of reports of the message.
    #[must_use]
    pub fn times(&self, parties: &[Party<'_>]) -> u32 {
        match self.per {
            Per::Recipient => u32::try_from(self.mailboxes(parties).len()).unwrap_or(u32::MAX).max(1),
            Per::Message => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exempt(change: impl FnOnce(&mut Rules), client: &str, authenticated: bool) -> Option<Exempt> {
        let mut rules = Rules::default();
        change(&mut rules);
        rules.exempt(&Envelope { client: client.parse().ok(), authenticated, ..Envelope::default() })
    }

    /// A part of clients selects networks, whatever the recipients are. Mail without a client is in it.
    #[test]
    fn a_rehearsal_for_a_part_of_clients() {
        let actions = |share: f64| Actions {
            rehearse: Rehearse::Clients((1.0 - share).try_into().unwrap()),
            ..Actions::default()
        };
        let rehearsed = |share, client: &str| {
            let envelope = Envelope { client: client.parse().ok(), ..Envelope::default() };
            Rules::default().rehearsal(&envelope, &actions(share), &["a@b.example".to_owned()])
        };
        let inside = |share, client: &str| rehearsed(share, client).is_none();
        let clients: Vec<_> = (0..200).map(|n| format!("192.0.{n}.7")).collect();
        let half: Vec<_> = clients.iter().filter(|client| inside(0.5, client)).collect();
        assert!((60..140).contains(&half.len()), "{half:?}");
        assert!(half.iter().all(|client| inside(0.7, client)), "a larger share keeps the smaller one");
        let neighbour = half[0].replace(".7", ".8");
        assert!(inside(0.5, &neighbour), "{neighbour}");
        assert!(!inside(0.999, "") && inside(1.0, ""));
    }

    #[test]
    fn local_listed_and_authenticated_clients_are_exempt() {
        for local in ["", "127.0.0.1", "::1"] {
            assert_eq!(exempt(|_| (), local, true), Some(Exempt::Loopback));
            assert_eq!(exempt(|rules| rules.exempt.loopback = false, local, false), None);
        }
        assert_eq!(exempt(|_| (), "192.0.2.7", false), None);
        assert_eq!(exempt(|_| (), "192.0.2.7", true), Some(Exempt::Authenticated));
        assert_eq!(exempt(|rules| rules.exempt.authenticated = false, "192.0.2.7", true), None);
        let network = |rules: &mut Rules| rules.exempt_networks = vec!["192.0.2.0/24".parse().unwrap()];
        assert_eq!(exempt(network, "192.0.2.7", true), Some(Exempt::Network));
        assert_eq!(exempt(network, "198.51.100.7", false), None);
    }
}
