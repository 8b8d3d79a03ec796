// SPDX-License-Identifier: GPL-3.0-or-later
//! The check of a server after a start: whether its file is an old copy.
//!
//! If it is, other machines know more of its history, and any addition to it would make two histories. Two histories that grew on one
//! filter can never be added up again: each raises only the smallest cells of a signature in its own state, so the sum would be too low
//! (docs/decisions/two-histories.md). So no history from the file continues before all peers have reported how much of it they know. And
//! reports that are in no update yet are held back: if the file is an old copy, they may be in an update that others know.

use crate::history::vector::{Origin, Vector};
use crate::history::window::Calendar;
use crate::state::changes::JournalEntry;
use crate::state::layer::LayerWindow;
use bulkmark_types::Signature;
use std::collections::{BTreeMap, BTreeSet};

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

/// The peers without an answer, and the reports that are held back until then.
#[derive(Default)]
pub struct PeerCheck {
    /// Peers that have not answered since the start.
    peers: BTreeSet<String>,
    /// Whether nothing may be counted before they answer.
    waits: bool,
    held: BTreeMap<Origin, HeldBack>,
    /// Whether the file has other held reports than these.
    pub changed: bool,
}

impl PeerCheck {
    /// The state after a start. A server `waits` for its peers if it has a history of which they may know more.
    pub fn new(peers: &[String], waits: bool, held: BTreeMap<Origin, HeldBack>) -> Self {
        let peers: BTreeSet<_> = peers.iter().cloned().collect();
        Self { waits: waits && !peers.is_empty(), peers, held, changed: false }
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
        let entries = self.held.values().flat_map(|held| &held.entries);
        let counts = entries
            .filter(|entry| entry.signature == signature && calendar.counts(entry.window, signature, now))
            .map(|entry| entry.times);
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
        self.changed |= self.held.len() != before;
        self.peers.remove(peer);
    }

    /// Takes the held reports that no peer knows, once all peers have answered; then nothing waits any more.
    pub fn release(&mut self) -> BTreeMap<Origin, HeldBack> {
        if !self.peers.is_empty() {
            return BTreeMap::new();
        }
        self.waits = false;
        self.changed |= !self.held.is_empty();
        std::mem::take(&mut self.held)
    }
}
