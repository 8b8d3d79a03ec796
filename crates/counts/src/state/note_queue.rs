// SPDX-License-Identifier: GPL-3.0-or-later
//! The queue of a server's next [`Note`]: signatures whose counts rose and are at or above the bound of its list.
//!
//! A server knows signatures that its own clients report; of other servers' counts it has only cells, and their lists of bulk. All
//! announced counts are held, so that notes have only those that rose, and new milters get all of them.

use crate::history::bulk::{BulkMark, MAX_ENTRIES, Note, Print, Section};
use crate::history::vector::{Origin, Vector};
use crate::history::window::{Calendar, Window};
use crate::state::bulk_counts::BulkCounts;
use crate::state::shares::Share;
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// Queued signatures after which a note is made early, so that the queue takes little memory.
const FULL: usize = 1 << 16;

/// The most entries of a note; the rest follows in the next.
const MOST: usize = MAX_ENTRIES / 4;

/// The lowest bound of a list: most signatures are below it.
pub const LEAST_BOUND: u32 = 2;

/// The count from which on a list with this bound has a signature. User reports never become bulk, so all of them are on the list.
pub const fn bound_for(signature: Signature, bound: u32) -> u32 {
    if signature.is_user_report() { 1 } else { bound }
}

/// The queue.
#[derive(Default)]
pub struct NoteQueue {
    /// Reported signatures at or above the bound.
    rises: BTreeMap<Print, Signature>,
    /// New counts from other servers' lists.
    news: BTreeMap<(Window, Print), u32>,
    /// Whether the vector moved since the last note.
    pub has_moved: bool,
    /// The vector as of the last note.
    announced: Vector,
}

impl NoteQueue {
    /// Queues a reported signature at or above the bound.
    pub fn push(&mut self, signature: Signature) {
        self.rises.insert(Print::of(signature), signature);
    }

    /// Queues a count of another server's list that is higher than the known one.
    pub fn receive(&mut self, window: Window, print: Print, count: u32) {
        self.news.insert((window, print), count);
    }

    pub(crate) fn has_news(&self) -> bool {
        self.has_moved || !self.rises.is_empty() || !self.news.is_empty()
    }

    /// Whether a note is due early.
    pub fn is_full(&self) -> bool {
        self.rises.len() >= FULL
    }

    /// Empties the queue for a new list.
    pub fn reset(&mut self) {
        *self = Self { has_moved: true, ..Self::default() };
    }

    /// Makes the next note of the list `mark` from the queued signatures, whose counts by window come from `count`. `None` if there is
    /// nothing new.
    pub fn note(
        &mut self,
        mark: BulkMark,
        held: &mut BulkCounts,
        vector: Vector,
        now: u64,
        calendar: Calendar,
        count: impl Fn(Signature) -> Vec<Share>,
    ) -> Option<Note> {
        let mut rose: BTreeMap<(Window, Print), u32> = BTreeMap::new();
        let (mut rising, mut entries): (BTreeMap<Window, Vec<(Print, u32)>>, _) = (BTreeMap::new(), 0);
        while entries < MOST
            && let Some((print, signature)) = self.rises.pop_first()
        {
            let running = calendar.of(signature, now);
            for share in count(signature) {
                let window = Window { start: share.window, ..running };
                if held.must_announce(window, print, share.count, mark.bound) {
                    rising.entry(window).or_default().push((print, share.count));
                    entries += 1;
                }
            }
        }
        for (window, entries) in rising {
            held.raise(&Section { window, entries }, now, |window, print, count| {
                rose.insert((window, print), count);
            });
        }
        while rose.len() < MOST
            && let Some((place, count)) = self.news.pop_first()
        {
            let known = rose.entry(place).or_default();
            *known = count.max(*known);
        }
        // Only the last note moves the vector.
        let moved = if self.rises.is_empty() { moved(&self.announced, &vector) } else { Vec::new() };
        if self.rises.is_empty() {
            (self.announced, self.has_moved) = (vector, false);
        }
        (!rose.is_empty() || !moved.is_empty()).then(|| Note {
            number: mark.number + 1,
            moved,
            sections: sections(rose),
        })
    }
}

fn moved(before: &Vector, after: &Vector) -> Vec<(Origin, u64)> {
    let moved = after.iter().filter(|(origin, mark)| mark.version > before.get(*origin).version);
    moved.map(|(origin, mark)| (origin, mark.version)).collect()
}

/// Groups entries by window.
fn sections(entries: BTreeMap<(Window, Print), u32>) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for ((window, print), count) in entries {
        match sections.last_mut() {
            Some(section) if section.window == window => section.entries.push((print, count)),
            _ => sections.push(Section { window, entries: vec![(print, count)] }),
        }
    }
    sections
}
