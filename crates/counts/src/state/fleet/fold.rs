// SPDX-License-Identifier: GPL-3.0-or-later
//! The fold of a fleet's steps: merged cells, vector and marks change together, one step after the other, in the order in which the log
//! delivers them. Other entries of the stream change nothing.

use crate::history::fleet_mark::FleetMark;
use crate::history::refusal::{Refusal, StepRefusal};
use crate::history::step::{Step, StepHead};
use crate::history::update::Scope;
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
        FoldTarget { merged, held, broken, keeps }: FoldTarget<'_>,
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
        check_updates(merged, step)?;
        if keeps.cells {
            apply_cells(merged, broken, step, time)?;
        }
        // Without cells, only the versions are followed; if all others refuse a step that this member applied, it is on a branch, which the
        // next step shows.
        for (update, bytes) in &step.updates {
            merged.vector_mut().set(update.origin, update.mark(bytes));
        }
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
}

/// Checks whether the updates follow the vector, and whether it has room for their origins: a longer one can be read by no member.
fn check_updates(merged: &MergedCounts, step: &Step) -> Result<(), StepRefusal> {
    let (vector, mut new) = (merged.vector(), 0);
    for (update, _) in &step.updates {
        let known = vector.get(update.origin);
        if known.version.checked_add(1) != Some(update.version) || update.before != known.chain {
            return Err(junk(&format!(
                "an update of the origin {} does not follow the last one",
                update.origin
            )));
        }
        new += usize::from(known.version == 0);
    }
    vector.check_room(new).map_err(|error| junk(&error))
}

/// Adds the cells of all updates, or none: everything that can be refused is checked first. If a change fails all the same, the counts are
/// `broken`.
fn apply_cells(
    merged: &mut MergedCounts,
    broken: &mut Option<String>,
    step: &Step,
    time: u64,
) -> Result<(), StepRefusal> {
    let of =
        |scope| step.updates.iter().map(|(update, _)| update).filter(move |update| update.scope == scope);
    let refused = |refusal: Refusal| junk(&refusal);
    merged.layers().check_all(of(Scope::Client), time).map_err(refused)?;
    if let Some(community) = of(Scope::Community).next() {
        merged.apply_parts(community, time).map_err(refused)?;
    }
    for update in of(Scope::Client) {
        merged.layers_mut().apply_checked(update, time).map_err(|error| {
            *broken = Some(format!("a step of the fleet could be applied in part only: {error}"));
            junk(&error)
        })?;
    }
    of(Scope::Withdrawn).for_each(|update| merged.layers_mut().withdraw(update.origin));
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::step::SpoolMarks;
    use crate::history::update::{Part, Update};
    use crate::history::vector::{MAX_ORIGINS, Mark};
    use crate::history::window::{Calendar, Window};
    use crate::state::counts::Counts;
    use crate::state::layer::LayerWindow;
    use crate::state::user_reports_tests::counts;
    use bulkmark_filter::Delta;

    const NOW: u64 = 1_800_000_000;
    const CAPACITY: u32 = 1_000_000;

    /// An update of an origin that is new, with a part for each of these windows.
    fn update(origin: u64, scope: Scope, windows: &[Window]) -> Update {
        let part = |&window| {
            let delta = Delta::from_changes(LayerWindow::blocks(CAPACITY), [(7, 1)]).unwrap();
            Part { window, capacity: CAPACITY, slice: 0, delta }
        };
        let parts = windows.iter().map(part).collect();
        Update { origin: Origin(origin), version: 1, before: Chain::default(), scope, parts }
    }

    /// Applies a step with these updates, which follows the last one.
    fn apply(counts: &mut Counts, updates: impl Iterator<Item = Update>) -> Result<Applied, StepRefusal> {
        let FleetMark { version, chain, .. } = counts.fleet.mark;
        let head = StepHead {
            origin: Origin(9),
            version: version + 1,
            before: chain,
            key_id: counts.settings.federation.key_id,
            window: counts.settings.window.as_secs(),
            epoch: 0,
            made: 0,
            covers: 0,
            time: NOW,
            bound: 0,
        };
        let updates = updates.map(|update| (update.clone(), update.encode())).collect();
        let step = Step { head, marks: SpoolMarks::new(), bulk: Vec::new(), updates };
        counts.apply_step(&step, step.encode().into(), version + 1, NOW)
    }

    /// Steps with withdrawals of made-up origins: the vector stays one that every member can read, and a chain whose vector is full goes on.
    #[test]
    fn steps_bring_no_more_origins_than_members_read() {
        let mut counts = counts(&Settings::default());
        let withdrawn = |origins: std::ops::Range<u64>| origins.map(|n| update(n, Scope::Withdrawn, &[]));
        for first in (100..).step_by(15_000).take(4) {
            assert_eq!(apply(&mut counts, withdrawn(first..first + 15_000)), Ok(Applied::New));
        }
        let refusal = apply(&mut counts, withdrawn(60_100..75_100));
        assert!(
            matches!(&refusal, Err(StepRefusal::Junk(why)) if why.contains("the number of origins")),
            "{refusal:?}"
        );
        assert_eq!((counts.merged.vector().len(), counts.fleet.mark.version), (60_000, 4));
        assert_eq!(apply(&mut counts, withdrawn(60_100..60_100 + 5536)), Ok(Applied::New));
        assert_eq!(counts.merged.vector().len(), MAX_ORIGINS);
        let known = Update {
            version: 2,
            before: counts.merged.vector().get(Origin(100)).chain,
            ..update(100, Scope::Withdrawn, &[])
        };
        assert_eq!(apply(&mut counts, [known].into_iter()), Ok(Applied::New));
        assert!(apply(&mut counts, withdrawn(1..2)).is_err());
    }

    /// The windows of all clients together are too many: the fleet's own counts in the same step are not added either.
    #[test]
    fn a_refused_step_changes_nothing() {
        let settings = Settings::default();
        let day = |n: u64| Calendar::new(&settings).at(NOW + n * 86_400);
        let mut counts = counts(&settings);
        let community = update(9, Scope::Community, &[day(0)]);
        let all = |clients: &[&[u64]]| {
            let windows = |days: &[u64]| days.iter().map(|&n| day(n)).collect::<Vec<_>>();
            let clients = (20..).zip(clients).map(|(n, days)| update(n, Scope::Client, &windows(days)));
            [community.clone()].into_iter().chain(clients.collect::<Vec<_>>())
        };
        let too_many: [[&[u64]; 2]; 2] = [[&[1, 2, 3], &[4, 5, 6]], [&[1, 2, 3, 4], &[5]]];
        for clients in too_many {
            let refusal = apply(&mut counts, all(&clients));
            assert!(matches!(refusal, Err(StepRefusal::Junk(_))), "{refusal:?}");
            let Counts { merged, fleet, broken, .. } = &counts;
            assert!(merged.windows().is_empty() && merged.vector().is_empty());
            assert_eq!((merged.layers().iter().count(), fleet, broken), (0, &Fleet::default(), &None));
        }
        assert_eq!(apply(&mut counts, all(&[&[1, 2, 3, 4]])), Ok(Applied::New));
        assert_eq!(
            counts.merged.vector().get(Origin(9)),
            Mark { version: 1, chain: Chain::of(&community.encode()) }
        );
    }
}
