// SPDX-License-Identifier: GPL-3.0-or-later
//! From which networks traps were told of a mailing. Who knows several traps can write to all of them; so of what comes from one
//! network only one of them is heard.

use bulkmark_types::{ClientNetwork, Signature};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// Signatures and networks that are kept, the newest: some days of a busy trap. Each takes about 40 bytes.
const MOST: usize = 1 << 17;

/// What is known.
#[derive(Default)]
pub(super) struct TrapNetworks(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    hasher: RandomState,
    /// By signature and network, the trap that spoke first.
    traps: HashMap<u64, u64>,
    order: VecDeque<u64>,
}

impl TrapNetworks {
    /// Whether this trap may speak of a mailing with these signatures that comes from this network: it is the first from there to do so, or did
    /// before.
    pub(super) fn may_speak(&self, of: &[Signature], network: Option<ClientNetwork>, trap: &str) -> bool {
        let mut heard = self.0.lock();
        let network = network.as_ref().map(ClientNetwork::provider);
        let trap = heard.hasher.hash_one(trap);
        let keys: Vec<u64> =
            of.iter().map(|signature| heard.hasher.hash_one((signature.to_bytes(), network))).collect();
        if keys.iter().any(|key| heard.traps.get(key).is_some_and(|first| *first != trap)) {
            return false;
        }
        for key in keys {
            if heard.traps.insert(key, trap).is_none() {
                heard.order.push_back(key);
            }
        }
        while heard.order.len() > MOST {
            if let Some(oldest) = heard.order.pop_front() {
                heard.traps.remove(&oldest);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trap_of_each_network_is_heard() {
        let heard = TrapNetworks::default();
        let signature = |n: u32| Signature::from_bytes(std::array::from_fn(|i| n.to_le_bytes()[i % 4]));
        let network = |ip: &str| Some(ClientNetwork::of(ip.parse().unwrap()));
        let of = [signature(1), signature(2)];
        assert!(heard.may_speak(&of, network("192.0.2.7"), "@a.test"));
        assert!(heard.may_speak(&of, network("192.0.2.8"), "@a.test"), "the same one");
        assert!(
            !heard.may_speak(&of[1..], network("192.0.2.9"), "@b.test"),
            "another one, of a like mailing"
        );
        assert!(heard.may_speak(&of, network("198.51.100.7"), "@b.test"));
        assert!(heard.may_speak(&of, None, "@b.test") && !heard.may_speak(&of, None, "@c.test"));
        assert!(heard.may_speak(&of, network("2001:db8:1::7"), "@b.test"));
        assert!(!heard.may_speak(&of, network("2001:db8:2::7"), "@c.test"), "of one provider");
        for n in 0..2 * u32::try_from(MOST).unwrap() {
            heard.may_speak(&[signature(n + 10)], None, "@a.test");
        }
        let heard = heard.0.lock();
        assert_eq!((heard.order.len(), heard.traps.len()), (MOST, MOST));
    }
}
