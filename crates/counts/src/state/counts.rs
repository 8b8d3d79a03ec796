// SPDX-License-Identifier: GPL-3.0-or-later
//! The state of ledgers of all roles: local counts, others' counts, and their changes.

use crate::history::bulk::BulkMark;
use crate::history::refusal::{Refusal, StepRefusal};
use crate::history::step::Step;
use crate::history::update::{Scope, Update};
use crate::history::vector::{Chain, Origin, Vector};
use crate::history::window::Window;
use crate::settings::Settings;
use crate::state::bulk_counts::BulkCounts;
use crate::state::cases::Cases;
use crate::state::changes::{Changes, JournalEntry, NewWindow};
use crate::state::fleet::fold::{Fleet, check_like};
use crate::state::fleet::keeps::{FoldTarget, Keeps};
use crate::state::kept::{KeptStep, KeptUpdate};
use crate::state::local::Local;
use crate::state::merged::{Applied, MergedCounts};
use crate::state::shares::Share;
use crate::state::trust::Trust;
use crate::state::unwritten::{Merged, Unwritten};
use crate::state::user_reports::UserReports;
use bulkmark_types::Signature;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The counts of a ledger.
pub struct Counts {
    /// The local counts.
    pub local: Local,
    /// The counts of others.
    pub merged: MergedCounts,
    /// The list of bulk: the one that a server announces, or that a milter with a partial copy receives.
    pub held: BulkCounts,
    /// The state of that list.
    pub bulk: BulkMark,
    /// The user reports of this mail server.
    pub user_reports: UserReports,
    /// The signatures with user reports.
    pub cases: Cases,
    /// The standings of the reporters.
    pub trust: Trust,
    /// The chain whose steps make up the merged counts, in a fleet.
    pub fleet: Fleet,
    /// The number of the next local report.
    pub next: u64,
    /// The rows that the next commit writes.
    pub changes: Changes,
    /// Other state that the next checkpoint writes.
    pub unwritten: Unwritten,
    /// The windows of limited clients in the file; `None` before it was read.
    pub layers_on_disk: Option<BTreeSet<(Origin, Window)>>,
    /// The reason why memory and file cannot be made to agree any more.
    pub broken: Option<String>,
    /// The time of the last request.
    pub clock: u64,
    /// The settings with which the ledger was opened.
    pub settings: Settings,
}

impl Counts {
    /// The counts as read from the file, without changes. `next` is the number of the next local report.
    pub fn new(local: Local, merged: MergedCounts, next: u64, settings: &Settings) -> Self {
        Self {
            local,
            merged,
            held: BulkCounts::new(settings),
            user_reports: UserReports::new(settings),
            cases: Cases::default(),
            trust: Trust::default(),
            bulk: BulkMark::default(),
            fleet: Fleet::default(),
            next,
            changes: Changes::default(),
            unwritten: Unwritten::default(),
            layers_on_disk: None,
            broken: None,
            clock: 0,
            settings: settings.clone(),
        }
    }

    /// The count over all local and others' reports. Never too low.
    pub fn count(&self, signature: Signature, now: u64) -> u32 {
        let local = self.local.generations.count(signature, now);
        local.saturating_add(self.merged.count(signature, now))
    }

    /// An upper bound of [`count`](Self::count), with one lookup for all limited clients of others.
    pub fn bound(&self, signature: Signature, now: u64) -> u32 {
        let local = self.local.generations.count(signature, now);
        local.saturating_add(self.merged.bound(signature, now))
    }

    /// The count at a milter, where others' counts may be only those of bulk. Both sources count the same reports, so the higher is taken.
    pub fn count_at_milter(&self, signature: Signature, now: u64) -> u32 {
        let others = self.merged.count(signature, now).max(self.held.count(signature, now));
        self.local.generations.count(signature, now).saturating_add(others)
    }

    /// Others' counts by window, at a milter.
    pub fn others_by_window(&self, signature: Signature, now: u64) -> Vec<Share> {
        let merged = self.merged.count_by_window(signature, now);
        let of_bulk: Vec<Share> = self.held.by_window(signature, now).collect();
        let sum = |shares: &[Share]| shares.iter().fold(0, |sum: u32, share| sum.saturating_add(share.count));
        if sum(&of_bulk) > sum(&merged) { of_bulk } else { merged }
    }

    /// Counts reports here.
    pub fn add(&mut self, signature: Signature, times: u32, now: u64) {
        let window = self.local.generations.window_of(signature, now);
        if let Some(capacity) = self.local.generations.begin(window) {
            self.changes.begun.push(NewWindow { window, first: self.next, capacity });
        }
        match self.local.generations.add(window, self.next, signature, times) {
            Ok(()) => self.journal(JournalEntry { window, signature, times, client: None }),
            Err(e) => self.broken = Some(format!("no memory for more signatures: {e}")),
        }
    }

    /// Whether there are user reports that may still count.
    pub fn has_user_reports(&self) -> bool {
        self.user_reports.len() > 0
            || self.local.generations.has_user_reports()
            || self.merged.has_user_reports()
            || self.held.has_user_reports()
    }

    /// Appends a local report to the journal.
    pub fn journal(&mut self, entry: JournalEntry) {
        self.next += 1;
        self.changes.entries.push(entry);
    }

    /// Stores an update for the disk, and for others.
    pub fn keep(&mut self, update: &Update, bytes: Arc<[u8]>, at: u64) {
        self.changes.updates.push(KeptUpdate {
            origin: update.origin(),
            version: update.version(),
            at,
            bytes,
        });
    }

    /// Applies an update of another origin.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is changed then.
    pub fn apply(&mut self, update: &Update, bytes: Arc<[u8]>, now: u64) -> Result<Applied, Refusal> {
        let applied = self.merged.apply(update, &bytes, now)?;
        if applied == Applied::New {
            self.keep(update, bytes, now);
            self.leave_fleet();
        }
        Ok(applied)
    }

    /// Merged counts with other updates are no longer those of a fleet's chain alone.
    fn leave_fleet(&mut self) {
        if self.fleet != Fleet::default() {
            self.fleet = Fleet::default();
            self.unwritten.part();
        }
    }

    /// Applies a step of a fleet's chain, with its bytes.
    ///
    /// # Errors
    /// [`StepRefusal`]; nothing is changed then.
    pub fn apply_step(
        &mut self,
        step: &Step,
        bytes: Arc<[u8]>,
        place: u64,
        now: u64,
    ) -> Result<Applied, StepRefusal> {
        check_like(step.head.key_id, step.head.window, &self.settings)?;
        let version = step.version();
        let first = self.fleet.mark.version == 0 && version == 1;
        let keeps = Keeps::of(&self.settings);
        let is_empty = self.merged.windows().is_empty() && self.merged.vector().is_empty();
        if first && !(is_empty && self.held.signatures() == 0 && !self.bulk.is_begun()) {
            // A chain begins with empty counts. Counts from elsewhere are not in it.
            let (mut merged, mut held) = (MergedCounts::new(&self.settings), BulkCounts::new(&self.settings));
            let kept = FoldTarget { merged: &mut merged, held: &mut held, broken: &mut self.broken, keeps };
            self.fleet.apply(kept, step, &bytes, place, &self.settings)?;
            (self.merged, self.held) = (merged, held);
            self.unwritten = Unwritten { merged: Merged::Replace, relisted: true, ..self.unwritten };
        } else if self.apply_to_fleet(step, &bytes, place)? == Applied::Known {
            let again = version == self.fleet.mark.version && Chain::of(&bytes) == self.fleet.mark.chain;
            if again && place != self.fleet.mark.place {
                // The log has it in another place, as somebody had to append it again.
                self.fleet.mark.place = place;
                self.changes.steps.push(KeptStep { version, place, bytes });
            }
            return Ok(Applied::Known);
        }
        self.mark_bulk();
        self.clock = now;
        self.unwritten.steps += bytes.len();
        self.changes.steps.push(KeptStep { version, place, bytes });
        Ok(Applied::New)
    }

    /// Adds a step to the counts.
    pub fn apply_to_fleet(&mut self, step: &Step, bytes: &[u8], place: u64) -> Result<Applied, StepRefusal> {
        let Self { fleet, merged, held, broken, settings, unwritten, bulk, .. } = self;
        let keeps = Keeps::of(settings);
        let withdraws = step.updates.iter().any(|(update, _)| update.scope == Scope::Withdrawn);
        let anew = bulk.is_begun() && withdraws;
        let applied =
            fleet.apply(FoldTarget { merged, held, broken, keeps }, step, bytes, place, settings)?;
        unwritten.relisted |= anew && applied == Applied::New;
        Ok(applied)
    }

    /// Sets the mark of the list of bulk, if steps contain the list.
    pub fn mark_bulk(&mut self) {
        let Fleet { mark, origin, bound, .. } = self.fleet;
        let Chain(hash) = mark.chain;
        self.bulk = BulkMark {
            list: origin.0.max(1),
            number: mark.version,
            hash: hash.first_chunk().map_or(0, |half| u64::from_le_bytes(*half)),
            bound,
        };
        if bound == 0 || !Keeps::of(&self.settings).list {
            self.bulk = BulkMark::default();
        }
    }

    /// Adopts a fleet's snapshot, in place of all merged counts.
    pub fn replace_fleet(&mut self, snapshot: MergedCounts, held: BulkCounts, fleet: Fleet) {
        self.replace(snapshot);
        (self.fleet, self.held, self.unwritten.relisted) = (fleet, held, true);
        self.changes.notes.clear();
        self.mark_bulk();
    }

    /// Adopts a snapshot of others' counts, unless it is a step back: it must include all known updates of every origin, or none of them;
    /// in the latter case both are added up.
    ///
    /// # Errors
    /// If it is a step back, or has another history; nothing is changed then.
    pub fn adopt(&mut self, snapshot: MergedCounts) -> Result<(), Refusal> {
        let (ours, theirs) = (self.merged.vector(), snapshot.vector());
        let is_new = |vector: &Vector, origin| vector.get(origin).version == 0;
        let strange = ours.iter().all(|(origin, mark)| mark.version == 0 || is_new(theirs, origin));
        if strange && !self.merged.windows().is_empty() {
            return self.unite(&snapshot);
        }
        for (origin, mark) in ours.iter() {
            let known = theirs.get(origin);
            if known.version < mark.version {
                return Err(Refusal::Behind { origin, have: mark.version, version: known.version });
            }
            if known.version == mark.version && known.chain != mark.chain {
                return Err(Refusal::Fork { origin, version: known.version });
            }
        }
        self.replace(snapshot);
        Ok(())
    }

    /// Replaces the merged counts by a snapshot.
    pub fn replace(&mut self, snapshot: MergedCounts) {
        (self.merged, self.fleet) = (snapshot, Fleet::default());
        self.unwritten.merged = Merged::Replace;
    }

    /// Records that another list of bulk began, whose mark is not in the file either.
    pub fn relist(&mut self) {
        self.unwritten.part();
        self.unwritten.relisted = true;
    }

    fn unite(&mut self, snapshot: &MergedCounts) -> Result<(), Refusal> {
        let origin =
            snapshot.vector().iter().next().map_or_else(|| self.local.origin(), |(origin, _)| origin);
        let parameter = |error| Refusal::Parameter { origin, error };
        self.merged.check_addition(snapshot).map_err(parameter)?;
        if let Err(error) = self.merged.add_all(snapshot) {
            self.broken = Some(format!("a snapshot could be added in part only: {error}"));
            return Err(parameter(error));
        }
        self.fleet = Fleet::default();
        self.unwritten.part();
        Ok(())
    }

    /// Whether the merged counts changed since the last checkpoint.
    pub fn merged_grew(&self) -> bool {
        let mut windows = self.merged.windows().iter().flat_map(|window| window.dirty.iter().flatten());
        windows.any(|&dirty| dirty)
            || self.held.is_dirty()
            || self.merged.layers().iter().any(|(_, layer)| layer.is_dirty())
    }
}
