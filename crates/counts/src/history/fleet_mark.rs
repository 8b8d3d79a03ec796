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

/// The most steps of a chain: more than a second of any log has, for each second since 1970, and a margin for wrong clocks. The limit rises
/// faster than an honest chain, so a chain with a made-up number below it does not end there.
const MOST_A_SECOND: u64 = 100;
const MARGIN: u64 = 1 << 40;

impl FleetMark {
    /// Whether a chain of honest steps can have this state at the time `now`: each step begins at most one epoch, so there are no more
    /// epochs than steps.
    #[must_use]
    pub const fn is_possible(&self, now: u64) -> bool {
        let most = now.saturating_mul(MOST_A_SECOND).saturating_add(MARGIN);
        self.epoch <= self.version && self.version <= most
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
        let now = 1_800_000_000;
        let last = now * MOST_A_SECOND + MARGIN;
        assert!([mark(0, 0), mark(1, 1), mark(last, 7)].iter().all(|mark| mark.is_possible(now)));
        assert!(
            [mark(1, 2), mark(5, u64::MAX), mark(last + 1, 1), mark(u64::MAX, 1)]
                .iter()
                .all(|mark| !mark.is_possible(now))
        );
        assert!(mark(last + 99, 1).is_possible(now + 1), "a chain goes on behind the last number");
        assert_eq!((mark(1, 1).next_epoch(), mark(1, u64::MAX).next_epoch()), (Some(2), None));
    }
}
