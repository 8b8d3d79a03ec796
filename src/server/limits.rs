// SPDX-License-Identifier: GPL-3.0-or-later
//! How much one who asks may do.

use crate::net::{Paid, Rate};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Those who are remembered at most.
const MAX_REMEMBERED: usize = 10_000;

/// For how long failed attempts are counted together.
const MINUTE: Duration = Duration::from_secs(60);

/// As whom somebody is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// A client, wherever it asks from.
    Client(Arc<str>),
    /// Whoever asks without a token, by the network of the address.
    Network(IpAddr),
    /// Whoever asks without a token on a Unix socket, and so from this machine.
    Here,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(name) => write!(f, "client {name}"),
            Self::Network(network) => network.fmt(f),
            Self::Here => f.write_str("this machine"),
        }
    }
}

impl Who {
    /// Whether anybody may be it.
    pub(super) const fn is_stranger(&self) -> bool {
        !matches!(self, Self::Client(_))
    }
}

/// Tokens that were not valid, by the network that they came from.
#[derive(Default)]
pub(super) struct Failures(Mutex<HashMap<IpAddr, (u32, Instant)>>);

impl Failures {
    /// Notes one. How many there were within a minute, as far as they are remembered.
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

/// Single questions a minute.
pub(super) struct Checks {
    rate: Rate,
    paid: Mutex<Askers>,
}

struct Askers {
    /// There are no more of them than clients.
    clients: HashMap<Who, Paid>,
    strangers: HashMap<Who, Paid>,
    /// When those strangers were forgotten last who may ask as many as ever.
    tidied: Instant,
}

impl Checks {
    pub(super) fn new(a_minute: NonZeroU32) -> Self {
        let askers = Askers { clients: HashMap::new(), strangers: HashMap::new(), tidied: Instant::now() };
        Self { rate: Rate::new(a_minute, MINUTE, a_minute), paid: Mutex::new(askers) }
    }

    /// Whether one more may be answered now.
    pub(super) fn admit(&self, who: &Who) -> bool {
        let (mut askers, now) = (self.paid.lock(), Instant::now());
        let Askers { clients, strangers, tidied } = &mut *askers;
        if !who.is_stranger() {
            return self.rate.admits(clients.entry(who.clone()).or_default(), 1, now);
        }
        if strangers.len() >= MAX_REMEMBERED && now.duration_since(*tidied) >= Duration::from_secs(1) {
            *tidied = now;
            strangers.retain(|_, paid| !self.rate.is_over(*paid, now));
            strangers.shrink_to_fit();
        }
        // With more addresses than that within a minute somebody is up to something, and none is answered.
        strangers.len() < 2 * MAX_REMEMBERED
            && self.rate.admits(strangers.entry(who.clone()).or_default(), 1, now)
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
        let client = Who::Client("mx".into());
        for who in [client, Who::Network(address(1)), Who::Network(address(2)), Who::Here] {
            assert_eq!([0; 4].map(|_| checks.admit(&who)), [true, true, true, false], "{who:?}");
        }
        for n in 0..3 * u32::try_from(MAX_REMEMBERED).unwrap() {
            checks.admit(&Who::Network(address(n)));
        }
        assert!(checks.paid.lock().strangers.len() <= 2 * MAX_REMEMBERED);
        assert!(checks.admit(&Who::Client("another".into())), "a client does not suffer from strangers");
    }
}
