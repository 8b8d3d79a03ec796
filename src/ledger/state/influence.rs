// SPDX-License-Identifier: GPL-3.0-or-later
//! Bounded influence: what one client can bring to the count of one signature.

use crate::ledger::history::window::Window;
use crate::signature::Signature;
use bulkmark_filter::{Refined, Scaling};
use std::collections::HashMap;

/// Signatures for which a client's own counts are made at first; they grow with it.
const CAPACITY: u32 = 10_000;

/// What each limited client brought to each signature in the running window, in a filter of its own: never below the
/// truth, so never too much is let through. It is in memory only. After a restart, a client is taken to have brought what all
/// brought together, in the windows that were there before.
pub(crate) struct Influence {
    clients: HashMap<String, (Window, Scaling<Refined>)>,
    /// The windows of which is not known who brought what.
    unknown: Vec<Window>,
}

impl Influence {
    /// Of a ledger that was read and has these windows.
    pub(crate) fn new(unknown: Vec<Window>) -> Self {
        Self { clients: HashMap::new(), unknown }
    }

    /// How many of `times` reports a client may bring, of `most` in all within a window, where `all` is what everybody brought.
    /// They are taken for brought.
    pub(crate) fn allow(
        &mut self,
        client: &str,
        window: Window,
        signature: Signature,
        times: u32,
        most: u32,
        all: impl FnOnce() -> u32,
    ) -> u32 {
        let new = || (window, Scaling::new(CAPACITY));
        let entry = match self.clients.get_mut(client) {
            Some(entry) => entry,
            None => self.clients.entry(client.to_owned()).or_insert_with(new),
        };
        if entry.0 != window {
            *entry = new();
        }
        let row = &mut entry.1;
        let mut brought = row.count(signature.bits());
        if self.unknown.contains(&window) {
            brought = brought.max(all());
        }
        let allowed = times.min(most.saturating_sub(brought));
        // Without memory for its counts a limited client brings nothing.
        if allowed > 0 && row.add(0, signature.bits(), allowed).is_err() { 0 } else { allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn day(start: u64) -> Window {
        Window { start, length: 86_400 }
    }

    #[test]
    fn a_client_brings_no_more_than_it_may() {
        let (mut influence, signature) = (Influence::new(Vec::new()), Signature::from_bytes([7; 16]));
        let mut allow = |client, window, signature, times| {
            influence.allow(client, window, signature, times, 5, || panic!("that is known"))
        };
        assert_eq!(allow("a", day(0), signature, 3), 3);
        assert_eq!(allow("a", day(0), signature, 3), 2);
        assert_eq!(allow("a", day(0), signature, 1), 0);
        assert_eq!(allow("b", day(0), signature, 9), 5, "each client for itself");
        assert_eq!(allow("a", day(0), Signature::from_bytes([8; 16]), 9), 5, "each signature for itself");
        assert_eq!(allow("a", day(86_400), signature, 4), 4, "each window for itself");
    }

    #[test]
    fn a_restart_lets_nobody_begin_anew() {
        let (mut influence, signature) = (Influence::new(vec![day(0)]), Signature::from_bytes([7; 16]));
        assert_eq!(influence.allow("a", day(0), signature, 9, 5, || 3), 2);
        assert_eq!(influence.allow("a", day(0), signature, 9, 5, || 5), 0);
        assert_eq!(
            influence.allow("a", day(86_400), signature, 9, 5, || 3),
            5,
            "in the next window all is known"
        );
    }
}
