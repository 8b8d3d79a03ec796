// SPDX-License-Identifier: GPL-3.0-or-later
//! What was signed counts once: who hears a signed report on its way, and sends it again, adds nothing.

use super::accounts::{CLOCK, Signed};
use std::collections::{HashSet, VecDeque};

/// Signatures that are remembered at most, in about 20 MB: those of 400 signed reports a second.
const MOST: usize = 1 << 18;

/// How long each is, in seconds: as long as its time would be taken, wherever the client's clock stands.
const KEPT: u64 = 2 * CLOCK;

/// Whether a signature was seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    New,
    Before,
    /// There is no room to remember one more.
    Full,
}

/// The signatures of what was counted lately.
#[derive(Debug, Default)]
pub(super) struct Replays {
    seen: HashSet<Signed>,
    /// The same in the order in which they came, with the time until which they are remembered.
    order: VecDeque<(u64, Signed)>,
}

impl Replays {
    /// Remembers a signature at the time `now`.
    pub(super) fn see(&mut self, signature: Signed, now: u64) -> Seen {
        while let Some((_, old)) = self.order.pop_front_if(|(until, _)| *until < now) {
            self.seen.remove(&old);
        }
        if self.seen.contains(&signature) {
            return Seen::Before;
        }
        if self.seen.len() >= MOST {
            return Seen::Full;
        }
        self.seen.insert(signature);
        self.order.push_back((now + KEPT, signature));
        Seen::New
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
        assert_eq!([1, 2, 1].map(|n| replays.see(signature(n), 1000)), [Seen::New, Seen::New, Seen::Before]);
        assert_eq!(replays.see(signature(1), 1000 + KEPT), Seen::Before);
        assert_eq!(replays.see(signature(1), 1001 + KEPT), Seen::New, "nobody would take its time any more");
    }

    /// It takes no more memory than that, and forgets nothing before its time for others.
    #[test]
    fn there_is_a_bound() {
        let mut replays = Replays::default();
        let most = u32::try_from(MOST).unwrap();
        assert!((0..most).all(|n| replays.see(signature(n), 1000) == Seen::New));
        assert_eq!([most, 0].map(|n| replays.see(signature(n), 1000)), [Seen::Full, Seen::Before]);
        assert_eq!(replays.see(signature(most), 1001 + KEPT), Seen::New);
        assert_eq!(replays.seen.len(), 1);
    }
}
