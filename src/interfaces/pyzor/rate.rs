// SPDX-License-Identifier: GPL-3.0-or-later
//! How often an address may ask.

use crate::net::{Paid, Rate, network_of};
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Addresses that are told apart; more of them share. Nobody knows beforehand which.
const PLACES: usize = 1 << 16;

/// Seconds for which what was not asked can be asked later.
const BURST: NonZeroU32 = const { NonZeroU32::new(2).unwrap() };

/// How often each address may ask, in memory that does not grow.
pub(super) struct Rates {
    paid: Vec<Paid>,
    rate: Rate,
    hash: RandomState,
}

impl Rates {
    /// So many times a second.
    pub(super) fn new(rate: NonZeroU32) -> Self {
        let burst = rate.saturating_mul(BURST);
        let rate = Rate::new(rate, Duration::from_secs(1), burst);
        Self { paid: vec![Paid::default(); PLACES], rate, hash: RandomState::new() }
    }

    /// Whether this address may ask once more. This machine's may always: nobody else can have them.
    pub(super) fn admits(&mut self, ip: IpAddr, now: Instant) -> bool {
        if ip.to_canonical().is_loopback() {
            return true;
        }
        #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
        let place = self.hash.hash_one(network_of(ip)) as usize % PLACES;
        self.rate.admits(&mut self.paid[place], 1, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_asks_so_often() {
        let mut rates = Rates::new(NonZeroU32::new(100).unwrap());
        let began = Instant::now();
        let mut asked = |ip: &str, milliseconds| {
            let now = began + Duration::from_millis(milliseconds);
            (0..1000).filter(|_| rates.admits(ip.parse().unwrap(), now)).count()
        };
        assert_eq!((asked("192.0.2.1", 0), asked("192.0.2.1", 0)), (200, 0));
        assert_eq!(asked("192.0.2.1", 500), 50);
        assert_eq!(asked("2001:db8::1", 500), 200);
        assert_eq!(asked("2001:db8::2", 500), 0, "it is the same network");
        assert_eq!((asked("127.0.0.1", 0), asked("::ffff:127.0.0.1", 0)), (1000, 1000));
    }
}
