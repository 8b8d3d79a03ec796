// SPDX-License-Identifier: GPL-3.0-or-later
//! A server's list of bulk: its beginning, its entries, and its notes.

use crate::history::bulk::{BulkMark, Section};
use crate::history::window::Calendar;
use crate::state::bulk_counts::BulkCounts;
use crate::state::counts::Counts;
use crate::state::kept::KeptNote;
use crate::state::note_queue::{LEAST_BOUND, bound_for};
use crate::state::server::Server;
use crate::state::shares::add_up;
use bulkmark_types::Signature;

impl Server {
    /// Maintains a list of bulk from the count `bound` on, or from the present bound if that is lower. `new` is a random number for a new
    /// list. Signatures that reached the bound earlier get on it with their next report.
    pub fn list_bulk(&mut self, bound: u32, new: u64) -> BulkMark {
        let bound = bound.max(LEAST_BOUND);
        let known = self.counts.bulk;
        if !known.is_begun() {
            self.counts.bulk = BulkMark { list: new.max(1), bound, ..BulkMark::default() };
            self.counts.unwritten.part();
            self.note_queue.has_moved = true;
        } else if bound < known.bound {
            self.counts.bulk.bound = bound;
            self.counts.unwritten.part();
        }
        self.counts.bulk
    }

    /// Queues a reported signature if it is bulk.
    pub fn queue_if_bulk(&mut self, signature: Signature, now: u64) {
        let bulk = self.counts.bulk;
        if bulk.is_begun() && self.reaches(signature, bound_for(signature, bulk.bound), now) {
            self.note_queue.push(signature);
        }
    }

    /// Merges counts of another server's list; new ones get on this server's list.
    pub fn receive_bulk(&mut self, sections: &[Section], now: u64) {
        let Self { counts, note_queue, .. } = self;
        for section in sections.iter().filter(|_| counts.bulk.is_begun()) {
            counts.held.raise(section, now, |window, print, count| note_queue.receive(window, print, count));
        }
    }

    pub(crate) fn has_bulk_news(&self) -> bool {
        self.counts.bulk.is_begun() && self.note_queue.has_news()
    }

    /// Makes notes of the counts that rose since the last one. After a whole list of another server there may be several.
    pub fn cut_bulk(&mut self, now: u64) {
        while self.has_bulk_news() {
            let vector = self.vector();
            let Self { counts, limited, note_queue, .. } = self;
            let Counts { local, merged, held, bulk, settings, changes, .. } = counts;
            let by_window = |signature| {
                let own = local.generations.count_by_window(signature, now);
                let others = merged.count_by_window(signature, now);
                add_up(own.into_iter().chain(others).chain(limited.count_by_window(signature, now)))
            };
            let calendar = Calendar::new(settings);
            if let Some(note) = note_queue.note(*bulk, held, vector, now, calendar, by_window) {
                let bytes = note.encode();
                *bulk = bulk.after(note.number, &bytes);
                changes.notes.push(KeptNote { number: note.number, at: now, bytes: bytes.into() });
            }
        }
    }

    /// Begins another, empty list, because announced counts may be too high, or numbers of notes may have been used before. Signatures get
    /// on it with their next report.
    pub fn restart_bulk(&mut self) {
        let bulk = self.counts.bulk;
        self.note_queue.has_moved = true;
        if bulk.is_begun() {
            // The new number is random because the previous one was.
            let list =
                bulk.list.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F).max(1);
            self.counts.bulk = BulkMark { list, number: 0, hash: 0, bound: bulk.bound };
            self.counts.held = BulkCounts::new(&self.counts.settings);
            self.note_queue.reset();
            self.counts.relist();
            self.counts.changes.notes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::bulk::Note;
    use crate::history::update::Update;
    use crate::history::vector::{Mark, Origin};
    use crate::settings::Settings;
    use crate::state::generations::Generations;
    use crate::state::limited::{Limited, Limits};
    use crate::state::local::Local;
    use crate::state::merged::MergedCounts;
    use crate::state::note_queue::NoteQueue;
    use crate::state::peer_check::PeerCheck;
    use crate::state::receipts::{Receipts, Reporter};
    use bulkmark_types::{FederationKey, nomination};
    use proptest::prelude::*;

    const DAY: u64 = 86_400;
    const NOW: u64 = 20_000 * DAY + 1000;
    const BOUND: u32 = 10;

    fn server(settings: &Settings) -> Server {
        let local = Local::recording(Generations::new(settings), Origin(1), Mark::default());
        let mut server = Server {
            counts: Counts::new(local, MergedCounts::new(settings), 0, settings),
            cut_at: 0,
            receipts: Receipts::default(),
            limited: Limited::new(settings),
            note_queue: NoteQueue::default(),
            peer_check: PeerCheck::default(),
            renewed: false,
        };
        server.list_bulk(BOUND, 7);
        server
    }

    fn signature(n: u8) -> Signature {
        let mixed = u128::from(n).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let signature = Signature::from_bytes((mixed ^ mixed >> 61).to_le_bytes());
        if n % 3 == 2 { nomination(&FederationKey::public(), signature) } else { signature }
    }

    /// A full copy made from the updates, and a partial one from the notes.
    struct Holders {
        full: MergedCounts,
        partial: BulkCounts,
    }

    impl Holders {
        fn check(&self, now: u64) -> Result<(), TestCaseError> {
            for n in 0..30 {
                let full = self.full.count(signature(n), now);
                let partial = self.partial.count(signature(n), now);
                // All user reports are on the list.
                let bound = if n % 3 == 2 { 1 } else { BOUND };
                let low = if full < 16 * BOUND { 0 } else { full / 16 };
                prop_assert!(partial <= full, "signature {} at {}: {} of {}", n, now, partial, full);
                prop_assert!(
                    full < bound || partial + low >= full,
                    "signature {} at {}: {} of {}",
                    n,
                    now,
                    partial,
                    full
                );
            }
            Ok(())
        }
    }

    proptest! {
        /// Own reports and those of a partner over ten days, in batches and updates; the notes arrive in any order and some of them twice.
        /// Each count from the bound on equals that of a full copy (at most a sixteenth less far above it), and falls with its windows; no
        /// other is higher.
        #[test]
        fn notes_in_any_order_make_the_counts_of_bulk(
            reports in prop::collection::vec((0u64..10, 0u8..30, prop_oneof![4 => 1u32..7, 1 => 50u32..400], any::<bool>(), any::<bool>()), 1..150),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
        ) {
            let settings = Settings::default();
            let (mut server, mut number) = (server(&settings), 0);
            let mut reports = reports;
            reports.sort_by_key(|&(day, ..)| day);
            for (day, n, times, is_partner, cuts) in reports {
                let (now, limits) = (NOW + day * DAY, Limits { influence: 5, quota: 1_000_000 });
                let client = if is_partner { "small" } else { "own" };
                let reporter = Reporter { client: client.to_owned(), spool: 1 };
                number += 1;
                let limits = is_partner.then_some(limits);
                server.take_batch(reporter, number, &[(signature(n), times)], limits, now, Origin(2)).unwrap();
                if cuts {
                    server.cut(now);
                }
            }
            let now = NOW + 9 * DAY;
            server.cut(now);
            let mut holders = Holders { full: MergedCounts::new(&settings), partial: BulkCounts::new(&settings) };
            for kept in &server.counts.changes.updates {
                let update = Update::decode(&kept.bytes).unwrap();
                holders.full.apply(&update, &kept.bytes, kept.at).unwrap();
            }
            let notes: Vec<Note> =
                server.counts.changes.notes.iter().map(|kept| Note::decode(&kept.bytes).unwrap()).collect();
            let again: Vec<&Note> = order.iter().filter(|_| !notes.is_empty()).map(|at| at.get(&notes)).collect();
            for note in again.into_iter().chain(notes.iter().rev()) {
                note.sections.iter().for_each(|section| holders.partial.raise(section, now, |_, _, _| ()));
            }
            for day in 0..8 {
                holders.check(now + day * DAY)?;
            }
            // A new milter gets the same counts from the server.
            holders.partial = BulkCounts::new(&settings);
            for (_, section) in server.counts.held.dirty() {
                holders.partial.raise(&section, now, |_, _, _| ());
            }
            holders.check(now)?;
        }
    }
}
