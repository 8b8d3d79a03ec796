// SPDX-License-Identifier: GPL-3.0-or-later
//! The fold of a fleet's steps: the merged cells, the vector and the marks change together, one step after the other, in the order
//! in which the log delivers them. Whatever else is in the stream changes nothing.

use crate::ledger::history::fleet::FleetMark;
use crate::ledger::history::refusal::{Refusal, StepRefusal};
use crate::ledger::history::step::{Step, StepHead};
use crate::ledger::history::update::{Scope, Update};
use crate::ledger::history::vector::{Chain, Origin};
use crate::ledger::settings::Settings;
use crate::ledger::state::fleet::marks::Marks;
use crate::ledger::state::merged::{Applied, MergedCounts};

/// Where the chain stands, and which batches are in it. The cells are the merged ones, which nobody else writes then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) mark: FleetMark,
    /// The origin of what unlimited clients bring.
    pub(crate) origin: Origin,
    /// When the newest batch of the last step came.
    pub(crate) time: u64,
    pub(crate) marks: Marks,
}

fn junk(what: &(impl ToString + ?Sized)) -> StepRefusal {
    StepRefusal::Junk(what.to_string())
}

impl Fleet {
    /// Applies the step with these bytes to `merged`, if it is the next one. One that is in already changes nothing.
    ///
    /// # Errors
    /// [`StepRefusal`]; nothing is changed then.
    pub(crate) fn apply(
        &mut self,
        merged: &mut MergedCounts,
        step: &Step,
        bytes: &[u8],
        place: u64,
    ) -> Result<Applied, StepRefusal> {
        let StepHead { origin, version, epoch, made, covers, time, .. } = step.head;
        if version <= self.mark.version {
            return Ok(Applied::Known);
        }
        self.check(&step.head)?;
        if !self.marks.are_followed_by(&step.marks) {
            return Err(junk("the step counts batches again that are counted"));
        }
        self.apply_updates(merged, step, time)?;
        self.marks.set_all(&step.marks, version);
        (self.origin, self.time) = (origin, time);
        self.mark = FleetMark { version, chain: Chain::of(bytes), epoch, made, covers, place };
        Ok(Applied::New)
    }

    /// Whether a step continues this chain.
    fn check(&self, head: &StepHead) -> Result<(), StepRefusal> {
        let (mark, version) = (&self.mark, head.version);
        if version > mark.version + 1 {
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
        Ok(())
    }

    /// All of the updates, or none: what can be refused is looked at before anything is changed.
    fn apply_updates(&self, merged: &mut MergedCounts, step: &Step, time: u64) -> Result<(), StepRefusal> {
        let updates = || step.updates.iter().map(|(update, _)| update);
        for update in updates() {
            let known = merged.vector().get(update.origin);
            if update.version != known.version + 1 || update.before != known.chain {
                return Err(junk(&format!(
                    "an update of the origin {} does not follow the last one",
                    update.origin
                )));
            }
        }
        let refused = |refusal: Refusal| junk(&refusal);
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

    /// What was looked at before.
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

/// Whether a step or a snapshot was made for what is configured here.
///
/// # Errors
/// What differs.
pub(crate) fn check_like(key_id: u64, window: u64, settings: &Settings) -> Result<(), StepRefusal> {
    let (ours, theirs) = (settings.federation.key_id, key_id);
    if ours != theirs {
        let [ours, theirs] = [ours, theirs].map(|id| format!("{id:016x}"));
        return Err(StepRefusal::Unlike { name: "federation key id", ours, theirs });
    }
    let (ours, theirs) = (settings.window.as_secs(), window);
    if ours != theirs {
        let [ours, theirs] = [ours, theirs].map(|seconds| format!("{seconds}s"));
        return Err(StepRefusal::Unlike { name: "window", ours, theirs });
    }
    Ok(())
}
