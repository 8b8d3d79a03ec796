// SPDX-License-Identifier: GPL-3.0-or-later
//! The position of a reader of steps, and its relation to the next step.
//!
//! The log's order decides: of two steps that follow the same one, the first belongs to the chain. A reader that continues from its old
//! position may meet another chain: its log was restored from an older copy, and continued without the lost steps. So a step that does not
//! follow raises a doubt, and the reader compares the newest snapshot and all steps behind it, before it treats the step as junk.

use crate::log::Place;
use bulkmark_counts::{Chain, FleetMark, Mark};

/// Returns the position of a ledger in the chain.
pub(super) const fn own(mark: FleetMark) -> Mark {
    Mark { version: mark.version, chain: mark.chain }
}

/// The head of a step: its place in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Its number.
    pub(super) version: u64,
    /// The hash of the one before it.
    pub(super) before: Chain,
    /// Its own hash.
    pub(super) chain: Chain,
    /// The time of the newest batch that it counts, by the log's clock.
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

/// The relation of a step to a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    /// It follows the local chain and must be applied.
    Next,
    /// It is already counted, or another step was first.
    Known,
    /// It has no place in the chain, and is skipped.
    Junk,
    /// It does not follow: either the log's fault or this ledger's.
    Doubt,
    /// The log's chain differs from the local one.
    Fork,
    /// The chain begins with a server's counts, which are in the snapshot.
    Seed,
}

/// The position of a reader of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The last place that was read.
    pub(super) place: Place,
    /// The end of the log's chain there; none while no step of it was read.
    pub(super) tip: Option<Mark>,
    /// The time of that step if it was read; otherwise 0.
    pub(super) time: u64,
    /// Whether a step followed since the reader started there.
    went_on: bool,
    /// Steps up to here that do not follow were doubted before.
    doubted: Place,
    /// Whether the last step that followed could not be applied: the log's members count otherwise than this one.
    refused: bool,
}

impl Cursor {
    /// Starts at a place whose chain is known, or is taken from the first step. Steps that were doubted before are not doubted again.
    pub(super) const fn new(place: Place, tip: Option<Mark>, doubted: Place) -> Self {
        Self { place, tip, time: 0, went_on: false, doubted, refused: false }
    }

    /// Returns the end of the doubted steps when this place is doubted, too.
    pub(super) fn doubted_with(&self, place: Place) -> Place {
        self.doubted.max(place)
    }

    /// Classifies a step at `place` for a ledger that is at `own`. A step without head cannot be parsed.
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
            // Older local steps are not known here.
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

    /// Records that a step that followed was applied, and the ledger is at `own` now.
    pub(super) const fn applied(&mut self, own: Mark) {
        (self.tip, self.went_on, self.refused) = (Some(own), true, false);
    }

    /// Records that a step that followed cannot be applied here. Others may follow in its place.
    pub(super) const fn refuse(&mut self) {
        self.refused = true;
    }

    /// Whether the ledger has all of the log's chain that was read.
    pub(super) fn has_all(&self, own: Mark) -> bool {
        self.is_at(own) && !self.refused
    }

    /// Whether the log's chain ends where the ledger is.
    pub(super) fn is_at(&self, own: Mark) -> bool {
        self.tip.map_or(own.version == 0, |tip| tip == own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mark of a step of a branch, by letter.
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

    /// A ledger with another federation key is not in step with a log of which it can apply nothing.
    #[test]
    fn a_refused_step_is_missing_until_another_one_is_applied() {
        let mut cursor = Cursor::new(Place(0), None, Place(0));
        let own = Mark::default();
        assert!(cursor.has_all(own));
        assert_eq!(cursor.classify(Place(1), straight(b'a', 1), own), StepKind::Next);
        cursor.refuse();
        assert_eq!((cursor.is_at(own), cursor.has_all(own)), (true, false), "others may step from here");
        assert_eq!(cursor.classify(Place(2), straight(b'b', 1), own), StepKind::Next);
        cursor.applied(mark(b'b', 1));
        assert!(cursor.has_all(mark(b'b', 1)));
    }

    #[test]
    fn steps_that_follow_are_applied_and_losers_are_known() {
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
        // A step that does not follow is doubted once, and skipped if the snapshot does not contradict.
        assert_eq!(cursor.classify(Place(10), straight(b'b', 4), own), StepKind::Doubt);
        let mut again = Cursor::new(Place(1), Some(mark(b'a', 1)), cursor.doubted_with(Place(10)));
        for version in [2, 3] {
            assert_eq!(again.classify(Place(version), straight(b'a', version), own), StepKind::Known);
        }
        assert_eq!(again.classify(Place(9), None, own), StepKind::Junk);
        assert_eq!(again.classify(Place(10), straight(b'b', 4), own), StepKind::Junk);
        assert_eq!(again.classify(Place(11), straight(b'a', 4), own), StepKind::Next);
    }

    /// The log was restored at version 2 and continued without the later steps.
    #[test]
    fn another_chain_is_noticed_however_long_it_is() {
        let own = mark(b'a', 5);
        // It is shorter, and its places are reused: a reader that continues from its own place finds an older version.
        let mut cursor = Cursor::new(Place(5), Some(own), Place(0));
        assert_eq!(cursor.classify(Place(6), straight(b'b', 4), own), StepKind::Doubt);
        // It is longer.
        assert_eq!(cursor.classify(Place(6), straight(b'b', 6), own), StepKind::Doubt);
        // Read from its beginning, or from a snapshot that both have.
        for tip in [None, Some(mark(b'a', 2))] {
            let mut cursor = Cursor::new(Place(2), tip, Place(9));
            assert_eq!(cursor.classify(Place(3), step((b'a', b'b'), 3), own), StepKind::Known);
            assert!(!cursor.is_at(own));
            assert_eq!(cursor.classify(Place(4), straight(b'b', 4), own), StepKind::Known);
            assert_eq!(cursor.time, 4);
            assert_eq!(cursor.classify(Place(5), straight(b'b', 5), own), StepKind::Fork);
        }
    }

    /// The log lost its end, and a member that had it appended it again.
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
        // A log whose first step follows the local one.
        let mut cursor = Cursor::new(Place(0), None, Place(0));
        assert_eq!(cursor.classify(Place(1), straight(b'a', 6), own), StepKind::Next);
    }
}
