// SPDX-License-Identifier: GPL-3.0-or-later
//! The check of a server after a start: whether its file is an old copy.
//!
//! If it is, other machines know more of its history, and any addition to it would make two histories. Two histories that grew on one
//! filter can never be added up again: each raises only the smallest cells of a signature in its own state, so the sum would be too low
//! (docs/decisions/two-histories.md). So no history from the file continues before all peers have reported how much of it they know. And
//! reports that are in no update yet are held back: if the file is an old copy, they may be in an update that others know.

use crate::history::vector::{Origin, Vector};
use crate::history::window::{Calendar, Window};
use crate::state::changes::JournalEntry;
use crate::state::layer::LayerWindow;
use bulkmark_types::Signature;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Reports that are in no update of their origin.
#[derive(Debug, Clone, Default)]
pub struct HeldBack {
    /// The origin's last update. A peer that knows a later one knows these reports.
    pub version: u64,
    /// The reports, in the order of their arrival.
    pub entries: Vec<JournalEntry>,
    /// For a limited client: the most by which they can raise each cell.
    pub cells: BTreeMap<usize, u32>,
}

impl HeldBack {
    /// Adds a report. `capacity` is that of the client's filters if it is a limited one.
    pub fn push(&mut self, entry: JournalEntry, capacity: Option<u32>) {
        if let Some(geometry) = capacity.and_then(|capacity| LayerWindow::new(capacity).ok()) {
            for cell in geometry.filter.cells_of(entry.signature.bits()) {
                let sum = self.cells.entry(cell).or_default();
                *sum = sum.saturating_add(entry.times);
            }
        }
        self.entries.push(entry);
    }
}

fn by_signature(held: &BTreeMap<Origin, HeldBack>) -> HashMap<Signature, Vec<(Window, u32)>> {
    let mut all = HashMap::<_, Vec<(Window, u32)>>::new();
    for entry in held.values().flat_map(|held| &held.entries) {
        let windows = all.entry(entry.signature).or_default();
        match windows.iter_mut().find(|(window, _)| *window == entry.window) {
            Some((_, times)) => *times = times.saturating_add(entry.times),
            None => windows.push((entry.window, entry.times)),
        }
    }
    all
}

/// The peers without an answer, and the reports that are held back until then.
#[derive(Default)]
pub struct PeerCheck {
    /// Peers that have not answered since the start.
    peers: BTreeSet<String>,
    /// Whether nothing may be counted before they answer.
    waits: bool,
    held: BTreeMap<Origin, HeldBack>,
    /// The number of held reports of each signature, by window: each look-up asks for it.
    by_signature: HashMap<Signature, Vec<(Window, u32)>>,
    /// Whether the file has other held reports than these.
    pub changed: bool,
}

impl PeerCheck {
    /// The state after a start. A server `waits` for its peers if it has a history of which they may know more.
    pub fn new(peers: &[String], waits: bool, held: BTreeMap<Origin, HeldBack>) -> Self {
        let peers: BTreeSet<_> = peers.iter().cloned().collect();
        let by_signature = by_signature(&held);
        Self { waits: waits && !peers.is_empty(), peers, held, by_signature, changed: false }
    }

    /// Whether nothing may be counted yet.
    pub const fn waits(&self) -> bool {
        self.waits
    }

    /// Whether the check is complete.
    pub fn is_complete(&self) -> bool {
        self.peers.is_empty() && self.held.is_empty()
    }

    /// The peers that have not answered since the start.
    pub fn peers(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().map(String::as_str)
    }

    /// Ends the wait, because the ledger now counts under new origins, which nobody knows.
    pub const fn stop_waiting(&mut self) {
        self.waits = false;
    }

    /// The held reports, by origin.
    pub const fn held(&self) -> &BTreeMap<Origin, HeldBack> {
        &self.held
    }

    /// The number of held reports of a signature.
    pub fn count(&self, calendar: Calendar, signature: Signature, now: u64) -> u32 {
        let held = self.by_signature.get(&signature).into_iter().flatten();
        let counts = held.filter(|(window, _)| {
            #[cfg(test)]
            LOOKS.set(LOOKS.get() + 1);
            calendar.counts(*window, signature, now)
        });
        let counts = counts.map(|(_, times)| *times);
        counts.fold(0, u32::saturating_add)
    }

    /// The most by which the held reports of an origin can raise a cell.
    pub fn cell(&self, origin: Origin, cell: usize) -> u32 {
        self.held.get(&origin).and_then(|held| held.cells.get(&cell)).copied().unwrap_or(0)
    }

    /// Applies a peer's version vector: reports that it knows are no longer held.
    pub fn receive(&mut self, peer: &str, theirs: &Vector) {
        let before = self.held.len();
        self.held.retain(|&origin, held| theirs.get(origin).version <= held.version);
        if self.held.len() != before {
            self.changed = true;
            self.by_signature = by_signature(&self.held);
        }
        self.peers.remove(peer);
    }

    /// Takes the held reports that no peer knows, once all peers have answered; then nothing waits any more.
    pub fn release(&mut self) -> BTreeMap<Origin, HeldBack> {
        if !self.peers.is_empty() {
            return BTreeMap::new();
        }
        self.waits = false;
        self.changed |= !self.held.is_empty();
        self.by_signature = HashMap::new();
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
thread_local! {
    /// How many windows of held reports this thread read.
    static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::vector::Mark;
    use crate::settings::Settings;
    use crate::state::anomaly::tests::element;

    const NOW: u64 = 1_800_000_000;

    fn signature(n: u64) -> Signature {
        Signature::from_bytes(element(n).to_le_bytes())
    }

    /// A look-up reads the held reports of its signature alone; they count until a peer knows them.
    #[test]
    fn a_look_up_reads_no_other_reports() {
        let calendar = Calendar::new(&Settings::default());
        let mut held = BTreeMap::<Origin, HeldBack>::new();
        for n in 0..6000 {
            let entry = JournalEntry {
                window: calendar.at(NOW),
                signature: signature(n / 2),
                times: 2,
                client: None,
            };
            held.entry(Origin(n % 2)).or_default().push(entry, None);
        }
        let mut check = PeerCheck::new(&["a".to_owned(), "b".to_owned()], true, held);
        let counts = |check: &PeerCheck, of: u64| -> u32 {
            (of..of + 1000).map(|n| check.count(calendar, signature(n), NOW)).sum()
        };
        assert_eq!((counts(&check, 0), counts(&check, 5000)), (4000, 0));
        assert_eq!(LOOKS.get(), 1000);
        let mut known = Vector::new();
        known.set(Origin(1), Mark { version: 1, ..Mark::default() });
        check.receive("a", &known);
        assert_eq!(counts(&check, 0), 2000);
        check.receive("b", &Vector::new());
        assert_eq!((check.release().len(), counts(&check, 0)), (1, 0));
    }
}
