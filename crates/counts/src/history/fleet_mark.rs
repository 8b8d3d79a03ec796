// SPDX-License-Identifier: GPL-3.0-or-later
//! Where a fleet's chain of steps stands, and under which origins it counts.

use super::vector::{Chain, Origin};
use sha2::{Digest, Sha256};

/// Where a fleet's chain stands in a ledger. The default is before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FleetMark {
    /// The number of steps.
    pub version: u64,
    /// The hash of the last of them.
    pub chain: Chain,
    /// How often the place for batches was found to be another one, or to have lost its end.
    pub epoch: u64,
    /// Which place for batches `covers` counts on.
    pub made: u64,
    /// Batches up to this place are counted, or were passed over.
    pub covers: u64,
    /// Where the last step is in the log.
    pub place: u64,
}

/// Steps of a chain at most. One a second would make as many in nine million years.
const MAX_VERSION: u64 = 1 << 48;

impl FleetMark {
    /// Whether a chain of honest steps can stand there: each step begins one epoch at most, so there are no more epochs than steps.
    #[must_use]
    pub const fn is_possible(&self) -> bool {
        self.epoch <= self.version && self.version <= MAX_VERSION
    }

    /// The number of the epoch that may follow; none behind the last number, which no honest chain reaches.
    #[must_use]
    pub const fn next_epoch(&self) -> Option<u64> {
        self.epoch.checked_add(1)
    }
}

/// The origin of what a limited client brings to the fleet of this community. It begins anew each time that what it brought is
/// taken back.
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

/// Bytes of a client's name at most.
const MAX_NAME: usize = 64;

/// Whether a client may be called so, in a log of any kind.
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
