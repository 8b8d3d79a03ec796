// SPDX-License-Identifier: GPL-3.0-or-later
//! Where a reader of steps is, and what the next step is to it.
//!
//! The log's order decides: of two steps that follow the same one, the first is the chain. A reader that goes on from where it was
//! before may find another chain than its own: its log was put back to an older copy, and went on without it. So what does not
//! follow makes it doubt, and look at the newest snapshot and all that follows that, before it takes it for junk.

use crate::log::Place;
use bulkmark_counts::{Chain, FleetMark, Mark};

/// How far a ledger is in the chain.
pub(super) const fn own(mark: FleetMark) -> Mark {
    Mark { version: mark.version, chain: mark.chain }
}

/// What a step says of its place in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Its number.
    pub(super) version: u64,
    /// The hash of the one before it.
    pub(super) before: Chain,
    /// Its own hash.
    pub(super) chain: Chain,
    /// When the newest of what it counts came, by the log's clock.
    pub(super) time: u64,
}

impl Head {
    const fn mark(self) -> Mark {
        Mark { version: self.version, chain: self.chain }
    }

    fn follows(self, mark: Mark) -> bool {
        mark.version.checked_add(1) == Some(self.version) && self.before == mark.chain
    }
}

/// What a step is to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    /// It follows what is counted here: it is to be applied.
    Next,
    /// It is counted here already, or lost a race.
    Known,
    /// It has no place in the chain, and is passed over.
    Junk,
    /// It does not follow, which may be the log's fault or this ledger's.
    Doubt,
    /// The log's chain is another than that which is counted here.
    Fork,
    /// The chain begins with what a server counted, which is in the snapshot.
    Seed,
}

/// Where a reader of steps is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    /// All up to here was seen.
    pub(super) place: Place,
    /// How far the log's chain is there; none while no step of it was seen.
    pub(super) tip: Option<Mark>,
    /// The time of that step, as far as it was read; else 0.
    pub(super) time: u64,
    /// Whether a step followed since the reader is there.
    went_on: bool,
    /// What does not follow up to here was doubted before.
    doubted: Place,
}

impl Cursor {
    /// At a place of which the chain is known, or is what the first step says. What was doubted before is not again.
    pub(super) const fn new(place: Place, tip: Option<Mark>, doubted: Place) -> Self {
        Self { place, tip, time: 0, went_on: false, doubted }
    }

    /// Up to where what does not follow was doubted, when this place is, too.
    pub(super) fn doubted_with(&self, place: Place) -> Place {
        self.doubted.max(place)
    }

    /// What a step at `place` is to a ledger that is at `own`. Without a head it cannot be read.
    pub(super) fn classify(&mut self, place: Place, head: Option<Head>, own: Mark) -> StepKind {
        self.place = self.place.max(place);
        let Some(head) = head else { return StepKind::Junk };
        if own.version == 0 && head.version == 1 && head.before != Chain::default() && self.tip.is_none() {
            return StepKind::Seed;
        }
        let before = Mark { version: head.version.saturating_sub(1), chain: head.before };
        let tip = *self.tip.get_or_insert(before);
        let doubted = place <= self.doubted;
        if head.follows(own) && (tip == own || tip.version < own.version) {
            return StepKind::Next;
        }
        if head.follows(tip) && head.version <= own.version {
            (self.tip, self.time, self.went_on) = (Some(head.mark()), head.time, true);
            // Of older ones it is not known here which they were.
            return if head.version == own.version && head.mark() != own {
                StepKind::Fork
            } else {
                StepKind::Known
            };
        }
        match (head.version <= tip.version, doubted) {
            (true, _) if doubted || self.went_on => StepKind::Known,
            (false, true) => StepKind::Junk,
            _ => StepKind::Doubt,
        }
    }

    /// A step that followed was applied, and the ledger is at `own` now.
    pub(super) const fn applied(&mut self, own: Mark) {
        (self.tip, self.went_on) = (Some(own), true);
    }

    /// Whether the log's chain ends in what is counted here.
    pub(super) fn is_at(&self, own: Mark) -> bool {
        self.tip.map_or(own.version == 0, |tip| tip == own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of a branch, by letter.
    fn mark(branch: u8, version: u64) -> Mark {
        let chain = if version == 0 {
            Chain::default()
        } else {
            Chain([branch, version.to_le_bytes()[0], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
        };
        Mark { version, chain }
    }

    /// A step of a branch behind one of another.
    fn step(of: (u8, u8), version: u64) -> Option<Head> {
        let before = mark(of.0, version - 1).chain;
        Some(Head { version, before, chain: mark(of.1, version).chain, time: version })
    }

    fn straight(branch: u8, version: u64) -> Option<Head> {
        step((branch, branch), version)
    }

    #[test]
    fn what_follows_is_applied_and_losers_are_known() {
        let mut cursor = Cursor::new(Place(0), None, Place(0));
        let mut own = Mark::default();
        for version in 1..=3 {
            assert_eq!(cursor.classify(Place(version), straight(b'a', version), own), StepKind::Next);
            own = mark(b'a', version);
            cursor.applied(own);
            assert_eq!(
                cursor.classify(Place(version), step((b'a', b'b'), version), own),
                StepKind::Known,
                "lost"
            );
        }
        assert!(cursor.is_at(own));
        assert_eq!(cursor.classify(Place(9), None, own), StepKind::Junk);
        // What does not follow is doubted once, and passed over when the snapshot said nothing else.
        assert_eq!(cursor.classify(Place(10), straight(b'b', 4), own), StepKind::Doubt);
        let mut again = Cursor::new(Place(1), Some(mark(b'a', 1)), cursor.doubted_with(Place(10)));
        for version in [2, 3] {
            assert_eq!(again.classify(Place(version), straight(b'a', version), own), StepKind::Known);
        }
        assert_eq!(again.classify(Place(9), None, own), StepKind::Junk);
        assert_eq!(again.classify(Place(10), straight(b'b', 4), own), StepKind::Junk);
        assert_eq!(again.classify(Place(11), straight(b'a', 4), own), StepKind::Next);
    }

    /// The log was put back to version 2 and went on without what is counted here.
    #[test]
    fn another_chain_is_noticed_however_long_it_is() {
        let own = mark(b'a', 5);
        // It is shorter, and its places are used again: the reader that goes on behind its own finds an older version.
        let mut cursor = Cursor::new(Place(5), Some(own), Place(0));
        assert_eq!(cursor.classify(Place(6), straight(b'b', 4), own), StepKind::Doubt);
        // It is longer.
        assert_eq!(cursor.classify(Place(6), straight(b'b', 6), own), StepKind::Doubt);
        // From its beginning, or from a snapshot that both have.
        for tip in [None, Some(mark(b'a', 2))] {
            let mut cursor = Cursor::new(Place(2), tip, Place(9));
            assert_eq!(cursor.classify(Place(3), step((b'a', b'b'), 3), own), StepKind::Known);
            assert!(!cursor.is_at(own));
            assert_eq!(cursor.classify(Place(4), straight(b'b', 4), own), StepKind::Known);
            assert_eq!(cursor.time, 4);
            assert_eq!(cursor.classify(Place(5), straight(b'b', 5), own), StepKind::Fork);
        }
    }

    /// The log lost its end, and somebody who had it put it there again.
    #[test]
    fn the_same_chain_at_other_places_is_the_same() {
        let own = mark(b'a', 5);
        let mut cursor = Cursor::new(Place(0), None, Place(0));
        for (place, version) in [(1, 3), (2, 4), (7, 5)] {
            assert!(!cursor.is_at(own));
            assert_eq!(cursor.classify(Place(place), straight(b'a', version), own), StepKind::Known);
        }
        assert!(cursor.is_at(own));
        assert_eq!(cursor.classify(Place(8), straight(b'a', 6), own), StepKind::Next);
        // A log that begins anew behind what is counted here.
        let mut cursor = Cursor::new(Place(0), None, Place(0));
        assert_eq!(cursor.classify(Place(1), straight(b'a', 6), own), StepKind::Next);
    }
}
