// SPDX-License-Identifier: GPL-3.0-or-later
//! What a draft tells of bulk: of the signatures in its batches those that have reached the bound with it, with their counts as all who
//! keep cells will have them, where these rose since they were told.

use crate::history::bulk::{Print, Section};
use crate::history::window::{Calendar, Window};
use crate::state::held::Held;
use crate::state::merged::MergedCounts;
use crate::state::shares::{Share, add_up};
use crate::state::teller::bound_for;
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// The signatures that a draft counts.
#[derive(Default)]
pub(super) struct Reported {
    /// The count from which on bulk is told apart; 0 while nobody asks for it.
    pub(super) bound: u32,
    signatures: BTreeMap<Print, Signature>,
}

impl Reported {
    /// As the step before tells bulk.
    pub(super) const fn new(bound: u32) -> Self {
        Self { bound, signatures: BTreeMap::new() }
    }

    /// Somebody needs bulk from this count on; 0 asks for nothing.
    pub(super) fn ask(&mut self, from: u32) {
        if from > 0 && (self.bound == 0 || from < self.bound) {
            self.bound = from;
        }
    }

    /// This one is counted.
    pub(super) fn add(&mut self, signature: Signature) {
        if self.bound > 0 {
            self.signatures.insert(Print::of(signature), signature);
        }
    }

    /// What is to be told, where `held` is what was, and each signature will have these counts.
    pub(super) fn sections(
        &self,
        held: &Held,
        calendar: Calendar,
        counts: impl Fn(Signature) -> Vec<Share>,
    ) -> Vec<Section> {
        let mut told: BTreeMap<Window, Vec<(Print, u32)>> = BTreeMap::new();
        for (&print, &signature) in &self.signatures {
            let shares = add_up(counts(signature).into_iter());
            let total = shares.iter().fold(0, |sum: u32, share| sum.saturating_add(share.count));
            let bound = bound_for(signature, self.bound);
            let like = calendar.of(signature, 0);
            for share in shares.iter().filter(|_| total >= bound) {
                let window = Window { start: share.window, ..like };
                if held.is_told(window, print, share.count, self.bound) {
                    told.entry(window).or_default().push((print, share.count));
                }
            }
        }
        told.into_iter().map(|(window, entries)| Section { window, entries }).collect()
    }
}

/// How often a signature was counted in the windows like its own that are not over, those that have yet to begin among them: the log's clock may have
/// been set back.
pub(super) fn counts_before(
    merged: &MergedCounts,
    calendar: Calendar,
    signature: Signature,
    time: u64,
) -> impl Iterator<Item = Share> {
    let bits = signature.bits();
    let cells = merged.windows().iter().map(move |held| {
        let counts = held.slices.iter().map(|slice| slice.count(bits));
        (held.window, counts.fold(0, u32::saturating_add))
    });
    let layers = merged.layers().iter().flat_map(|(_, layer)| &layer.windows);
    let layers = layers.map(move |(&window, held)| (window, held.filter.count(bits)));
    let counts = move |window: Window| window.takes(signature) && !calendar.is_over(window, time);
    let open = cells.chain(layers).filter(move |(window, _)| counts(*window));
    open.map(|(window, count)| Share { window: window.start, count })
}

/// Takes half of the entries away; the rest is told when its signatures are reported next.
pub(super) fn halve(sections: &mut Vec<Section>) {
    sections.iter_mut().for_each(|section| section.entries.truncate(section.entries.len() / 2));
    sections.retain(|section| !section.entries.is_empty());
}
