// SPDX-License-Identifier: GPL-3.0-or-later
//! A milter that is ahead of the log's chain: either the log lost its end, and an aggregator will append it again soon, or all aggregators
//! lost steps that the milter has, and continue without them.

use crate::log::Ends;
use bulkmark_counts::{FleetMark, Mark};
use std::time::{Duration, Instant};

/// How long the log's chain must stand still, with all batches counted, before a milter that is ahead discards its own state. Aggregators
/// that have more append it within seconds of their start.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a milter is ahead at most, even of a chain that grows. An aggregator appends lost steps much faster than that, and a milter that
/// took a false snapshot would wait for them forever.
const LONGEST: Duration = Duration::from_mins(10);

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
pub(super) struct Ahead {
    /// The chain's last step, and since when it is that.
    still: Option<(Tip, Instant)>,
    /// Since when the milter is ahead, whatever the last step.
    since: Option<Instant>,
}

impl Ahead {
    /// Whether the log's chain, which was read to its end, must be taken over although the milter, at `own`, is ahead. Without this, a
    /// milter would wait for steps that never come if nobody reports.
    pub(super) fn gives_up(&mut self, tip: Option<Tip>, own: Mark, ends: Ends, now: Instant) -> bool {
        // While the chain is not read to its end, the comparison has to wait.
        let Some(tip) = tip else {
            self.still = None;
            return false;
        };
        if tip.mark == own || tip.mark.version > own.version {
            *self = Self::default();
            return false;
        }
        let ahead = now.duration_since(*self.since.get_or_insert(now));
        let is_counted = tip.made == ends.made && tip.covers >= ends.batches.0;
        let since = self.still.filter(|(of, _)| *of == tip).map_or(now, |(_, since)| since);
        self.still = is_counted.then_some((tip, since));
        ahead >= LONGEST || is_counted && now.duration_since(since) >= PATIENCE
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

    /// A milter that took a snapshot with a made-up number is ahead of a fleet whose chain grows each second, and is never counted to its end
    /// at the moment of a look.
    #[test]
    fn a_milter_does_not_wait_for_steps_that_nobody_has() {
        let own = Mark { version: 1 << 40, chain: Chain([1; 16]) };
        let ends = |batches| Ends { made: 5, batches: Place(batches), steps: Place(3), first_step: Place(1) };
        let (start, mut ahead) = (Instant::now(), Ahead::default());
        let mut looks = (0..).map(|n| {
            let tip = (n % 3 > 0).then(|| tip(n, n));
            ahead.gives_up(tip, own, ends(n + 1), start + Duration::from_secs(5 * n))
        });
        assert!(looks.by_ref().take(120).all(|gives_up| !gives_up));
        assert!(looks.take(5).any(|gives_up| gives_up), "after ten minutes");
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
