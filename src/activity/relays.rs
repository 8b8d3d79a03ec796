// SPDX-License-Identifier: GPL-3.0-or-later
//! The networks that send most mail. One that sends a large part of it, with many different senders, may be your own mail server that is missing
//! in `relays`.

use bulkmark_types::ClientNetwork;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;

/// Networks that are counted. Each count is too high by at most 1/20 of all messages (Space-Saving of Metwally, Agrawal and El Abbadi).
const COUNTED: usize = 20;

/// Messages from which on a share is meaningful, and those after which all counts are halved, so that they follow changes.
const FEW: u32 = 200;
const MANY: u32 = 20_000;

/// Sender domains that are counted for a network; this many indicate a relay.
const DOMAINS: usize = 20;

/// A network with one in so many messages by its count, of which 1/20 may be wrong, sends at least a fifth of all.
const ONE_IN: u32 = 4;

/// A client that may be your own mail server in front of this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LikelyRelay {
    /// The last address in its network that sent mail.
    pub client: IpAddr,
    /// The share of all mail from its network, in percent.
    pub percent: u32,
}

#[derive(Debug)]
struct Counted {
    network: ClientNetwork,
    last: IpAddr,
    messages: u32,
    domains: HashSet<u64>,
}

/// The networks that send most mail.
#[derive(Debug, Default)]
pub(super) struct Relays {
    messages: u32,
    networks: Vec<Counted>,
    hashes: RandomState,
}

impl Relays {
    /// Counts a message from this client, with a sender of this domain.
    pub(super) fn came(&mut self, client: IpAddr, domain: &str) {
        let network = ClientNetwork::of(client);
        self.messages += 1;
        let at = self.networks.iter().position(|counted| counted.network == network);
        let at = at.unwrap_or_else(|| self.replace(network, client));
        let domain = self.hashes.hash_one(domain.to_ascii_lowercase());
        let counted = &mut self.networks[at];
        counted.messages += 1;
        counted.last = client;
        if counted.domains.len() < DOMAINS {
            counted.domains.insert(domain);
        }
        if self.messages >= MANY {
            self.messages /= 2;
            self.networks.iter_mut().for_each(|counted| counted.messages /= 2);
        }
    }

    /// Puts a network in the place of the one with the fewest messages; returns its index.
    fn replace(&mut self, network: ClientNetwork, last: IpAddr) -> usize {
        let new = |messages| Counted { network, last, messages, domains: HashSet::new() };
        if self.networks.len() < COUNTED {
            self.networks.push(new(0));
            return self.networks.len() - 1;
        }
        let least = (0..COUNTED).min_by_key(|&at| self.networks[at].messages).unwrap_or_default();
        self.networks[least] = new(self.networks[least].messages);
        least
    }

    /// Returns the networks that may be relays.
    pub(super) fn likely(&self) -> Vec<LikelyRelay> {
        let is_likely = |counted: &&Counted| {
            self.messages >= FEW
                && counted.messages >= self.messages / ONE_IN
                && counted.domains.len() >= DOMAINS
        };
        let relay = |counted: &Counted| LikelyRelay {
            client: counted.last,
            percent: 100 * counted.messages / self.messages,
        };
        self.networks.iter().filter(is_likely).map(relay).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(network: u32) -> IpAddr {
        IpAddr::from(std::net::Ipv4Addr::from_bits(0xC000_0200 + (network << 8) + 7))
    }

    /// Returns the likely relays after so many messages: a third from one network with so many domains, and the others each from a new network.
    fn after(messages: u32, domains: u32) -> Vec<LikelyRelay> {
        let mut relays = Relays::default();
        for n in 0..messages {
            let sender = if n % 3 == 0 { client(0) } else { client(1 + n) };
            relays.came(sender, &format!("d{}.example", n / 3 % domains));
        }
        relays.likely()
    }

    #[test]
    fn a_network_that_brings_a_third_of_all_mail_of_many_domains_may_be_a_relay() {
        for messages in [300, 5_000, 50_000] {
            let [relay] = &after(messages, 50)[..] else { panic!("{messages}: {:?}", after(messages, 50)) };
            assert_eq!(relay.client, client(0));
            assert!((30..=40).contains(&relay.percent), "{relay:?}");
        }
        assert_eq!(after(300, 19), [], "one sender's own");
        assert_eq!(after(FEW - 1, 50), [], "too few messages");
    }

    #[test]
    fn of_many_networks_none_is_a_relay_and_few_are_kept() {
        let mut relays = Relays::default();
        for n in 0..10_000 {
            relays.came(client(n % 1_000), &format!("d{n}.example"));
        }
        assert_eq!((relays.likely(), relays.networks.len()), (Vec::new(), COUNTED));
    }
}
