// SPDX-License-Identifier: GPL-3.0-or-later
//! How much new text stands at the beginning of a message, and how much at its end.

use super::known::Seen;
use super::sample::Scheme;
use super::slots::Near;

/// New passages in a row that are new text. One or two may be new for a word that was put in.
const ROW: usize = 3;

/// The new text of a message, in words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Runs {
    /// At its beginning.
    pub(super) top: usize,
    /// At its end.
    pub(super) bottom: usize,
}

impl Near {
    /// The rows of new passages at both ends, of all that are asked for. In each slot those that come before the first one that was
    /// ever seen are new: an earlier message with them would have reported one of these. What comes behind it in the slot's order says
    /// nothing, unless it was seen.
    pub(super) fn runs(&self, seen: &Seen) -> Runs {
        let reach = Scheme::SHIPPED.reach();
        let mut probes: Vec<(usize, bool)> = Vec::new();
        for slot in &self.slots {
            let mut before_known = true;
            for (passage, signature) in &slot.passages {
                let is_known = seen.has(*signature);
                before_known &= !is_known;
                // What begins at the end goes on with the first words.
                let goes_round = passage.at + reach > self.words;
                if is_known || before_known && !goes_round {
                    probes.push((passage.at, is_known));
                }
            }
        }
        probes.sort_unstable();
        probes.dedup();
        let row = |of: &mut dyn Iterator<Item = &(usize, bool)>| {
            let row: Vec<usize> = of.take_while(|(_, is_known)| !is_known).map(|(at, _)| *at).collect();
            (row.len() >= ROW).then(|| row.last().copied()).flatten()
        };
        let last_of_top = row(&mut probes.iter());
        let first_of_bottom = row(&mut probes.iter().rev());
        Runs {
            top: last_of_top.map_or(0, |at| at + 1),
            bottom: first_of_bottom.map_or(0, |at| self.words.saturating_sub(at + reach - 1)),
        }
    }
}
