// SPDX-License-Identifier: GPL-3.0-or-later
//! The fold of a fleet's steps: merged cells, vector and marks change together, one step after the other, in the order in which the log
//! delivers them. Other entries of the stream change nothing.

use crate::history::fleet_mark::FleetMark;
use crate::history::refusal::{Refusal, StepRefusal};
use crate::history::step::{Step, StepHead};
use crate::history::update::{Scope, Update};
use crate::history::vector::{Chain, Origin};
use crate::settings::Settings;
use crate::state::bulk_counts::BulkCounts;
use crate::state::fleet::keeps::FoldTarget;
use crate::state::fleet::marks::Marks;
use crate::state::merged::{Applied, MergedCounts};
use crate::state::note_queue::LEAST_BOUND;

/// The state of the chain, and its batches. Its cells are the merged ones, which have no other source then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// The state of the chain.
    pub mark: FleetMark,
    /// The origin of the unlimited clients' counts.
    pub origin: Origin,
    /// The arrival time of the last step's newest batch.
    pub time: u64,
    /// The count from which on bulk is listed; 0 without a list.
    pub bound: u32,
    /// The counted batches, by client and spool.
    pub marks: Marks,
}

fn junk(what: &(impl ToString + ?Sized)) -> StepRefusal {
    StepRefusal::Junk(what.to_string())
}

impl Fleet {
    /// Applies a step with its bytes to the kept counts, if it is the next one. A step that is included already changes nothing.
    ///
    /// # Errors
    /// [`StepRefusal`]; nothing is changed then.
    pub fn apply(
        &mut self,
        FoldTarget { merged, held, keeps }: FoldTarget<'_>,
        step: &Step,
        bytes: &[u8],
        place: u64,
        settings: &Settings,
    ) -> Result<Applied, StepRefusal> {
        let StepHead { origin, version, epoch, made, covers, time, bound, .. } = step.head;
        if version <= self.mark.version {
            return Ok(Applied::Known);
        }
        self.check(&step.head)?;
        if !self.marks.are_followed_by(&step.marks) {
            return Err(junk("the step counts batches again that are counted"));
        }
        self.apply_updates(merged, step, time, keeps.cells)?;
        if keeps.list {
            self.apply_bulk(held, step, settings);
        }
        self.marks.set_all(&step.marks, version);
        (self.origin, self.time, self.bound) = (origin, time, bound);
        self.mark = FleetMark { version, chain: Chain::of(bytes), epoch, made, covers, place };
        Ok(Applied::New)
    }

    /// Checks whether a step continues this chain.
    fn check(&self, head: &StepHead) -> Result<(), StepRefusal> {
        let (mark, version) = (&self.mark, head.version);
        if version > mark.version.saturating_add(1) {
            return Err(StepRefusal::Gap { have: mark.version, version });
        }
        if head.before != mark.chain {
            return Err(StepRefusal::Fork { version });
        }
        if mark.version > 0 && head.origin != self.origin {
            return Err(junk("the step is of another fleet"));
        }
        let goes_on = head.epoch == mark.epoch && head.made == mark.made && head.covers >= mark.covers;
        if version > 1 && !goes_on && head.epoch <= mark.epoch {
            return Err(junk("the step covers less than the one before it"));
        }
        // Otherwise one step could use the last epoch, after which none can begin.
        if !goes_on && mark.next_epoch() != Some(head.epoch) {
            return Err(junk(&format!(
                "the step begins epoch {}, and the one before it was of {}",
                head.epoch, mark.epoch
            )));
        }
        // A list from a lower count on would have nearly all signatures, for good.
        if (1..LEAST_BOUND).contains(&head.bound) {
            return Err(junk("the step lists all signatures as bulk"));
        }
        if self.bound > 0 && !(1..=self.bound).contains(&head.bound) {
            return Err(junk("the step lists less of bulk than the one before it"));
        }
        Ok(())
    }

    /// Applies a step to the list of bulk. Withdrawn counts are part of any count of the list: then it starts over, as it does when a list
    /// begins.
    fn apply_bulk(&self, held: &mut BulkCounts, step: &Step, settings: &Settings) {
        let is_withdrawn = step.updates.iter().any(|(update, _)| update.scope == Scope::Withdrawn);
        if is_withdrawn || self.bound == 0 && step.head.bound > 0 {
            *held = BulkCounts::new(settings);
        }
        step.bulk.iter().for_each(|section| held.raise(section, step.head.time, |_, _, _| ()));
    }

    /// Applies all updates, or none: everything that can be refused is checked first. Without cells, only the versions are followed; if all
    /// others refuse a step that this member applied, it is on a branch, which the next step shows.
    fn apply_updates(
        &self,
        merged: &mut MergedCounts,
        step: &Step,
        time: u64,
        cells: bool,
    ) -> Result<(), StepRefusal> {
        let updates = || step.updates.iter().map(|(update, _)| update);
        for update in updates() {
            let known = merged.vector().get(update.origin);
            if known.version.checked_add(1) != Some(update.version) || update.before != known.chain {
                return Err(junk(&format!(
                    "an update of the origin {} does not follow the last one",
                    update.origin
                )));
            }
        }
        let refused = |refusal: Refusal| junk(&refusal);
        if !cells {
            for (update, bytes) in &step.updates {
                merged.vector_mut().set(update.origin, update.mark(bytes));
            }
            return Ok(());
        }
        merged
            .layers()
            .check_all(updates().filter(|update| update.scope == Scope::Client), time)
            .map_err(refused)?;
        if let Some(community) = updates().find(|update| update.scope == Scope::Community) {
            merged.apply_parts(community, time).map_err(refused)?;
        }
        for (update, bytes) in &step.updates {
            self.apply_checked(merged, update, time).map_err(refused)?;
            merged.vector_mut().set(update.origin, update.mark(bytes));
        }
        Ok(())
    }

    /// Applies an update that was checked before.
    fn apply_checked(&self, merged: &mut MergedCounts, update: &Update, time: u64) -> Result<(), Refusal> {
        match update.scope {
            Scope::Community => Ok(()),
            Scope::Client => merged.layers_mut().apply(update, time),
            Scope::Withdrawn => {
                merged.layers_mut().withdraw(update.origin);
                Ok(())
            }
        }
    }
}

/// Checks whether a step or a snapshot was made for the settings here.
///
/// # Errors
/// The mismatch.
pub fn check_like(key_id: u64, window: u64, settings: &Settings) -> Result<(), StepRefusal> {
    check_parameters((settings.federation.key_id, key_id), (settings.window.as_secs(), window))
}

/// Likewise, for our values and theirs.
pub fn check_parameters((ours, theirs): (u64, u64), window: (u64, u64)) -> Result<(), StepRefusal> {
    if ours != theirs {
        let [ours, theirs] = [ours, theirs].map(|id| format!("{id:016x}"));
        return Err(StepRefusal::Unlike { name: "federation key id", ours, theirs });
    }
    let (ours, theirs) = window;
    if ours != theirs {
        let [ours, theirs] = [ours, theirs].map(|seconds| format!("{seconds}s"));
        return Err(StepRefusal::Unlike { name: "window", ours, theirs });
    }
    Ok(())
}
