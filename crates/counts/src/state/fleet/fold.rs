// SPDX-License-Identifier: GPL-3.0-or-later
//! The fold of a fleet's steps: the merged cells, the vector and the marks change together, one step after the other, in the order
//! in which the log delivers them. Whatever else is in the stream changes nothing.

use crate::history::fleet_mark::FleetMark;
use crate::history::refusal::{Refusal, StepRefusal};
use crate::history::step::{Step, StepHead};
use crate::history::update::{Scope, Update};
use crate::history::vector::{Chain, Origin};
use crate::settings::Settings;
use crate::state::fleet::keeps::Folded;
use crate::state::fleet::marks::Marks;
use crate::state::held::Held;
use crate::state::merged::{Applied, MergedCounts};

/// Where the chain stands, and which batches are in it. The cells are the merged ones, which nobody else writes then.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Where the chain stands.
    pub mark: FleetMark,
    /// The origin of what unlimited clients bring.
    pub origin: Origin,
    /// When the newest batch of the last step came.
    pub time: u64,
    /// The count from which on bulk is told apart; 0 while it is not.
    pub bound: u32,
    /// The batches that are counted, by client and spool.
    pub marks: Marks,
}

fn junk(what: &(impl ToString + ?Sized)) -> StepRefusal {
    StepRefusal::Junk(what.to_string())
}

impl Fleet {
    /// Applies the step with these bytes to what is kept, if it is the next one. One that is in already changes nothing.
    ///
    /// # Errors
    /// [`StepRefusal`]; nothing is changed then.
    pub fn apply(
        &mut self,
        Folded { merged, held, keeps }: Folded<'_>,
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

    /// Whether a step continues this chain.
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
        // Else one step could name the last epoch that there is, behind which nothing can begin anew.
        if !goes_on && mark.next_epoch() != Some(head.epoch) {
            return Err(junk(&format!(
                "the step begins epoch {}, and the one before it was of {}",
                head.epoch, mark.epoch
            )));
        }
        if self.bound > 0 && !(1..=self.bound).contains(&head.bound) {
            return Err(junk("the step does not tell all of bulk that the one before it told"));
        }
        Ok(())
    }

    /// What a partner brought is in any count of the list, and leaves it with all others: then it begins anew, as it does where bulk is
    /// told for the first time.
    fn apply_bulk(&self, held: &mut Held, step: &Step, settings: &Settings) {
        let is_withdrawn = step.updates.iter().any(|(update, _)| update.scope == Scope::Withdrawn);
        if is_withdrawn || self.bound == 0 && step.head.bound > 0 {
            *held = Held::new(settings);
        }
        step.bulk.iter().for_each(|section| held.raise(section, step.head.time, |_, _, _| ()));
    }

    /// All of the updates, or none: what can be refused is looked at before anything is changed. Whoever keeps no cells follows the
    /// versions alone; should all others refuse a step that it took, it is on a branch, and hears so by the next one.
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
pub fn check_like(key_id: u64, window: u64, settings: &Settings) -> Result<(), StepRefusal> {
    check_parameters((settings.federation.key_id, key_id), (settings.window.as_secs(), window))
}

/// The same, of ours and theirs.
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
