// SPDX-License-Identifier: GPL-3.0-or-later
//! The state of a fleet's chain of steps, and the origins of its counts.

use super::vector::{Chain, Origin};
use sha2::{Digest, Sha256};

/// The state of a fleet's chain in a ledger. The default is before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FleetMark {
    /// The number of steps.
    pub version: u64,
    /// The hash of the last step.
    pub chain: Chain,
    /// The number of times that the place for batches was found to be another one, or to have lost its end.
    pub epoch: u64,
    /// The place for batches that `covers` refers to.
    pub made: u64,
    /// Batches up to this place are counted, or were skipped.
    pub covers: u64,
    /// The place of the last step in the log.
    pub place: u64,
}

/// The most steps of a chain. At one a second they take nine million years.
const MAX_VERSION: u64 = 1 << 48;

impl FleetMark {
    /// Whether a chain of honest steps can have this state: each step begins at most one epoch, so there are no more epochs than steps.
    #[must_use]
    pub const fn is_possible(&self) -> bool {
        self.epoch <= self.version && self.version <= MAX_VERSION
    }

    /// The number of the next epoch; `None` after the last number, which no honest chain reaches.
    #[must_use]
    pub const fn next_epoch(&self) -> Option<u64> {
        self.epoch.checked_add(1)
    }
}

/// The origin of a limited client's counts in the fleet of this community. Each withdrawal of these counts gives the client a new one.
pub fn origin_of_client(community: Origin, name: &str, withdrawn: u32) -> Origin {
    let mut hash = Sha256::new();
    hash.update(b"bulkmark fleet client");
    hash.update(community.0.to_le_bytes());
    hash.update(withdrawn.to_le_bytes());
    hash.update(name.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    Origin(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
}

/// The most bytes of a client's name.
const MAX_NAME: usize = 64;

/// Whether this is a valid name of a client, in a log of any kind.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_no_more_epochs_than_steps() {
        let mark = |version, epoch| FleetMark { version, epoch, ..FleetMark::default() };
        assert!(mark(0, 0).is_possible() && mark(1, 1).is_possible() && mark(MAX_VERSION, 7).is_possible());
        assert!(!mark(1, 2).is_possible() && !mark(5, u64::MAX).is_possible());
        assert!(!mark(MAX_VERSION + 1, 1).is_possible() && !mark(u64::MAX, u64::MAX).is_possible());
        assert_eq!((mark(1, 1).next_epoch(), mark(1, u64::MAX).next_epoch()), (Some(2), None));
    }
}
