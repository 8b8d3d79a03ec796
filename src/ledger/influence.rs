// SPDX-License-Identifier: GPL-3.0-or-later
//! Bounded influence: what one client can bring to the count of one signature.

use super::window::Window;
use crate::filter::{Refined, Scaling};
use crate::signature::Signature;
use std::collections::HashMap;

/// Signatures for which a client's own counts are made at first; they grow with it.
const CAPACITY: u32 = 10_000;

/// What each limited client brought to each signature in the running window, in a filter of its own: never below the
/// truth, so never too much is let through. It is in memory only: after a restart, clients begin anew.
#[derive(Default)]
pub(super) struct Influence(HashMap<String, (Window, Scaling<Refined>)>);

impl Influence {
    /// How many of `times` reports a client may bring, of `most` in all within a window. They are taken for brought.
    pub(super) fn allow(
        &mut self,
        client: &str,
        window: Window,
        signature: Signature,
        times: u32,
        most: u32,
    ) -> u32 {
        let new = || (window, Scaling::new(CAPACITY));
        let entry = match self.0.get_mut(client) {
            Some(entry) => entry,
            None => self.0.entry(client.to_owned()).or_insert_with(new),
        };
        if entry.0 != window {
            *entry = new();
        }
        let row = &mut entry.1;
        let allowed = times.min(most.saturating_sub(row.count(signature.bits())));
        // Without memory for its counts a limited client brings nothing.
        if allowed > 0 && row.add(0, signature.bits(), allowed).is_err() { 0 } else { allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_brings_no_more_than_it_may() {
        let (mut influence, signature) = (Influence::default(), Signature::from_bytes([7; 16]));
        let day = |start| Window { start, length: 86_400 };
        assert_eq!(influence.allow("a", day(0), signature, 3, 5), 3);
        assert_eq!(influence.allow("a", day(0), signature, 3, 5), 2);
        assert_eq!(influence.allow("a", day(0), signature, 1, 5), 0);
        assert_eq!(influence.allow("b", day(0), signature, 9, 5), 5, "each client for itself");
        assert_eq!(
            influence.allow("a", day(0), Signature::from_bytes([8; 16]), 9, 5),
            5,
            "each signature for itself"
        );
        assert_eq!(influence.allow("a", day(86_400), signature, 4, 5), 4, "each window for itself");
    }
}
