// SPDX-License-Identifier: GPL-3.0-or-later
//! A draft of the next step of a fleet's chain. It changes nothing here: it counts once the log has it and delivers it to all members,
//! including the aggregator that made it.

use crate::history::fleet_mark::{is_name, origin_of_client};
use crate::history::spool_batch::{SpoolBatch, unreadable_reason};
use crate::history::spool_mark::{BatchStatus, SpoolMark};
use crate::history::step::{MAX_STEP, MAX_STEP_CELLS, SpoolMarks, Step, StepHead};
use crate::history::update::{Part, Scope, Update};
use crate::history::vector::{Origin, Vector};
use crate::history::window::Calendar;
use crate::settings::Settings;
use crate::state::bulk_counts::BulkCounts;
use crate::state::counts::Counts;
use crate::state::fleet::client::ClientDraft;
use crate::state::fleet::community::CommunityDraft;
use crate::state::fleet::fold::Fleet;
use crate::state::fleet::reported::{Reported, counts_before, halve};
use crate::state::limited::Limits;
use crate::state::merged::MergedCounts;
use crate::state::note_queue::LEAST_BOUND;
use crate::state::shares::Share;
use bulkmark_filter::{CELLS_PER_ELEMENT, ParameterError};
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// A batch as the log delivered it to an aggregator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedBatch {
    /// Its place in the log.
    pub place: u64,
    /// The time of its arrival by the log's clock, in seconds since 1970.
    pub at: u64,
    /// The client that appended it, as proven by the log.
    pub client: String,
    /// The client's limits; `None` for an own client.
    pub limits: Option<Limits>,
    /// The number of withdrawals of this client's counts.
    pub withdrawn: u32,
    /// The appended bytes.
    pub bytes: Vec<u8>,
}

/// The content of a step beside its batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The epoch: that of [`FleetMark`](crate::FleetMark), or the next one if the place for batches is another one or has lost its end.
    pub epoch: u64,
    /// The place for batches that it counts on.
    pub made: u64,
    /// Batches up to this place are deleted: milters wait no longer for them to be counted.
    pub gone: u64,
    /// Clients whose counts were withdrawn, each with the number of withdrawals.
    pub withdrawn: Vec<(String, u32)>,
    /// The most bytes of the step.
    pub most_bytes: usize,
}

/// A draft with its statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drafted {
    /// The version after the step.
    pub version: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The number of covered batches, from the first on.
    pub batches: usize,
    /// The number of its signatures.
    pub signatures: usize,
    /// The number of covered batches that cannot be read.
    pub junk: u64,
    /// The first of these: its client, its place, and the reason.
    pub unread: Option<String>,
    /// The number of batches that were counted before.
    pub repeated: u64,
    /// The number of batches too far ahead of their spool's open ones. They are skipped, and come again.
    pub early: u64,
}

/// The approximate bytes of a signature in a step, in the emptiest filters (crates/study/docs/delta.md).
const BYTES_PER_SIGNATURE: usize = 10;

/// Further bytes of a batch: the mark of its spool, and the head of its update.
const BYTES_PER_BATCH: usize = 256;

/// The most signatures of a step.
const MAX_SIGNATURES: usize = MAX_STEP_CELLS / CELLS_PER_ELEMENT;

/// The number of past withdrawals of a client whose origins are checked for rests. A step of an aggregator that did not know a withdrawal
/// yet adds to the origin before; no aggregator is so far behind.
const WITHDRAWALS: u32 = 64;

/// A draft without the bytes of its updates: coding them takes a while, and can be done outside the writer.
pub struct Outline {
    step: Step,
    drafted: Drafted,
}

impl Outline {
    /// Codes the step. Returns it with its draft.
    pub fn finish(mut self) -> (Step, Drafted) {
        for (update, bytes) in &mut self.step.updates {
            *bytes = update.encode();
        }
        let mut bytes = self.step.encode();
        while bytes.len() > MAX_STEP && self.drafted.batches <= 1 && !self.step.bulk.is_empty() {
            // A single batch may be all bulk, in many windows.
            halve(&mut self.step.bulk);
            bytes = self.step.encode();
        }
        (self.step, Drafted { bytes, ..self.drafted })
    }
}

/// A draft in progress.
struct Drafting<'a> {
    fleet: &'a Fleet,
    merged: &'a MergedCounts,
    settings: &'a Settings,
    calendar: Calendar,
    origin: Origin,
    marks: SpoolMarks,
    community: CommunityDraft<'a>,
    clients: BTreeMap<Origin, ClientDraft<'a>>,
    reported: Reported,
    drafted: Drafted,
    covers: u64,
    time: u64,
}

/// Drafts the step that covers as many of these batches as fit, at most `most`; `None` if there is nothing new. `new` is the origin of a
/// new fleet.
///
/// # Errors
/// If a filter of the configured size is impossible.
pub fn draft(
    counts: &Counts,
    batches: &[LoggedBatch],
    terms: &Terms,
    most: usize,
    new: Origin,
) -> Result<Option<Outline>, ParameterError> {
    let Counts { fleet, merged, settings, .. } = counts;
    let mark = fleet.mark;
    let same = terms.epoch == mark.epoch && terms.made == mark.made;
    let follows = same || mark.next_epoch() == Some(terms.epoch);
    let Some(version) = mark.version.checked_add(1).filter(|_| follows) else {
        return Ok(None);
    };
    let mut drafting = Drafting {
        fleet,
        merged,
        settings,
        calendar: Calendar::new(settings),
        origin: if mark.version > 0 { fleet.origin } else { new },
        marks: SpoolMarks::new(),
        community: CommunityDraft::new(merged, settings.capacity.get()),
        clients: BTreeMap::new(),
        reported: Reported::new(fleet.bound),
        drafted: Drafted {
            version,
            bytes: Vec::new(),
            batches: 0,
            signatures: 0,
            junk: 0,
            unread: None,
            repeated: 0,
            early: 0,
        },
        covers: if same { mark.covers.max(terms.gone) } else { terms.gone },
        time: 0,
    };
    drafting.take_all(batches, terms.most_bytes, most)?;
    Ok(drafting.finish(&counts.held, terms, same))
}

impl Drafting<'_> {
    fn take_all(
        &mut self,
        batches: &[LoggedBatch],
        most_bytes: usize,
        most: usize,
    ) -> Result<(), ParameterError> {
        let mut bytes = 0;
        for batch in batches.iter().take(most) {
            let content = self.read(batch);
            let signatures = content.as_ref().map_or(0, |content| content.reports.len());
            bytes += signatures * BYTES_PER_SIGNATURE + BYTES_PER_BATCH;
            let full = bytes > most_bytes || self.drafted.signatures + signatures > MAX_SIGNATURES;
            if self.drafted.batches > 0 && full {
                break;
            }
            match content {
                Ok(content) => self.take(batch, &content)?,
                Err(why) => {
                    self.drafted.junk += 1;
                    let message = || format!("a batch of {:?} at place {}: {why}", batch.client, batch.place);
                    self.drafted.unread.get_or_insert_with(message);
                }
            }
            self.drafted.batches += 1;
            self.covers = self.covers.max(batch.place);
            self.time = self.time.max(batch.at);
        }
        Ok(())
    }

    /// Decodes a batch, or returns the reason for skipping it.
    fn read(&self, batch: &LoggedBatch) -> Result<SpoolBatch, String> {
        if batch.bytes.is_empty() {
            return Err("it is empty, or its client is not known to the log".to_owned());
        }
        let content = SpoolBatch::decode(&batch.bytes).ok_or_else(|| unreadable_reason(&batch.bytes))?;
        let (ours, theirs) = (self.settings.federation.key_id, content.key_id);
        if ours != theirs {
            return Err(format!("federation key id differs: {theirs:016x} at the sender, {ours:016x} here"));
        }
        if is_name(&batch.client) {
            Ok(content)
        } else {
            Err("the name of its client is not valid".to_owned())
        }
    }

    fn take(&mut self, batch: &LoggedBatch, content: &SpoolBatch) -> Result<(), ParameterError> {
        let known = self.fleet.marks.get(&batch.client, content.spool);
        let spools = self.marks.entry(batch.client.clone()).or_default();
        let mark: &mut SpoolMark =
            spools.entry(content.spool).or_insert_with(|| known.cloned().unwrap_or_default());
        match mark.take(content.number, content.lowest) {
            BatchStatus::Repeated => self.drafted.repeated += 1,
            BatchStatus::TooFar => self.drafted.early += 1,
            BatchStatus::New => self.count(batch, content)?,
        }
        Ok(())
    }

    fn count(&mut self, batch: &LoggedBatch, content: &SpoolBatch) -> Result<(), ParameterError> {
        self.drafted.signatures += content.reports.len();
        let window = |signature| self.calendar.of(signature, batch.at);
        let Some(limits) = batch.limits else {
            // Partners get the list, but cannot start one: it takes memory of all aggregators.
            if content.bulk_from > 0 {
                self.reported.ask(content.bulk_from.max(LEAST_BOUND));
            }
            content.reports.iter().for_each(|&(signature, _)| self.reported.add(signature));
            for &(signature, times) in &content.reports {
                let window = window(signature);
                self.community.add(window, signature, times)?;
            }
            return Ok(());
        };
        let origin = origin_of_client(self.origin, &batch.client, batch.withdrawn);
        let capacity = self.settings.capacity.get();
        let client = match self.clients.entry(origin) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(ClientDraft::new(self.calendar, self.merged.layers().get(origin), capacity)?)
            }
        };
        for &(signature, times) in &content.reports {
            client.add(window(signature), signature, times, limits, batch.at);
            self.reported.add(signature);
        }
        Ok(())
    }

    /// The origins that must be withdrawn.
    fn withdrawn(&self, terms: &Terms) -> Vec<Origin> {
        let all = terms.withdrawn.iter().flat_map(|(name, times)| {
            let before = times.saturating_sub(WITHDRAWALS)..*times;
            before.map(|before| origin_of_client(self.origin, name, before))
        });
        let mut all: Vec<_> = all.filter(|&origin| self.merged.layers().get(origin).is_some()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The counts of a signature after the step.
    fn by_window(&self, signature: Signature) -> Vec<Share> {
        let before = counts_before(self.merged, self.calendar, signature, self.time);
        let by_clients = self.clients.values().flat_map(|client| client.growth(signature));
        before.chain(self.community.growth(signature)).chain(by_clients).collect()
    }

    fn finish(self, held: &BulkCounts, terms: &Terms, same: bool) -> Option<Outline> {
        let withdrawn = self.withdrawn(terms);
        if self.drafted.batches == 0 && withdrawn.is_empty() && same && self.covers == self.fleet.mark.covers
        {
            return None;
        }
        // Withdrawn counts are part of any count: the list starts over, and announces signatures with their next report.
        let bulk = if withdrawn.is_empty() {
            self.reported.sections(held, self.calendar, |signature| self.by_window(signature))
        } else {
            Vec::new()
        };
        let mut parts = vec![(self.origin, Scope::Community, self.community.parts())];
        let clients = self.clients.iter().filter(|(origin, _)| !withdrawn.contains(origin));
        parts.extend(clients.map(|(&origin, client)| (origin, Scope::Client, client.parts())));
        parts.retain(|(_, _, parts)| !parts.is_empty());
        parts.extend(withdrawn.into_iter().map(|origin| (origin, Scope::Withdrawn, Vec::new())));
        let (vector, mut new) = (self.merged.vector(), 0);
        // All members would skip a step with an origin for which there is no room.
        parts.retain(|(origin, _, _)| {
            let is_new = vector.get(*origin).version == 0;
            let has_room = !is_new || vector.check_room(new + 1).is_ok();
            new += usize::from(is_new && has_room);
            has_room
        });
        let updates = parts.into_iter().map(|part| (next_update(vector, part), Vec::new())).collect();
        let head = StepHead {
            origin: self.origin,
            version: self.drafted.version,
            before: self.fleet.mark.chain,
            key_id: self.settings.federation.key_id,
            window: self.settings.window.as_secs(),
            epoch: terms.epoch,
            made: terms.made,
            covers: self.covers,
            time: if self.drafted.batches > 0 { self.time } else { self.fleet.time },
            bound: self.reported.bound,
        };
        Some(Outline { step: Step { head, marks: self.marks, bulk, updates }, drafted: self.drafted })
    }
}

fn next_update(vector: &Vector, (origin, scope, parts): (Origin, Scope, Vec<Part>)) -> Update {
    let known = vector.get(origin);
    Update { origin, version: known.version.saturating_add(1), before: known.chain, scope, parts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::vector::{Chain, MAX_ORIGINS, Mark};
    use crate::state::layer::Layer;
    use crate::state::merged::Applied;
    use crate::state::user_reports_tests::counts;

    /// An aggregator that did not know of it yet may have counted something of a client under any of its former origins: that is taken
    /// back, too. What the administrator writes costs as little where he wrote the largest number.
    #[test]
    fn what_was_taken_back_before_is_taken_back_again() {
        let mut counts = counts(&Settings::default());
        counts.fleet.mark.version = 1;
        let origins = |times: std::ops::Range<u32>| {
            times.map(|before| origin_of_client(counts.fleet.origin, "isp", before)).collect::<Vec<_>>()
        };
        let (mut former, last) = (origins(0..5), origins(u32::MAX - 1..u32::MAX));
        let now = origins(5..6);
        for &origin in former.iter().chain(&last).chain(&now) {
            counts.merged.layers_mut().insert(origin, Layer::default()).unwrap();
        }
        let withdrawn = |times| {
            let withdrawn = vec![("isp".to_owned(), times)];
            let outline = draft(&counts, &[], &Terms { withdrawn, ..Terms::default() }, 0, Origin(1));
            let (step, _) = outline.unwrap().unwrap().finish();
            let all = step.updates.iter().filter(|(update, _)| update.scope == Scope::Withdrawn);
            all.map(|(update, _)| update.origin).collect::<Vec<_>>()
        };
        former.sort_unstable();
        assert_eq!(withdrawn(5), former);
        assert_eq!(withdrawn(u32::MAX), last);
    }

    /// Where the vector has no place for another origin, an aggregator makes no step that all would skip: it counts the known clients.
    #[test]
    fn a_full_vector_takes_no_new_client() {
        let mut counts = counts(&Settings::default());
        let origin = |name: &str| origin_of_client(Origin(7), name, 0);
        (counts.fleet.mark.version, counts.fleet.origin) = (1, Origin(7));
        let mark = Mark { version: 1, chain: Chain::default() };
        let known = [Origin(7), origin("known")].into_iter().chain((100..).map(Origin));
        known.take(MAX_ORIGINS).for_each(|origin| counts.merged.vector_mut().set(origin, mark));
        let batch = |place: u64, client: &str| {
            let reports = vec![(Signature::from_bytes([7; 16]), 1)];
            let key_id = counts.settings.federation.key_id;
            let batch = SpoolBatch { key_id, spool: 1, number: 1, lowest: 1, bulk_from: 0, reports };
            let limits = Some(Limits { influence: 5, quota: 1000 });
            LoggedBatch {
                place,
                at: 1_800_000_000,
                client: client.to_owned(),
                limits,
                withdrawn: 0,
                bytes: batch.encode(),
            }
        };
        let batches = [batch(1, "new"), batch(2, "known")];
        let terms = Terms { most_bytes: MAX_STEP, ..Terms::default() };
        let outline = draft(&counts, &batches, &terms, 9, Origin(1)).unwrap().unwrap();
        let (step, drafted) = outline.finish();
        assert_eq!(counts.apply_to_fleet(&step, &drafted.bytes, 1), Ok(Applied::New));
        let counted = ["new", "known"].map(|name| counts.merged.layers().get(origin(name)).is_some());
        assert_eq!((counted, drafted.batches), ([false, true], 2));
    }
}
