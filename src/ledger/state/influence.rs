// SPDX-License-Identifier: GPL-3.0-or-later
//! Bounded influence: what one client can bring to the count of one signature.

use crate::ledger::history::window::Window;
use crate::signature::Signature;
use bulkmark_filter::{Refined, Scaling};
use std::collections::HashMap;

/// Signatures for which a client's own counts are made at first; they grow with it.
const CAPACITY: u32 = 10_000;

/// Windows of one client that are kept. About midnight batches of two windows come in turn.
const WINDOWS: usize = 2;

/// What each limited client brought to each signature in the windows that it reported in last, in a filter of its own for
/// each: never below the truth, so never too much is let through. It is in memory only. Of a window that was there before a
/// restart, or was let go, a client is taken to have brought what all brought together.
pub(crate) struct Influence {
    clients: HashMap<String, Vec<Brought>>,
    /// The windows of which is not known who brought what.
    unknown: Vec<Window>,
}

/// What a client brought in one window.
struct Brought {
    window: Window,
    counts: Scaling<Refined>,
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
        if !self.clients.contains_key(client) {
            self.clients.insert(client.to_owned(), Vec::new());
        }
        let Some(windows) = self.clients.get_mut(client) else { return 0 };
        match windows.iter().position(|brought| brought.window == window) {
            Some(at) => windows[at..].rotate_left(1),
            None => {
                if windows.len() >= WINDOWS {
                    let gone = windows.remove(0).window;
                    if !self.unknown.contains(&gone) {
                        self.unknown.push(gone);
                    }
                }
                windows.push(Brought { window, counts: Scaling::new(CAPACITY) });
            }
        }
        // The one that was used last is the last.
        let Some(Brought { counts, .. }) = windows.last_mut() else { return 0 };
        let mut brought = counts.count(signature.bits());
        if self.unknown.contains(&window) {
            brought = brought.max(all());
        }
        let allowed = times.min(most.saturating_sub(brought));
        // Without memory for its counts a limited client brings nothing.
        if allowed > 0 && counts.add(0, signature.bits(), allowed).is_err() { 0 } else { allowed }
    }

    /// Forgets windows that are over.
    pub(crate) fn forget(&mut self, over: &[Window]) {
        self.unknown.retain(|window| !over.contains(window));
        for windows in self.clients.values_mut() {
            windows.retain(|brought| !over.contains(&brought.window));
        }
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

    /// Requests that were begun before midnight are done after some that were begun after it. That gives nobody more.
    #[test]
    fn windows_may_come_in_turn() {
        let (mut influence, signature) = (Influence::new(Vec::new()), Signature::from_bytes([7; 16]));
        let mut brought = [0; 2];
        for _ in 0..10 {
            for (i, start) in [(0, 0), (1, 86_400)] {
                brought[i] += influence.allow("a", day(start), signature, 3, 5, || 100);
            }
        }
        assert_eq!(brought, [5, 5]);
        // Of a window that was let go is known only what all brought.
        assert_eq!(influence.allow("a", day(2 * 86_400), signature, 3, 5, || 0), 3);
        assert_eq!(influence.allow("a", day(0), signature, 3, 5, || 100), 0);
    }
}
