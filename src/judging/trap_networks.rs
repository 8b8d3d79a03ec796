// SPDX-License-Identifier: GPL-3.0-or-later
//! The networks of mailings that traps nominated. A sender who knows several traps can write to all of them; so for mail from one network
//! only one trap nominates.

use bulkmark_types::{ClientNetwork, Signature};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// The most signatures and networks that are kept, newest first: some days of a busy trap. Each takes about 40 bytes.
const MAX_ENTRIES: usize = 1 << 17;

/// The recent nominations by traps.
#[derive(Default)]
pub(super) struct TrapNetworks(Mutex<Nominations>);

#[derive(Default)]
struct Nominations {
    hasher: RandomState,
    /// The first trap for each signature and network.
    traps: HashMap<u64, u64>,
    order: VecDeque<u64>,
}

impl TrapNetworks {
    /// Whether this trap may nominate a mailing with these signatures from this network: if it is the first trap for it, or was before.
    pub(super) fn may_nominate(&self, of: &[Signature], network: Option<ClientNetwork>, trap: &str) -> bool {
        let mut nominations = self.0.lock();
        let network = network.as_ref().map(ClientNetwork::provider);
        let trap = nominations.hasher.hash_one(trap);
        let keys: Vec<u64> =
            of.iter().map(|signature| nominations.hasher.hash_one((signature.to_bytes(), network))).collect();
        if keys.iter().any(|key| nominations.traps.get(key).is_some_and(|first| *first != trap)) {
            return false;
        }
        for key in keys {
            if nominations.traps.insert(key, trap).is_none() {
                nominations.order.push_back(key);
            }
        }
        while nominations.order.len() > MAX_ENTRIES {
            if let Some(oldest) = nominations.order.pop_front() {
                nominations.traps.remove(&oldest);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trap_for_each_network_nominates() {
        let nominations = TrapNetworks::default();
        let signature = |n: u32| Signature::from_bytes(std::array::from_fn(|i| n.to_le_bytes()[i % 4]));
        let network = |ip: &str| Some(ClientNetwork::of(ip.parse().unwrap()));
        let of = [signature(1), signature(2)];
        assert!(nominations.may_nominate(&of, network("192.0.2.7"), "@a.test"));
        assert!(nominations.may_nominate(&of, network("192.0.2.8"), "@a.test"), "the same one");
        assert!(
            !nominations.may_nominate(&of[1..], network("192.0.2.9"), "@b.test"),
            "another one, of a similar mailing"
        );
        assert!(nominations.may_nominate(&of, network("198.51.100.7"), "@b.test"));
        assert!(
            nominations.may_nominate(&of, None, "@b.test") && !nominations.may_nominate(&of, None, "@c.test")
        );
        assert!(nominations.may_nominate(&of, network("2001:db8:1::7"), "@b.test"));
        assert!(!nominations.may_nominate(&of, network("2001:db8:2::7"), "@c.test"), "of one provider");
        for n in 0..2 * u32::try_from(MAX_ENTRIES).unwrap() {
            nominations.may_nominate(&[signature(n + 10)], None, "@a.test");
        }
        let nominations = nominations.0.lock();
        assert_eq!((nominations.order.len(), nominations.traps.len()), (MAX_ENTRIES, MAX_ENTRIES));
    }
}
