// SPDX-License-Identifier: GPL-3.0-or-later
//! Milters and aggregators: their ledgers, and their work with the log, as `sync` does it.

use super::super::node::{NOW, Node};
use super::log::Log;
use bulkmark_counts::history::fleet_mark::FleetMark;
use bulkmark_counts::history::refusal::StepRefusal;
use bulkmark_counts::history::spool_batch::SpoolBatch;
use bulkmark_counts::history::step::{Step, step_head};
use bulkmark_counts::history::vector::{Chain, Origin};
use bulkmark_counts::state::fleet::assembly::FleetAssembly;
use bulkmark_counts::state::fleet::draft::{Drafted, LoggedBatch, Terms, draft};
use bulkmark_counts::state::fleet::keeps::Keeps;
use bulkmark_counts::state::limited::Limits;
use bulkmark_counts::state::merged::Applied;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The count from which milters with a partial copy hold bulk.
pub(super) const BOUND: u32 = 10;

/// A holder that follows the log.
pub(super) struct Member {
    pub(super) node: Node,
    /// The place up to which it has read steps.
    pub(super) read: u64,
    /// Whether a step continued another chain, and no later one its own.
    forked: bool,
    /// The version at which the log was read again from its beginning, since steps seemed to be missing.
    again: Option<u64>,
    /// The last snapshot that it took: taking it again does not help.
    taken: Option<FleetMark>,
    /// Why it skipped a step last.
    pub(super) passed: Option<StepRefusal>,
}

impl Member {
    pub(super) const fn new(node: Node) -> Self {
        Self { node, read: 0, forked: false, again: None, taken: None, passed: None }
    }

    /// Restarts the daemon with this file or its own.
    pub(super) fn restart(&mut self, file: Option<&[u8]>) {
        self.node.restart(file);
        (self.read, self.forked, self.again, self.taken) = (0, false, None, None);
    }

    pub(super) fn mark(&self) -> FleetMark {
        self.node.view().counts().fleet.mark
    }

    pub(super) fn apply(&mut self, bytes: &Arc<[u8]>, place: u64) -> Result<Applied, StepRefusal> {
        let step = Step::decode(bytes).map_err(|e| StepRefusal::Junk(e.to_string()))?;
        let new = self.node.new_name();
        self.node.state().cache().unwrap().apply_step(&step, Arc::clone(bytes), place, NOW, new)
    }

    /// Reads at most `most` steps, each as often as `times` says. Returns false if it must start over from the first one.
    pub(super) fn follow(&mut self, log: &Log, most: usize, times: usize) -> bool {
        if self.read > log.ends().1 {
            // The log lost its end.
            self.read = 0;
        }
        if matches!(self.passed, Some(StepRefusal::Gap { .. })) && self.snapshot_of(log) != self.taken {
            // There is another snapshot now, which may have the missing steps.
            self.read = 0;
        }
        if self.read < log.forgotten() {
            // Some steps are no longer kept.
            let helped = self.adopt(log);
            self.node.commit();
            self.read = log.forgotten();
            if helped {
                return false;
            }
        }
        for (place, bytes) in log.steps_after(self.read).into_iter().take(most) {
            for _ in 0..times {
                match self.apply(&bytes, place) {
                    // It follows a step that lost the race, or none.
                    Err(lost @ StepRefusal::Fork { .. }) if !self.continues_chain(log, &bytes) => {
                        self.passed = Some(lost);
                    }
                    Ok(Applied::Known) => (),
                    Ok(Applied::New) => (self.forked, self.passed) = (false, None),
                    Err(junk @ (StepRefusal::Junk(_) | StepRefusal::Unlike { .. })) => {
                        self.passed = Some(junk)
                    }
                    Err(refusal @ (StepRefusal::Fork { .. } | StepRefusal::Gap { .. })) => {
                        self.forked |= matches!(refusal, StepRefusal::Fork { .. });
                        // The missing steps may be at other places now. Otherwise a snapshot has them, whose place in this log is
                        // unknown.
                        let version = self.mark().version;
                        if self.again.replace(version) != Some(version) || self.adopt(log) {
                            self.node.commit();
                            self.read = 0;
                            return false;
                        }
                        self.passed = Some(refusal);
                    }
                }
            }
            self.read = place;
        }
        self.node.commit();
        true
    }

    /// Whether a step continues the log's chain: that of its snapshot, or else that of its first step. Of several steps that continue the chain
    /// at one place, the first counts.
    fn continues_chain(&self, log: &Log, bytes: &[u8]) -> bool {
        let Some((head, _)) = step_head(bytes) else { return false };
        let steps: Vec<_> = log.steps.iter().filter_map(|(_, bytes)| step_head(bytes)).collect();
        let snapshot = self.snapshot_of(log).map(|mark| mark.chain);
        let Some(mut tip) = snapshot.or_else(|| steps.first().map(|(_, mark)| mark.chain)) else {
            return false;
        };
        let mut chain = vec![tip];
        // Backwards to the first step, then forwards from the snapshot.
        for (step, mark) in steps.iter().rev() {
            if chain.last() == Some(&mark.chain) {
                chain.push(step.before);
            }
        }
        for (step, mark) in &steps {
            if step.before == tip {
                tip = mark.chain;
                chain.push(tip);
            }
        }
        chain.contains(&head.before)
    }

    /// Gives up versions that only it knows: the log's chain ended long ago, at an earlier one.
    pub(super) fn give_up(&mut self, log: &Log) {
        let Some((_, last)) = log.steps.last() else { return };
        if step_head(last)
            .is_some_and(|(_, last)| last.version <= self.mark().version && last.chain != self.mark().chain)
        {
            (self.forked, self.taken) = (true, None);
            self.adopt(log);
            self.node.commit();
            self.read = 0;
        }
    }

    /// Takes the log's snapshot. Returns false if that does not help.
    pub(super) fn adopt(&mut self, log: &Log) -> bool {
        let Some(parts) = &log.snapshot else { return false };
        let mut assembly = FleetAssembly::new(self.node.settings());
        for part in parts {
            assembly.push(part).unwrap();
            if assembly.is_complete() {
                break;
            }
        }
        let (snapshot, new) = (assembly.finish().unwrap(), self.node.new_name());
        let FleetMark { version, chain, .. } = snapshot.head.mark;
        let again = self.taken.replace(snapshot.head.mark) == Some(snapshot.head.mark);
        let forked = self.forked;
        let is_of_no_use = again || !forked && self.node.knows_step(version, chain);
        if version <= self.mark().version && is_of_no_use {
            return false;
        }
        self.forked = false;
        let applied = self.node.state().cache().unwrap().adopt_fleet(snapshot, forked, new);
        applied.unwrap() == Applied::New
    }

    /// Drafts the next step, and the place for batches that it refers to.
    pub(super) fn draft(
        &mut self,
        log: &Log,
        limits: impl Fn(&str) -> (Option<Limits>, u32),
        withdrawn: &[(String, u32)],
        (batches, most_bytes): (usize, usize),
    ) -> Option<(Step, Drafted)> {
        let mark = self.mark();
        let same = mark.made == log.made && log.ends().0 >= mark.covers && mark.version > 0;
        let covers = if same { mark.covers } else { 0 };
        let batched: Vec<LoggedBatch> =
            (log.batches.iter().filter(|stored| stored.place > covers).take(batches))
                .map(|stored| {
                    let (limits, withdrawn) = limits(&stored.client);
                    let client = stored.client.clone();
                    LoggedBatch {
                        place: stored.place,
                        at: stored.at,
                        client,
                        limits,
                        withdrawn,
                        bytes: stored.bytes.clone(),
                    }
                })
                .collect();
        let epoch = if same { mark.epoch } else { mark.epoch + 1 };
        let gone = log.gone();
        let terms = Terms { epoch, made: log.made, gone, withdrawn: withdrawn.to_vec(), most_bytes };
        self.draft_of(&batched, &terms)
    }

    fn draft_of(&mut self, batched: &[LoggedBatch], terms: &Terms) -> Option<(Step, Drafted)> {
        let new = Origin(self.node.new_name());
        Some(draft(self.node.view().counts(), batched, terms, usize::MAX, new).unwrap()?.finish())
    }

    /// If the log has lost its end, or was replaced, appends the lost steps; and a snapshot, for members that lack more.
    pub(super) fn heal(&mut self, log: &mut Log) {
        self.follow_all(log);
        // Places do not show that: new entries may be at the places of lost ones.
        let known: BTreeSet<[u8; 16]> = log.steps.iter().map(|(_, bytes)| Chain::of(bytes).0).collect();
        let FleetMark { version, chain, .. } = self.mark();
        let in_snapshot = self.snapshot_of(log).is_some_and(|mark| mark.version >= version);
        if version == 0 || in_snapshot || known.contains(&chain.0) {
            return;
        }
        self.snapshot(log);
        let mut kept = (0..self.mark().version).map(|version| self.node.steps_since(version));
        let kept = kept.find(|kept| !kept.is_empty()).unwrap_or_default();
        for (_, bytes) in &kept {
            if !known.contains(&Chain::of(bytes).0) {
                log.append_step(None, Arc::clone(bytes));
            }
        }
        if kept.is_empty() {
            // A step that only states that it exists: members that lack earlier ones take the snapshot.
            let terms =
                Terms { epoch: self.mark().epoch + 1, made: log.made, gone: log.gone(), ..Terms::default() };
            let (_, drafted) = self.draft_of(&[], &terms).unwrap();
            log.append_step(None, drafted.bytes.into());
        }
        self.follow_all(log);
    }

    /// Reads to the end, however often it must start over.
    pub(super) fn follow_all(&mut self, log: &Log) {
        let rounds = (0..1000).take_while(|_| !self.follow(log, usize::MAX, 1)).count();
        assert!(rounds < 1000, "{} reads for ever", self.node.name);
    }

    /// Returns the position of the chain in the log's snapshot.
    fn snapshot_of(&self, log: &Log) -> Option<FleetMark> {
        let mut assembly = FleetAssembly::new(self.node.settings());
        assembly.push(&log.snapshot.as_ref()?[0]).unwrap();
        assembly.mark()
    }

    /// Makes a snapshot of its counts, and puts it into the log unless that has one at least as new.
    pub(super) fn snapshot(&mut self, log: &mut Log) {
        self.node.checkpoint(&bulkmark_counts::state::expired::Expired::default());
        let known = self.snapshot_of(log);
        if known.is_none_or(|known| known.version < self.mark().version) {
            log.snapshot = self.node.fleet_snapshot();
        }
    }

    /// Returns the batches to append.
    pub(super) fn outgoing(&mut self, begin: bool) -> Vec<SpoolBatch> {
        let (bulk, is_partial) = (self.node.view().counts().bulk, !Keeps::of(self.node.settings()).cells);
        let asks = is_partial && (bulk.bound == 0 || bulk.bound > BOUND);
        let bulk_from = if asks { BOUND } else { 0 };
        let carried = self.node.state().cache().unwrap().for_fleet(0, 64, begin, bulk_from);
        self.node.commit();
        carried
    }
}
