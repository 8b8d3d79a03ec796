// SPDX-License-Identifier: GPL-3.0-or-later
//! A milter that is ahead of the log's chain: either the log lost its end, and an aggregator will append it again soon, or all aggregators
//! lost steps that the milter has, and continue without them.

use crate::log::Ends;
use bulkmark_counts::{FleetMark, Mark};
use std::time::{Duration, Instant};

/// How long the log's chain must stand still, with all batches counted, before a milter that is ahead discards its own state. Aggregators
/// that have more append it within seconds of their start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The last step of the log's chain, and the batches that it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tip {
    pub(super) mark: Mark,
    /// The stream of batches that it counts.
    pub(super) made: u64,
    /// The last batch that it counts.
    pub(super) covers: u64,
}

impl Tip {
    pub(super) const fn of(mark: FleetMark) -> Self {
        let FleetMark { version, chain, made, covers, .. } = mark;
        Self { mark: Mark { version, chain }, made, covers }
    }
}

/// The time since when a milter is ahead of a chain that aggregators continue.
#[derive(Default)]
pub(super) struct Ahead(Option<(Tip, Instant)>);

impl Ahead {
    /// Whether the log's chain, which was read to its end, must be taken over although the milter, at `own`, is ahead. Without this, a
    /// milter would wait for steps that never come if nobody reports.
    pub(super) fn gives_up(&mut self, tip: Option<Tip>, own: Mark, ends: Ends, now: Instant) -> bool {
        let counts = |tip: &Tip| tip.made == ends.made && tip.covers >= ends.batches.0;
        let is_ahead = |tip: &Tip| tip.mark != own && tip.mark.version <= own.version;
        let Some(tip) = tip.filter(|tip| counts(tip) && is_ahead(tip)) else {
            self.0 = None;
            return false;
        };
        let since = self.0.filter(|(of, _)| *of == tip).map_or(now, |(_, since)| since);
        self.0 = Some((tip, since));
        now.duration_since(since) >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Place;
    use bulkmark_counts::Chain;

    fn tip(version: u64, covers: u64) -> Tip {
        Tip { mark: Mark { version, chain: Chain([7; 16]) }, made: 5, covers }
    }

    #[test]
    fn a_milter_discards_steps_that_all_others_lost() {
        let own = Mark { version: 9, chain: Chain([1; 16]) };
        let ends = Ends { made: 5, batches: Place(20), steps: Place(3), first_step: Place(1) };
        let (start, mut ahead) = (Instant::now(), Ahead::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!ahead.gives_up(Some(tip(7, 20)), own, ends, at(0)));
        assert!(!ahead.gives_up(Some(tip(7, 20)), own, ends, at(59)));
        assert!(ahead.gives_up(Some(tip(7, 20)), own, ends, at(60)));
        // A growing chain is waited for: an aggregator may be appending the steps that the milter knows.
        assert!(!ahead.gives_up(Some(tip(8, 20)), own, ends, at(61)));
        assert!(!ahead.gives_up(Some(tip(8, 20)), own, ends, at(120)));
        assert!(ahead.gives_up(Some(tip(8, 20)), own, ends, at(121)));
    }

    #[test]
    fn it_waits_while_batches_are_uncounted_or_steps_to_come() {
        let own = Mark { version: 9, chain: Chain([1; 16]) };
        let ends = Ends { made: 5, batches: Place(20), steps: Place(3), first_step: Place(1) };
        let other = Ends { made: 6, ..ends };
        let in_step = Some(Tip { mark: own, ..tip(9, 20) });
        for (tip, ends) in [
            (Some(tip(7, 19)), ends),
            (Some(tip(7, 20)), other),
            (Some(tip(10, 20)), ends),
            (in_step, ends),
            (None, ends),
        ] {
            let (now, mut ahead) = (Instant::now(), Ahead::default());
            assert!(!ahead.gives_up(tip, own, ends, now));
            assert!(!ahead.gives_up(tip, own, ends, now + 2 * PATIENCE), "{tip:?} {ends:?}");
        }
    }
}
