// SPDX-License-Identifier: GPL-3.0-or-later
//! How often an address may ask.

use crate::net::network_of;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;

/// Addresses that are told apart; more of them share. Nobody knows beforehand which.
const PLACES: usize = 1 << 16;

/// Seconds for which what was not asked can be asked later.
const BURST: u64 = 2;

/// How often each address may ask, in memory that does not grow.
pub(super) struct Rates {
    /// When what was asked so far would be paid for, in microseconds since the start.
    paid: Vec<u64>,
    cost: u64,
    hash: RandomState,
}

impl Rates {
    /// So many times a second.
    pub(super) fn new(rate: NonZeroU32) -> Self {
        Self { paid: vec![0; PLACES], cost: 1_000_000 / u64::from(rate.get()), hash: RandomState::new() }
    }

    /// Whether this address may ask once more, so many microseconds after the start. This machine's may always: nobody else can have them.
    pub(super) fn admits(&mut self, ip: IpAddr, now: u64) -> bool {
        if ip.to_canonical().is_loopback() {
            return true;
        }
        #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
        let place = self.hash.hash_one(network_of(ip)) as usize % PLACES;
        let paid = self.paid[place].max(now) + self.cost;
        let is_admitted = paid <= now + BURST * 1_000_000;
        if is_admitted {
            self.paid[place] = paid;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_asks_so_often() {
        let mut rates = Rates::new(NonZeroU32::new(100).unwrap());
        let mut asked = |ip: &str, now| (0..1000).filter(|_| rates.admits(ip.parse().unwrap(), now)).count();
        assert_eq!((asked("192.0.2.1", 0), asked("192.0.2.1", 0)), (200, 0));
        assert_eq!(asked("192.0.2.1", 500_000), 50);
        assert_eq!(asked("2001:db8::1", 500_000), 200);
        assert_eq!(asked("2001:db8::2", 500_000), 0, "it is the same network");
        assert_eq!((asked("127.0.0.1", 0), asked("::ffff:127.0.0.1", 0)), (1000, 1000));
    }
}
