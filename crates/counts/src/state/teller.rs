// SPDX-License-Identifier: GPL-3.0-or-later
//! What a server tells of bulk: which signatures rose to its bound or above it, in the words of [`Note`].
//!
//! A server knows signatures when its own clients report them; of what is reported at others it has cells only, and what these tell
//! of bulk. Both are held, so that only what rose is told, and whoever is new gets all of it.

use crate::history::bulk::{BulkMark, MAX_ENTRIES, Note, Print, Section};
use crate::history::vector::{Origin, Vector};
use crate::history::window::{Calendar, Window};
use crate::state::held::Held;
use crate::state::shares::Share;
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// Signatures after which a note is made before its time, so that what waits takes little memory.
const FULL: usize = 1 << 16;

/// Entries after which a note takes no more; the rest follows in the next.
const MOST: usize = MAX_ENTRIES / 4;

/// The lowest count from which on a server tells anybody of a signature: below it are most of all.
pub const LEAST_BOUND: u32 = 2;

/// The count from which on a list with this bound tells of a signature. User reports is bulk to nobody, so all of it is told.
pub const fn bound_for(signature: Signature, bound: u32) -> u32 {
    if signature.is_user_report() { 1 } else { bound }
}

/// What waits to be told.
#[derive(Default)]
pub struct Teller {
    /// Signatures that were reported and have reached the bound.
    rises: BTreeMap<Print, Signature>,
    /// What others told and was new here.
    news: BTreeMap<(Window, Print), u32>,
    /// Whether the vector moved since the last note.
    pub has_moved: bool,
    /// How far it was when the last note was made.
    told: Vector,
}

impl Teller {
    /// A signature was reported that has reached the bound.
    pub fn rise(&mut self, signature: Signature) {
        self.rises.insert(Print::of(signature), signature);
    }

    /// What another server told, and is more than was known.
    pub fn hear(&mut self, window: Window, print: Print, count: u32) {
        self.news.insert((window, print), count);
    }

    pub(crate) fn has_news(&self) -> bool {
        self.has_moved || !self.rises.is_empty() || !self.news.is_empty()
    }

    /// Whether a note is due before its time.
    pub fn is_full(&self) -> bool {
        self.rises.len() >= FULL
    }

    /// All that was known is told anew, by another list.
    pub fn forget(&mut self) {
        *self = Self { has_moved: true, ..Self::default() };
    }

    /// The next note of the list `mark`: what rose, with its counts by window as `count` tells them. None when there is nothing.
    pub fn note(
        &mut self,
        mark: BulkMark,
        held: &mut Held,
        vector: Vector,
        now: u64,
        calendar: Calendar,
        count: impl Fn(Signature) -> Vec<Share>,
    ) -> Option<Note> {
        let mut rose: BTreeMap<(Window, Print), u32> = BTreeMap::new();
        let (mut told, mut entries): (BTreeMap<Window, Vec<(Print, u32)>>, _) = (BTreeMap::new(), 0);
        while entries < MOST
            && let Some((print, signature)) = self.rises.pop_first()
        {
            let running = calendar.of(signature, now);
            for share in count(signature) {
                let window = Window { start: share.window, ..running };
                if held.is_told(window, print, share.count, mark.bound) {
                    told.entry(window).or_default().push((print, share.count));
                    entries += 1;
                }
            }
        }
        for (window, entries) in told {
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
        // Only the last one says how far the others are.
        let moved = if self.rises.is_empty() { moved(&self.told, &vector) } else { Vec::new() };
        if self.rises.is_empty() {
            (self.told, self.has_moved) = (vector, false);
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

/// Entries by window.
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
