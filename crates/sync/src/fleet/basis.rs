// SPDX-License-Identifier: GPL-3.0-or-later
//! The basis of the next step: the last step, or a new epoch in which all uncounted batches are considered again.

use crate::log::{Ends, Place};
use bulkmark_counts::FleetMark;

/// The basis of the next steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Basis {
    pub(super) epoch: u64,
    pub(super) made: u64,
    pub(super) covers: u64,
    /// The last batch that is no longer kept.
    pub(super) gone: u64,
    /// Whether the log lacks steps that are known here, and continues from them all the same.
    pub(super) ahead: bool,
}

impl Basis {
    /// Returns that of the last step, or a new epoch: if the stream of batches is another one or lost its end, and if the log lacks steps
    /// (`ahead`), because members that wait for these must learn of it. `first` is the first batch that the log still has.
    ///
    /// None if no new epoch is possible.
    pub(super) fn of(mark: FleetMark, ends: Ends, first: Place, ahead: bool) -> Option<Self> {
        let FleetMark { version, epoch, made, covers, .. } = mark;
        let goes_on = version > 0 && made == ends.made && covers <= ends.batches.0;
        let (epoch, covers) = if goes_on && !ahead { (epoch, covers) } else { (mark.next_epoch()?, 0) };
        if version > 0 && !goes_on {
            log::warn!("the log's place for batches is another one, or lost its end: epoch {epoch} begins");
        }
        let gone = first.0.saturating_sub(1).min(ends.batches.0);
        Some(Self { epoch, made: ends.made, covers, gone, ahead })
    }

    /// Whether a step is needed even without batches: to announce a new epoch, in which members report again, or that batches are gone that
    /// some wait for.
    pub(super) const fn is_news(&self, mark: FleetMark) -> bool {
        let is_new = mark.version > 0 && self.epoch > mark.epoch;
        let covered = if self.epoch == mark.epoch { mark.covers } else { 0 };
        is_new || self.gone > covered
    }

    /// Whether this basis holds after the step of this mark: both count the same batches, or it is the epoch after that of the step.
    pub(super) fn holds(&self, mark: FleetMark) -> bool {
        mark.version == 0
            || mark.next_epoch() == Some(self.epoch)
            || mark.epoch == self.epoch && mark.made == self.made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ends(made: u64, batches: u64) -> Ends {
        Ends { made, batches: Place(batches), steps: Place(1), first_step: Place(1) }
    }

    #[test]
    fn an_epoch_begins_where_the_last_step_counts_another_stream_or_is_not_in_the_log() {
        let mark = FleetMark { version: 3, epoch: 2, made: 7, covers: 10, ..FleetMark::default() };
        let of = |ends, ahead| Basis::of(mark, ends, Place(5), ahead).unwrap();
        let same = of(ends(7, 12), false);
        assert_eq!((same.epoch, same.made, same.covers, same.gone), (2, 7, 10, 4));
        assert!(!same.is_news(mark) && same.holds(mark));
        for other in [of(ends(8, 12), false), of(ends(7, 9), false), of(ends(7, 12), true)] {
            assert_eq!((other.epoch, other.covers), (3, 0));
            assert!(other.is_news(mark) && other.holds(mark), "the step that says so follows this one");
        }
        let first = Basis::of(FleetMark::default(), ends(7, 0), Place(1), false).unwrap();
        assert_eq!((first.epoch, first.covers, first.gone), (1, 0, 0));
        assert!(!first.is_news(FleetMark::default()), "nobody waits for anything");
    }

    /// A ledger in which an older program stored the last epoch counts as long as the log stands, and reports when it no longer can.
    #[test]
    fn no_epoch_begins_after_the_last_one() {
        let mark = FleetMark { version: 3, epoch: u64::MAX, made: 7, covers: 10, ..FleetMark::default() };
        assert_eq!(Basis::of(mark, ends(7, 12), Place(5), false).unwrap().epoch, u64::MAX);
        assert_eq!(Basis::of(mark, ends(8, 12), Place(5), false), None);
        assert_eq!(Basis::of(mark, ends(7, 9), Place(5), false), None);
        let older = FleetMark { epoch: 2, ..mark };
        let next = Basis::of(older, ends(8, 12), Place(5), false).unwrap();
        assert!(
            next.holds(older) && !next.holds(FleetMark { epoch: 1, ..older }),
            "it would be junk behind that"
        );
    }

    /// A member that waits for a batch must learn that the log dropped it before it was counted.
    #[test]
    fn batches_that_are_gone_are_news() {
        let mark = FleetMark { version: 3, epoch: 2, made: 7, covers: 10, ..FleetMark::default() };
        let of = |first| Basis::of(mark, ends(7, 20), Place(first), false).unwrap();
        assert!(!of(11).is_news(mark) && of(12).is_news(mark));
        assert!(!of(12).holds(FleetMark { made: 8, ..mark }), "that counts on another place");
    }
}
