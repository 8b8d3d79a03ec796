// SPDX-License-Identifier: GPL-3.0-or-later
//! The next step of a fleet's chain, as this aggregator would make it. Nothing is changed by it: it counts when the log has it, and
//! delivers it to everybody, its maker included.

use crate::history::carried::{Carried, why_not};
use crate::history::fleet_mark::{is_name, origin_of_client};
use crate::history::spool_mark::{SpoolMark, Taken};
use crate::history::step::{MAX_STEP, MAX_STEP_CELLS, SpoolMarks, Step, StepHead};
use crate::history::update::{Part, Scope, Update};
use crate::history::vector::{Origin, Vector};
use crate::history::window::Calendar;
use crate::settings::Settings;
use crate::state::counts::Counts;
use crate::state::fleet::client::ClientDraft;
use crate::state::fleet::community::CommunityDraft;
use crate::state::fleet::fold::Fleet;
use crate::state::fleet::reported::{Reported, counts_before, halve};
use crate::state::held::Held;
use crate::state::limited::Limits;
use crate::state::merged::MergedCounts;
use crate::state::shares::Share;
use crate::state::teller::LEAST_BOUND;
use bulkmark_filter::{CELLS_PER_ELEMENT, ParameterError};
use bulkmark_types::Signature;
use std::collections::BTreeMap;

/// A batch as the log delivered it to an aggregator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batched {
    /// Where it is.
    pub place: u64,
    /// When it came, by the log's clock, in seconds since 1970.
    pub at: u64,
    /// Who appended it, as the log proves.
    pub client: String,
    /// What this client may bring; none for one of one's own.
    pub limits: Option<Limits>,
    /// How often what this client brought was taken back.
    pub withdrawn: u32,
    /// What was appended.
    pub bytes: Vec<u8>,
}

/// What a step is to say beside its batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// The number of the epoch: that of [`FleetMark`](crate::FleetMark), or the next one when the place for batches is another
    /// one or has lost its end.
    pub epoch: u64,
    /// Which place for batches it counts on.
    pub made: u64,
    /// Batches up to this place are not kept any more: whoever waits for them to be counted waits no longer.
    pub gone: u64,
    /// Clients whose counts were taken back, and how often.
    pub withdrawn: Vec<(String, u32)>,
    /// Bytes of the step at most.
    pub most_bytes: usize,
}

/// A step that was made, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drafted {
    /// The step that it would be.
    pub version: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How many of the batches, from the first on, it covers.
    pub batches: usize,
    /// Signatures that are in it.
    pub signatures: usize,
    /// Batches of these that cannot be read.
    pub junk: u64,
    /// The first of these: whose it is, where it is, and why.
    pub unread: Option<String>,
    /// Those that were counted before.
    pub repeated: u64,
    /// Those whose number is too far ahead of what is open of their spool. They are passed over, and come again.
    pub early: u64,
}

/// Bytes that a signature takes in a step, about: when filters are as empty as they get (crates/study/docs/delta.md).
const BYTES_PER_SIGNATURE: usize = 10;

/// Bytes of what else a batch adds: the mark of its spool, the head of its update.
const BYTES_PER_BATCH: usize = 256;

/// Signatures of a step at most.
const MAX_SIGNATURES: usize = MAX_STEP_CELLS / CELLS_PER_ELEMENT;

/// Times that what a client brought was taken back, for which it is looked whether anything is left of it. A step that was made by
/// an aggregator that did not know yet brings something of before; nobody is so far behind.
const WITHDRAWALS: u32 = 64;

/// A draft whose updates have no bytes yet: to make them takes a while, and nobody need wait for it.
pub struct Outline {
    step: Step,
    drafted: Drafted,
}

impl Outline {
    /// The step, and its bytes.
    pub fn finish(mut self) -> (Step, Drafted) {
        for (update, bytes) in &mut self.step.updates {
            *bytes = update.encode();
        }
        let mut bytes = self.step.encode();
        while bytes.len() > MAX_STEP && self.drafted.batches <= 1 && !self.step.bulk.is_empty() {
            // One batch of which all is bulk in many windows.
            halve(&mut self.step.bulk);
            bytes = self.step.encode();
        }
        (self.step, Drafted { bytes, ..self.drafted })
    }
}

/// A draft on its way.
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

/// The step that covers as many of these batches as it has room for, `most` of them; none when there is nothing to tell. `new` names
/// a fleet that begins.
///
/// # Errors
/// When there can be no filter of the configured size.
pub fn draft(
    counts: &Counts,
    batches: &[Batched],
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
        batches: &[Batched],
        most_bytes: usize,
        most: usize,
    ) -> Result<(), ParameterError> {
        let mut bytes = 0;
        for batch in batches.iter().take(most) {
            let carried = self.read(batch);
            let signatures = carried.as_ref().map_or(0, |carried| carried.reports.len());
            bytes += signatures * BYTES_PER_SIGNATURE + BYTES_PER_BATCH;
            let full = bytes > most_bytes || self.drafted.signatures + signatures > MAX_SIGNATURES;
            if self.drafted.batches > 0 && full {
                break;
            }
            match carried {
                Ok(carried) => self.take(batch, &carried)?,
                Err(why) => {
                    self.drafted.junk += 1;
                    let told = || format!("a batch of {:?} at place {}: {why}", batch.client, batch.place);
                    self.drafted.unread.get_or_insert_with(told);
                }
            }
            self.drafted.batches += 1;
            self.covers = self.covers.max(batch.place);
            self.time = self.time.max(batch.at);
        }
        Ok(())
    }

    /// What a batch says, or why it is passed over.
    fn read(&self, batch: &Batched) -> Result<Carried, String> {
        if batch.bytes.is_empty() {
            return Err("it is empty, or of nobody that the log knows".to_owned());
        }
        let carried = Carried::decode(&batch.bytes).ok_or_else(|| why_not(&batch.bytes))?;
        let (ours, theirs) = (self.settings.federation.key_id, carried.key_id);
        if ours != theirs {
            return Err(format!(
                "it is of a machine whose federation key id is {theirs:016x}, and here it is {ours:016x}"
            ));
        }
        if is_name(&batch.client) { Ok(carried) } else { Err("nobody can have this name".to_owned()) }
    }

    fn take(&mut self, batch: &Batched, carried: &Carried) -> Result<(), ParameterError> {
        let known = self.fleet.marks.get(&batch.client, carried.spool);
        let spools = self.marks.entry(batch.client.clone()).or_default();
        let mark: &mut SpoolMark =
            spools.entry(carried.spool).or_insert_with(|| known.cloned().unwrap_or_default());
        match mark.take(carried.number, carried.lowest) {
            Taken::Repeated => self.drafted.repeated += 1,
            Taken::TooFar => self.drafted.early += 1,
            Taken::New => self.count(batch, carried)?,
        }
        Ok(())
    }

    fn count(&mut self, batch: &Batched, carried: &Carried) -> Result<(), ParameterError> {
        self.drafted.signatures += carried.reports.len();
        let window = |signature| self.calendar.of(signature, batch.at);
        let Some(limits) = batch.limits else {
            // Partners hear what is told, but have nothing begun: a list takes memory of all who make steps.
            if carried.bulk_from > 0 {
                self.reported.ask(carried.bulk_from.max(LEAST_BOUND));
            }
            carried.reports.iter().for_each(|&(signature, _)| self.reported.add(signature));
            for &(signature, times) in &carried.reports {
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
        for &(signature, times) in &carried.reports {
            client.add(window(signature), signature, times, limits, batch.at);
            self.reported.add(signature);
        }
        Ok(())
    }

    /// The origins of which something is to be taken back.
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

    /// What a signature's counts will be.
    fn by_window(&self, signature: Signature) -> Vec<Share> {
        let before = counts_before(self.merged, self.calendar, signature, self.time);
        let by_clients = self.clients.values().flat_map(|client| client.growth(signature));
        before.chain(self.community.growth(signature)).chain(by_clients).collect()
    }

    fn finish(self, held: &Held, terms: &Terms, same: bool) -> Option<Outline> {
        let withdrawn = self.withdrawn(terms);
        if self.drafted.batches == 0 && withdrawn.is_empty() && same && self.covers == self.fleet.mark.covers
        {
            return None;
        }
        // What is taken back is in any count: the list begins anew, and tells what is reported from then on.
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
        let vector = self.merged.vector();
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
    use crate::state::layer::Layer;
    use crate::state::voices_tests::counts;

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
}
