// SPDX-License-Identifier: GPL-3.0-or-later
//! Limits of requests by principal.

use crate::net::{Paid, Rate, Sweeps};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum of remembered addresses.
const MAX_REMEMBERED: usize = 10_000;

/// The time for which failed attempts are added up.
const MINUTE: Duration = Duration::from_secs(60);

/// The principal of a request, by which limits count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Principal {
    /// A client, from any address.
    Client(Arc<str>),
    /// Anonymous requests, by the network of the address.
    Network(IpAddr),
    /// Anonymous requests on a Unix socket, and so from this machine.
    Here,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(name) => write!(f, "client {name}"),
            Self::Network(network) => network.fmt(f),
            Self::Here => f.write_str("this machine"),
        }
    }
}

impl Principal {
    /// Whether it has no token.
    pub(super) const fn is_anonymous(&self) -> bool {
        !matches!(self, Self::Client(_))
    }
}

/// Invalid tokens, by the network that they came from.
#[derive(Default)]
pub(super) struct Failures(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    counts: HashMap<IpAddr, (u32, Instant)>,
    sweeps: Sweeps,
}

impl Failures {
    /// Adds one, and returns their number within a minute, as far as they are remembered.
    pub(super) fn add(&self, from: IpAddr, now: Instant) -> u32 {
        let Remembered { counts, sweeps } = &mut *self.0.lock();
        if counts.len() >= MAX_REMEMBERED && !counts.contains_key(&from) {
            if sweeps.is_due(now) {
                counts.retain(|_, (_, since)| now.duration_since(*since) < MINUTE);
            }
            if counts.len() >= MAX_REMEMBERED {
                return 1;
            }
        }
        let (count, since) = counts.entry(from).or_insert((0, now));
        if now.duration_since(*since) >= MINUTE {
            (*count, *since) = (0, now);
        }
        *count = count.saturating_add(1);
        *count
    }
}

/// The rate of single questions.
pub(super) struct Checks {
    rate: Rate,
    paid: Mutex<Askers>,
}

struct Askers {
    /// Bounded by the number of clients.
    clients: HashMap<Principal, Paid>,
    anonymous: HashMap<Principal, Paid>,
    sweeps: Sweeps,
}

impl Checks {
    pub(super) fn new(a_minute: NonZeroU32) -> Self {
        let askers = Askers { clients: HashMap::new(), anonymous: HashMap::new(), sweeps: Sweeps::default() };
        Self { rate: Rate::new(a_minute, MINUTE, a_minute), paid: Mutex::new(askers) }
    }

    /// Whether one more may be answered now; if so, records it.
    pub(super) fn admit(&self, principal: &Principal) -> bool {
        self.admit_many(principal, NonZeroU32::MIN)
    }

    /// The same for one that costs as much as so many.
    pub(super) fn admit_many(&self, principal: &Principal, number: NonZeroU32) -> bool {
        let (mut askers, now) = (self.paid.lock(), Instant::now());
        let Askers { clients, anonymous, sweeps } = &mut *askers;
        if !principal.is_anonymous() {
            return self.rate.admits(clients.entry(principal.clone()).or_default(), number.get(), now);
        }
        if anonymous.len() >= MAX_REMEMBERED && sweeps.is_due(now) {
            anonymous.retain(|_, paid| !self.rate.is_over(*paid, now));
            anonymous.shrink_to_fit();
        }
        // More addresses than that within a minute are an attack, and none is answered.
        anonymous.len() < 2 * MAX_REMEMBERED
            && self.rate.admits(anonymous.entry(principal.clone()).or_default(), number.get(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::from(n.to_le_bytes())
    }

    #[test]
    fn failures_are_counted_by_address_and_only_so_many_addresses_are_remembered() {
        let now = Instant::now();
        let failures = Failures::default();
        let add = |n: u32, at: Instant| failures.add(address(n), at);
        assert_eq!([0; 4].map(|_| add(1, now)), [1, 2, 3, 4]);
        assert_eq!(add(2, now), 1);
        let most = u32::try_from(MAX_REMEMBERED).unwrap();
        (0..2 * most).for_each(|n| _ = add(n, now));
        let remembered = || failures.0.lock().counts.len();
        assert_eq!(remembered(), MAX_REMEMBERED);
        assert!(add(1, now) > 4, "it is remembered");
        // A full table is searched once a second at most: entries that were old by then stay until the next search.
        let (first, second) = (now + MINUTE, now + MINUTE + Sweeps::PAUSE / 2);
        failures.0.lock().counts.values_mut().skip(5000).for_each(|(_, since)| *since = second - MINUTE);
        add(3 * most, first);
        assert_eq!(remembered(), 5001, "those older than a minute are removed");
        (4 * most..5 * most).for_each(|n| _ = add(n, second));
        assert_eq!(remembered(), MAX_REMEMBERED, "no search so soon after the first");
        assert_eq!(add(6 * most, second), 1);
        assert_eq!(remembered(), MAX_REMEMBERED);
        add(6 * most, first + Sweeps::PAUSE);
        assert!(remembered() < MAX_REMEMBERED, "a second later there is");
    }

    #[test]
    fn checks_are_counted_by_client_or_address() {
        let checks = Checks::new(NonZeroU32::new(3).unwrap());
        let client = Principal::Client("mx".into());
        for principal in
            [client, Principal::Network(address(1)), Principal::Network(address(2)), Principal::Here]
        {
            assert_eq!([0; 4].map(|_| checks.admit(&principal)), [true, true, true, false], "{principal:?}");
        }
        for n in 0..3 * u32::try_from(MAX_REMEMBERED).unwrap() {
            checks.admit(&Principal::Network(address(n)));
        }
        assert!(checks.paid.lock().anonymous.len() <= 2 * MAX_REMEMBERED);
        assert!(
            checks.admit(&Principal::Client("another".into())),
            "a client does not suffer from strangers"
        );
    }
}
