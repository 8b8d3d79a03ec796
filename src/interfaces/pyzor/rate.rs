// SPDX-License-Identifier: GPL-3.0-or-later
//! The rate limit of addresses.

use crate::net::{Paid, Rate, network_of};
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// The number of slots for addresses. With more addresses, some share a slot; nobody can predict which.
const PLACES: usize = 1 << 16;

/// The seconds for which unused requests can be made up.
const BURST: NonZeroU32 = const { NonZeroU32::new(2).unwrap() };

/// The rate limit of each address, in constant memory.
pub(super) struct Rates {
    paid: Vec<Paid>,
    rate: Rate,
    hash: RandomState,
}

impl Rates {
    /// A limit of `rate` requests a second.
    pub(super) fn new(rate: NonZeroU32) -> Self {
        let burst = rate.saturating_mul(BURST);
        let rate = Rate::new(rate, Duration::from_secs(1), burst);
        Self { paid: vec![Paid::default(); PLACES], rate, hash: RandomState::new() }
    }

    /// Whether this address may ask once more. This machine's addresses always may: no other machine can have them.
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
    fn each_address_has_a_rate_limit() {
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
