// SPDX-License-Identifier: GPL-3.0-or-later
//! A server's list of bulk: how it begins, what is put into it, and when it is told.

use crate::ledger::history::bulk::{BulkMark, Section};
use crate::ledger::state::changes::KeptNote;
use crate::ledger::state::counts::Counts;
use crate::ledger::state::held::Held;
use crate::ledger::state::server::Server;
use crate::ledger::state::shares::add_up;
use crate::ledger::state::teller::LEAST_BOUND;
use crate::signature::Signature;

impl Server {
    /// Has bulk told from the count `bound` on, or from a lower one if that is told already. `new` is a random name for a list that
    /// begins. What reached the bound before is told when it is reported next.
    pub(crate) fn tell_bulk(&mut self, bound: u32, new: u64) -> BulkMark {
        let bound = bound.max(LEAST_BOUND);
        let known = self.counts.bulk;
        if !known.is_begun() {
            self.counts.bulk = BulkMark { list: new.max(1), bound, ..BulkMark::default() };
            (self.counts.adopted, self.teller.has_moved) = (true, true);
        } else if bound < known.bound {
            self.counts.bulk.bound = bound;
            self.counts.adopted = true;
        }
        self.counts.bulk
    }

    /// Notes a signature that was reported, if it is bulk.
    pub(crate) fn look_for_bulk(&mut self, signature: Signature, now: u64) {
        let bulk = self.counts.bulk;
        if bulk.is_begun() && self.count(signature, now) >= bulk.bound {
            self.teller.rise(signature);
        }
    }

    /// Takes what another server told of bulk; what is new of it is told on.
    pub(crate) fn hear_bulk(&mut self, sections: &[Section], now: u64) {
        let Self { counts, teller, .. } = self;
        for section in sections.iter().filter(|_| counts.bulk.is_begun()) {
            counts.held.raise(section, now, |window, print, count| teller.hear(window, print, count));
        }
    }

    pub(crate) fn has_bulk_news(&self) -> bool {
        self.counts.bulk.is_begun() && self.teller.has_news()
    }

    /// Makes notes of what rose since the last one: of others' lists that come as a whole there may be several.
    pub(crate) fn cut_bulk(&mut self, now: u64) {
        while self.has_bulk_news() {
            let vector = self.vector();
            let Self { counts, limited, teller, .. } = self;
            let Counts { local, merged, held, bulk, settings, changes, .. } = counts;
            let by_window = |signature| {
                let own = local.generations.count_by_window(signature, now);
                let others = merged.count_by_window(signature, now);
                add_up(own.into_iter().chain(others).chain(limited.count_by_window(signature, now)))
            };
            let length = settings.window.as_secs();
            if let Some(note) = teller.note(*bulk, held, vector, now, length, by_window) {
                let bytes = note.encode();
                *bulk = bulk.after(note.number, &bytes);
                changes.notes.push(KeptNote { number: note.number, at: now, bytes: bytes.into() });
            }
        }
    }

    /// Begins another list, in which nothing is: counts that were told may be too high, or numbers of notes were given before. A
    /// signature is told again when it is reported next.
    pub(crate) fn begin_bulk_anew(&mut self) {
        let bulk = self.counts.bulk;
        self.teller.has_moved = true;
        if bulk.is_begun() {
            // As different from the one before as the random number that it is.
            let list = bulk.list.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F).max(1);
            self.counts.bulk = BulkMark { list, number: 0, hash: 0, bound: bulk.bound };
            self.counts.held = Held::new(&self.counts.settings);
            self.teller.forget();
            (self.counts.relisted, self.counts.adopted) = (true, true);
            self.counts.changes.notes.clear();
        }
    }
}
