// SPDX-License-Identifier: GPL-3.0-or-later
//! Signed reports count once: an attacker who intercepts one and sends it again adds nothing.

use super::accounts::{CLOCK, Signed};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// The most signatures that are remembered, in about 20 MB: those of 400 signed reports a second.
const MOST: usize = 1 << 18;

/// The time for which each is remembered, in seconds: as long as its timestamp could be accepted, with any error of the client's clock.
const KEPT: u64 = 2 * CLOCK;

/// Whether a signature was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    New,
    /// Its report is being counted; the answer is still to come.
    UnderWay,
    /// Its report was counted.
    Before,
    /// There is no room to remember one more.
    Full,
}

/// The state of a signed report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    UnderWay,
    Counted,
    /// It was not counted, and may be repeated.
    Lost,
}

/// The signatures of recent reports.
#[derive(Debug, Default)]
pub(super) struct Replays {
    seen: HashMap<Signed, Fate>,
    /// The same in order of arrival, with the time until which they are remembered.
    order: VecDeque<(u64, Signed)>,
}

impl Replays {
    /// Remembers a signature at the time `now`. A new one must be [settled](Self::settle).
    pub(super) fn see(&mut self, signature: Signed, now: u64) -> Seen {
        while let Some((_, old)) = self.order.pop_front_if(|(until, _)| *until < now) {
            self.seen.remove(&old);
        }
        let has_room = self.seen.len() < MOST;
        match self.seen.entry(signature) {
            Entry::Occupied(mut seen) => match seen.get() {
                Fate::UnderWay => Seen::UnderWay,
                Fate::Counted => Seen::Before,
                // It stays at its place: it is remembered for as long as its timestamp could be accepted.
                Fate::Lost => {
                    seen.insert(Fate::UnderWay);
                    Seen::New
                }
            },
            Entry::Vacant(_) if !has_room => Seen::Full,
            Entry::Vacant(seen) => {
                seen.insert(Fate::UnderWay);
                self.order.push_back((now + KEPT, signature));
                Seen::New
            }
        }
    }

    /// Stores whether a signed report was counted. If not, it is new when repeated.
    pub(super) fn settle(&mut self, signature: &Signed, is_taken: bool) {
        if let Some(fate) = self.seen.get_mut(signature) {
            *fate = if is_taken { Fate::Counted } else { Fate::Lost };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(n: u32) -> Signed {
        let mut signature = [0; 20];
        signature[..4].copy_from_slice(&n.to_le_bytes());
        signature
    }

    #[test]
    fn a_signature_is_new_once() {
        let mut replays = Replays::default();
        assert_eq!(
            [1, 2, 1].map(|n| replays.see(signature(n), 1000)),
            [Seen::New, Seen::New, Seen::UnderWay]
        );
        replays.settle(&signature(1), true);
        assert_eq!(replays.see(signature(1), 1000 + KEPT), Seen::Before);
        assert_eq!(replays.see(signature(1), 1001 + KEPT), Seen::New, "its timestamp is no longer accepted");
    }

    /// Memory is bounded, and no signature is forgotten early because of others.
    #[test]
    fn memory_is_bounded() {
        let mut replays = Replays::default();
        let most = u32::try_from(MOST).unwrap();
        assert!((0..most).all(|n| replays.see(signature(n), 1000) == Seen::New));
        // Repeating a lost report forever takes no more.
        for _ in 0..3 {
            replays.settle(&signature(1), false);
            assert_eq!(replays.see(signature(1), 1000), Seen::New);
        }
        assert_eq!(replays.order.len(), MOST);
        replays.settle(&signature(0), true);
        assert_eq!([most, 0].map(|n| replays.see(signature(n), 1000)), [Seen::Full, Seen::Before]);
        assert_eq!(replays.see(signature(most), 1001 + KEPT), Seen::New);
        assert_eq!(replays.seen.len(), 1);
    }
}
