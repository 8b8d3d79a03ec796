// SPDX-License-Identifier: GPL-3.0-or-later
//! Limits of requests by principal.

use crate::net::{Paid, Rate};
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
pub(super) struct Failures(Mutex<HashMap<IpAddr, (u32, Instant)>>);

impl Failures {
    /// Adds one, and returns their number within a minute, as far as they are remembered.
    pub(super) fn add(&self, from: IpAddr) -> u32 {
        let mut counts = self.0.lock();
        if counts.len() >= MAX_REMEMBERED && !counts.contains_key(&from) {
            counts.retain(|_, (_, since)| since.elapsed() < MINUTE);
            if counts.len() >= MAX_REMEMBERED {
                return 1;
            }
        }
        let (count, since) = counts.entry(from).or_insert_with(|| (0, Instant::now()));
        if since.elapsed() >= MINUTE {
            (*count, *since) = (0, Instant::now());
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
    /// When idle addresses were last removed.
    tidied: Instant,
}

impl Checks {
    pub(super) fn new(a_minute: NonZeroU32) -> Self {
        let askers = Askers { clients: HashMap::new(), anonymous: HashMap::new(), tidied: Instant::now() };
        Self { rate: Rate::new(a_minute, MINUTE, a_minute), paid: Mutex::new(askers) }
    }

    /// Whether one more may be answered now; if so, records it.
    pub(super) fn admit(&self, principal: &Principal) -> bool {
        let (mut askers, now) = (self.paid.lock(), Instant::now());
        let Askers { clients, anonymous, tidied } = &mut *askers;
        if !principal.is_anonymous() {
            return self.rate.admits(clients.entry(principal.clone()).or_default(), 1, now);
        }
        if anonymous.len() >= MAX_REMEMBERED && now.duration_since(*tidied) >= Duration::from_secs(1) {
            *tidied = now;
            anonymous.retain(|_, paid| !self.rate.is_over(*paid, now));
            anonymous.shrink_to_fit();
        }
        // More addresses than that within a minute are an attack, and none is answered.
        anonymous.len() < 2 * MAX_REMEMBERED
            && self.rate.admits(anonymous.entry(principal.clone()).or_default(), 1, now)
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
        let failures = Failures::default();
        assert_eq!([0; 4].map(|_| failures.add(address(1))), [1, 2, 3, 4]);
        assert_eq!(failures.add(address(2)), 1);
        for n in 0..2 * u32::try_from(MAX_REMEMBERED).unwrap() {
            failures.add(address(n));
        }
        assert!(failures.0.lock().len() <= MAX_REMEMBERED);
        assert!(failures.add(address(1)) > 4, "it is remembered");
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
