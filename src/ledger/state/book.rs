// SPDX-License-Identifier: GPL-3.0-or-later
//! All that a ledger counts, in memory, with what of it is not on disk yet.

use crate::ledger::disk::commit::Expired;
use crate::ledger::disk::rows::Entry;
use crate::ledger::history::refusal::Refusal;
use crate::ledger::history::update::Update;
use crate::ledger::history::vector::{Origin, Vector};
use crate::ledger::settings::Role;
use crate::ledger::settings::Settings;
use crate::ledger::state::generations::Generations;
use crate::ledger::state::influence::Influence;
use crate::ledger::state::local::Local;
use crate::ledger::state::merged::{Applied, MergedCounts};
use crate::ledger::state::receipts::{Backwards, Receipt, Receipts, Reporter};
use crate::ledger::state::report::Report;
use crate::ledger::state::retries::{Retries, RetryKey};
use crate::ledger::state::shares::Shares;
use crate::ledger::state::spool::{Outgoing, Spool, Waiting};
use crate::signature::Signature;
use bulkmark_filter::ParameterError;
use std::sync::Arc;

/// How many reports of a batch before its turn the cells of a signature are fetched from memory.
const AHEAD: usize = 8;

/// An update as it is kept and handed on.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) origin: Origin,
    pub(crate) version: u64,
    /// When it was made or came, in seconds since 1970.
    pub(crate) at: u64,
    pub(crate) bytes: Arc<[u8]>,
}

/// What changed since the last commit.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) entries: Vec<Entry>,
    pub(crate) receipts: Vec<(Reporter, u64, Receipt)>,
    /// Reporters whose receipts are of no more use.
    pub(crate) forgotten: Vec<Reporter>,
    pub(crate) refused: Vec<(RetryKey, u64)>,
    pub(crate) waiting: Vec<Waiting>,
    /// Numbers of batches that are new or were acknowledged.
    pub(crate) batches: Vec<u64>,
    pub(crate) updates: Vec<Kept>,
    /// Reports or batches left the spool.
    pub(crate) settled: bool,
}

impl Changes {
    pub(crate) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
            && self.receipts.is_empty()
            && self.refused.is_empty()
            && self.waiting.is_empty()
            && self.batches.is_empty()
            && self.updates.is_empty()
            && !self.settled
    }

    /// What waits, by number of rows.
    pub(crate) const fn len(&self) -> usize {
        self.entries.len() + self.waiting.len() + self.updates.len()
    }
}

/// The counts. What is asked is answered from here; `store` keeps it on disk.
pub(crate) struct Book {
    pub(crate) role: Role,
    pub(crate) own: Local,
    pub(crate) others: MergedCounts,
    pub(crate) acknowledged: Receipts,
    pub(crate) spool: Spool,
    /// The spool's random number.
    pub(crate) spool_id: u64,
    pub(crate) retries: Retries,
    pub(crate) influence: Influence,
    /// The number of the next own report.
    pub(crate) next: u64,
    /// The number of the first own report that is in no update.
    pub(crate) cut_at: u64,
    pub(crate) changes: Changes,
    /// Whether the others' counts were taken from a snapshot, and the file still has those before.
    pub(crate) adopted: bool,
    /// Whether the own counts begin anew under another origin, and the file still has the old ones.
    pub(crate) renewed: bool,
    /// Why memory and file can no longer be made to agree.
    pub(crate) broken: Option<String>,
    /// The time that a request told last.
    pub(crate) clock: u64,
    pub(crate) settings: Settings,
}

impl Book {
    /// Never less than the truth.
    pub(crate) fn count(&self, signature: Signature, now: u64) -> u32 {
        let own = self.own.generations.count(signature, now);
        let others = self.others.count(signature, now);
        own.saturating_add(others).saturating_add(self.spool.pending(signature))
    }

    /// Of what the count of `signature` is made up.
    pub(crate) fn shares(&self, signature: Signature, now: u64) -> Shares {
        Shares {
            own: self.own.generations.count_by_window(signature, now),
            others: self.others.count_by_window(signature, now),
            waiting: self.spool.pending(signature),
        }
    }

    /// Adds a message's report, and returns the counts after it: of what it reports, and of what it asks for.
    pub(crate) fn report(&mut self, report: &Report) -> Vec<u32> {
        self.clock = report.now;
        let again = report.keys.iter().filter(|key| self.retries.contains(key, report.now)).count();
        let times = report.times.saturating_sub(u32::try_from(again).unwrap_or(u32::MAX));
        for &signature in report.signatures.iter().filter(|_| times > 0) {
            if self.role == Role::Cache {
                let waiting = Waiting { signature, times, at: report.now };
                self.spool.push(waiting);
                self.changes.waiting.push(waiting);
            } else {
                self.add(signature, times, report.now);
            }
        }
        report.signatures.iter().chain(&report.asked).map(|&s| self.count(s, report.now)).collect()
    }

    fn add(&mut self, signature: Signature, times: u32, now: u64) {
        let window = self.own.generations.window_at(now);
        match self.own.add(window, self.next, signature, times) {
            Ok(()) => {
                self.next += 1;
                self.changes.entries.push(Entry { window, signature, times });
            }
            Err(e) => self.broken = Some(format!("no memory for more signatures: {e}")),
        }
    }

    /// Counts a client's batch, once.
    ///
    /// # Errors
    /// When its number is below that of one that was counted; nothing is counted then.
    pub(crate) fn take_batch(
        &mut self,
        reporter: Reporter,
        number: u64,
        reports: &[(Signature, u32)],
        most: Option<u32>,
        now: u64,
    ) -> Result<Receipt, Backwards> {
        self.clock = now;
        if let Some(receipt) = self.acknowledged.find(&reporter, number)? {
            return Ok(receipt);
        }
        let receipt = Receipt { origin: self.own.origin(), version: self.own.next_version() };
        let window = self.own.generations.window_at(now);
        for (i, &(signature, times)) in reports.iter().enumerate() {
            if let Some(&(soon, _)) = reports.get(i + AHEAD) {
                self.own.generations.prefetch(window, soon);
            }
            let times = match most {
                None => times,
                Some(most) => {
                    let all = || self.own.generations.count_in(window, signature);
                    self.influence.allow(&reporter.client, window, signature, times, most, all)
                }
            };
            if times > 0 {
                self.add(signature, times, now);
            }
        }
        self.changes.forgotten.extend(self.acknowledged.set(reporter.clone(), number, receipt));
        self.changes.receipts.push((reporter, number, receipt));
        if self.own.is_full() {
            self.cut(now);
        }
        Ok(receipt)
    }

    /// Makes an update of what was added since the last one.
    pub(crate) fn cut(&mut self, now: u64) {
        if let Some((update, bytes)) = self.own.cut() {
            self.cut_at = self.next;
            self.keep(&update, bytes.into(), now);
        }
    }

    fn keep(&mut self, update: &Update, bytes: Arc<[u8]>, at: u64) {
        self.changes.updates.push(Kept { origin: update.origin(), version: update.version(), at, bytes });
    }

    /// Applies an update of another origin. `new` is a random name for what needs one.
    pub(crate) fn apply(
        &mut self,
        update: &Update,
        bytes: Arc<[u8]>,
        now: u64,
        new: Origin,
    ) -> Result<Applied, Refusal> {
        self.clock = now;
        let (origin, version) = (update.origin(), update.version());
        if self.role == Role::Server && origin == self.own.origin() {
            let ours = self.own.mark();
            if version <= ours.version {
                return Ok(Applied::Known);
            }
            if version != ours.version + 1 || update.before() != ours.chain {
                return Err(Refusal::Fork { origin, version });
            }
            // Others know what we do not know of ourselves: this ledger was restored from an old copy. Under the old name
            // we would tell another story than the one that they heard.
            self.renew(now, new).map_err(|error| Refusal::Parameter { origin, error })?;
        }
        let applied = self.others.apply(update, &bytes, now)?;
        if applied == Applied::New {
            self.keep(update, bytes, now);
            self.settle();
        }
        Ok(applied)
    }

    /// Goes on under another origin. What was counted so far becomes others' counts, but for what is in no update yet, which
    /// is the first update of the new origin.
    fn renew(&mut self, now: u64, new: Origin) -> Result<(), ParameterError> {
        let (old, mark) = (self.own.origin(), self.own.mark());
        log::error!(
            "this ledger was restored from an old copy: others know more than {} updates of its origin {old}. It goes on as \
             origin {new} and takes over what they know",
            mark.version
        );
        let parts = self.own.generations.take_growth();
        for generation in self.own.generations.iter() {
            self.others.merge_generation(generation)?;
        }
        self.others.vector_mut().set(old, mark);
        let first = self.own.renew(Generations::new(&self.settings), new, parts);
        self.cut_at = self.next;
        if let Some((update, bytes)) = first {
            self.keep(&update, bytes.into(), now);
        }
        self.renewed = true;
        Ok(())
    }

    /// Takes a merged counts that came as a snapshot for the others' counts.
    ///
    /// # Errors
    /// When what this server counted itself is in it: that would count twice.
    pub(crate) fn adopt(&mut self, view: MergedCounts) -> Result<(), Refusal> {
        let origin = self.own.origin();
        if self.role == Role::Server && view.vector().get(origin).version > 0 {
            return Err(Refusal::Own { origin });
        }
        self.others = view;
        self.adopted = true;
        self.settle();
        Ok(())
    }

    pub(crate) fn settle(&mut self) {
        let before = self.spool.first();
        self.spool.settle(self.others.vector());
        self.changes.settled |= self.spool.first() != before;
    }

    /// The batch to send to an upstream server next.
    pub(crate) fn next_batch(&mut self, upstream: &str, new: bool) -> Option<Outgoing> {
        if let Some(open) = self.spool.open(upstream) {
            return Some(open);
        }
        let batch = if new { self.spool.begin(upstream) } else { None }?;
        self.changes.batches.push(batch.number);
        Some(batch)
    }

    /// Lets go of a batch that no server will take.
    pub(crate) fn drop_batch(&mut self, number: u64) {
        self.spool.drop_batch(number);
        self.changes.batches.push(number);
        self.changes.settled = true;
    }

    /// Begins a spool of another number, without what was sent to this server under the old one.
    pub(crate) fn renew_spool(&mut self, id: u64, upstream: &str) {
        self.spool_id = id;
        let sent: Vec<u64> = self
            .spool
            .batches()
            .filter(|batch| batch.upstream == upstream && batch.receipt.is_none())
            .map(|batch| batch.number)
            .collect();
        sent.into_iter().for_each(|number| self.drop_batch(number));
        self.changes.settled = true;
    }

    /// Remembers that a batch was counted.
    pub(crate) fn acknowledge(&mut self, number: u64, receipt: Receipt) {
        if self.spool.acknowledge(number, receipt) {
            self.changes.batches.push(number);
            self.settle();
        }
    }

    /// Drops reports that waited for too long or are too many. Returns how many are lost.
    pub(crate) fn trim_spool(&mut self, now: u64) -> u64 {
        let before = self.spool.first();
        let federation = &self.settings.federation;
        let since = now.saturating_sub(federation.spool_age.as_secs());
        let lost = self.spool.trim(federation.spool_reports, since);
        self.changes.settled |= self.spool.first() != before;
        lost
    }

    /// What is of no more use at the time `now`; it is gone from memory.
    pub(crate) fn take_expired(&mut self, now: u64) -> Expired {
        Expired {
            own: self.own.generations.take_expired(now),
            others: self.others.take_expired(now),
            retries: self.retries.take_expired(now),
            updates_before: Some(now.saturating_sub(self.settings.federation.keep_updates.as_secs())),
        }
    }

    /// Whether others' counts changed since the last checkpoint.
    pub(crate) fn others_grew(&self) -> bool {
        self.others.layers().iter().flat_map(|layer| layer.dirty.iter().flatten()).any(|&dirty| dirty)
    }

    pub(crate) fn remember(&mut self, keys: Vec<RetryKey>, now: u64) {
        for key in keys {
            self.retries.remember(key, now);
            self.changes.refused.push((key, now));
        }
    }

    /// How far each origin is counted here, its own included.
    pub(crate) fn vector(&self) -> Vector {
        let mut vector = self.others.vector().clone();
        if self.role == Role::Server {
            vector.set(self.own.origin(), self.own.mark());
        }
        vector
    }
}
