// SPDX-License-Identifier: GPL-3.0-or-later
//! A draft's entries for the list of bulk: the signatures of its batches that reach the bound with it, with the counts that all members
//! with cells will have, if these rose since they were announced.

use crate::history::bulk::{Print, Section};
use crate::history::window::{Calendar, Window};
use crate::state::bulk_counts::BulkCounts;
use crate::state::merged::MergedCounts;
use crate::state::note_queue::bound_for;
use crate::state::shares::{Share, add_up};
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// The signatures of a draft.
#[derive(Default)]
pub(super) struct Reported {
    /// The count from which on bulk is listed; 0 if no milter asked for it.
    pub(super) bound: u32,
    signatures: BTreeMap<Print, Signature>,
}

impl Reported {
    /// Begins with the bound of the previous step.
    pub(super) const fn new(bound: u32) -> Self {
        Self { bound, signatures: BTreeMap::new() }
    }

    /// Records that a milter needs bulk from this count on; 0 asks for nothing.
    pub(super) fn ask(&mut self, from: u32) {
        if from > 0 && (self.bound == 0 || from < self.bound) {
            self.bound = from;
        }
    }

    /// Records a counted signature.
    pub(super) fn add(&mut self, signature: Signature) {
        if self.bound > 0 {
            self.signatures.insert(Print::of(signature), signature);
        }
    }

    /// The entries to announce. `held` has the announced counts, and `counts` returns those after the step.
    pub(super) fn sections(
        &self,
        held: &BulkCounts,
        calendar: Calendar,
        counts: impl Fn(Signature) -> Vec<Share>,
    ) -> Vec<Section> {
        let mut announced: BTreeMap<Window, Vec<(Print, u32)>> = BTreeMap::new();
        for (&print, &signature) in &self.signatures {
            let shares = add_up(counts(signature).into_iter());
            let total = shares.iter().fold(0, |sum: u32, share| sum.saturating_add(share.count));
            let bound = bound_for(signature, self.bound);
            let like = calendar.of(signature, 0);
            for share in shares.iter().filter(|_| total >= bound) {
                let window = Window { start: share.window, ..like };
                if held.must_announce(window, print, share.count, self.bound) {
                    announced.entry(window).or_default().push((print, share.count));
                }
            }
        }
        announced.into_iter().map(|(window, entries)| Section { window, entries }).collect()
    }
}

/// The counts of a signature in the windows of its kind that are not over. They include windows in the future, as the log's clock may have
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

/// Removes half of the entries; their signatures are announced with their next report.
pub(super) fn halve(sections: &mut Vec<Section>) {
    sections.iter_mut().for_each(|section| section.entries.truncate(section.entries.len() / 2));
    sections.retain(|section| !section.entries.is_empty());
}
