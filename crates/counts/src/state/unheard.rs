// SPDX-License-Identifier: GPL-3.0-or-later
//! What a server does not know after a start: whether its file is an old copy.
//!
//! If it is, others know more of its history than it does, and whatever it added to that history would make two of it. Two histories
//! that grew on one filter can never be added up again: each raises only the smallest cells of a signature as it saw them, so that
//! their sum would be too low (docs/decisions/two-histories.md). So no history that was read from the file goes on before all peers
//! said how much of it they know. And what the file has in no update yet is held back: if it is an old copy, this is in the update
//! that others know.

use crate::history::vector::{Origin, Vector};
use crate::history::window::Calendar;
use crate::state::changes::JournalEntry;
use crate::state::layer::LayerWindow;
use bulkmark_types::Signature;
use std::collections::{BTreeMap, BTreeSet};

/// Reports that are in no update of their origin.
#[derive(Debug, Clone, Default)]
pub struct HeldBack {
    /// That of the origin's last update. Whoever knows a later one knows these reports.
    pub version: u64,
    /// The reports, in the order in which they came.
    pub entries: Vec<JournalEntry>,
    /// By how much they may raise each cell, where they are of a limited client.
    pub cells: BTreeMap<usize, u32>,
}

impl HeldBack {
    /// Adds a report; `capacity` is that of the filters of its client, if it has limits.
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

/// What is to be found out, and what waits for it.
#[derive(Default)]
pub struct Unheard {
    /// Peers that said nothing since the start.
    peers: BTreeSet<String>,
    /// Whether nothing may be counted before they did.
    waits: bool,
    held: BTreeMap<Origin, HeldBack>,
    /// Whether the file has other reports held than these.
    pub changed: bool,
}

impl Unheard {
    /// After a start. A server `waits` for its peers if it has a history that they may know more of.
    pub fn new(peers: &[String], waits: bool, held: BTreeMap<Origin, HeldBack>) -> Self {
        let peers: BTreeSet<_> = peers.iter().cloned().collect();
        Self { waits: waits && !peers.is_empty(), peers, held, changed: false }
    }

    /// Whether nothing may be counted yet.
    pub const fn waits(&self) -> bool {
        self.waits
    }

    /// Whether nothing is to be found out any more.
    pub fn knows_all(&self) -> bool {
        self.peers.is_empty() && self.held.is_empty()
    }

    /// The peers that said nothing since the start.
    pub fn peers(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().map(String::as_str)
    }

    /// From now on all counts under origins that nobody can know.
    pub const fn go_on(&mut self) {
        self.waits = false;
    }

    /// What is held back, by origin.
    pub const fn held(&self) -> &BTreeMap<Origin, HeldBack> {
        &self.held
    }

    /// How often a signature is among what is held back.
    pub fn count(&self, calendar: Calendar, signature: Signature, now: u64) -> u32 {
        let entries = self.held.values().flat_map(|held| &held.entries);
        let counts = entries
            .filter(|entry| entry.signature == signature && calendar.counts(entry.window, signature, now))
            .map(|entry| entry.times);
        counts.fold(0, u32::saturating_add)
    }

    /// By how much the reports of an origin that are held back may raise a cell.
    pub fn cell(&self, origin: Origin, cell: usize) -> u32 {
        self.held.get(&origin).and_then(|held| held.cells.get(&cell)).copied().unwrap_or(0)
    }

    /// A peer says how far it knows each origin: what it knows need not be held any more.
    pub fn hear(&mut self, peer: &str, theirs: &Vector) {
        let before = self.held.len();
        self.held.retain(|&origin, held| theirs.get(origin).version <= held.version);
        self.changed |= self.held.len() != before;
        self.peers.remove(peer);
    }

    /// What was held back and is known to nobody, once all peers were heard; from then on nothing waits.
    pub fn release(&mut self) -> BTreeMap<Origin, HeldBack> {
        if !self.peers.is_empty() {
            return BTreeMap::new();
        }
        self.waits = false;
        self.changed |= !self.held.is_empty();
        std::mem::take(&mut self.held)
    }
}
