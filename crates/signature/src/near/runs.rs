// SPDX-License-Identifier: GPL-3.0-or-later
//! How much new text a message has, and where: passages of it are new or known at a few places, and a row of new ones is new text.

use super::known::Seen;
use super::sample::Scheme;
use super::slots::Near;

/// New passages in a row that are new text. One or two may be new for a word that was put in.
const ROW: usize = 3;

/// New text of a message, in words. It is at least so long: a passage is new from its first new word on, eleven words before which it may
/// begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Runs {
    /// The longest row at an end of the message.
    pub(super) end: usize,
    /// The longest row anywhere.
    pub(super) any: usize,
    /// All that stands before the first known passage and behind the last, as far as there is a row.
    pub(super) around: usize,
}

impl Near {
    /// The new text. In each slot the passages that come before the first one that was ever seen are new: a message with them
    /// would have reported one of these. What comes behind it in the slot's order says nothing, unless it was seen.
    pub(super) fn runs(&self, seen: &Seen) -> Runs {
        let reach = Scheme::SHIPPED.reach();
        let mut places: Vec<(usize, bool)> = Vec::new();
        for slot in &self.slots {
            let mut is_before = true;
            for (passage, signature) in &slot.passages {
                let is_known = seen.has(*signature);
                is_before &= !is_known;
                // What begins at the end goes on with the first words.
                let goes_round = passage.at + reach > self.words;
                if is_known || is_before && !goes_round {
                    places.push((passage.at, is_known));
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        let (Some(&(first, _)), Some(&(last, _))) = (places.first(), places.last()) else {
            return Runs::default();
        };
        let mut runs = Runs::default();
        for row in places.chunk_by(|(_, a), (_, b)| a == b) {
            let [(begin, false), .., (end, _)] = *row else { continue };
            if row.len() < ROW {
                continue;
            }
            let (is_top, is_bottom) = (begin == first, end == last);
            let words = match (is_top, is_bottom) {
                (true, _) => end + 1,
                (false, true) => self.words.saturating_sub(begin + reach - 1),
                (false, false) => (end + 1).saturating_sub(begin + reach - 1),
            };
            runs.any = runs.any.max(words);
            if is_top || is_bottom {
                runs.end = runs.end.max(words);
            }
            let known = |of: &(usize, bool)| of.1.then_some(of.0);
            if is_top {
                runs.around += places.iter().find_map(known).unwrap_or(self.words);
            } else if is_bottom {
                let last = places.iter().rev().find_map(known);
                runs.around += last.map_or(0, |at| self.words.saturating_sub(at + reach));
            }
        }
        runs
    }
}
