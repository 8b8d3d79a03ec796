// SPDX-License-Identifier: GPL-3.0-or-later
//! A signature server: its clients' reports, and the history that it makes from them.

use crate::history::refusal::Refusal;
use crate::history::update::{Scope, Update};
use crate::history::vector::{Mark, Origin, Vector};
use crate::history::window::{Calendar, USER_REPORT_WINDOW};
use crate::settings::SPOOL_AGE;
use crate::state::bounds::Bounds;
use crate::state::changes::JournalEntry;
use crate::state::counts::Counts;
use crate::state::generations::Generations;
use crate::state::limited::{ClientUpdate, Limited, Limits, OverQuota};
use crate::state::member::{Member, Reported};
use crate::state::merged::{Applied, MergedCounts};
use crate::state::note_queue::NoteQueue;
use crate::state::peer_check::PeerCheck;
use crate::state::receipts::{Backwards, LastBatch, Receipt, Receipts, Reporter, TooManySpools};
use bulkmark_filter::ParameterError;
use bulkmark_types::Signature;
use std::sync::Arc;

/// The distance in a batch at which the cells of later signatures are prefetched.
const AHEAD: usize = 8;

/// The state of a signature server.
pub struct Server {
    /// The counts of clients without limits, and those of other servers.
    pub counts: Counts,
    /// The number of the first local report that is in no update.
    pub cut_at: u64,
    /// The last batch of each reporter, so that none counts twice.
    pub receipts: Receipts,
    /// The reports of limited clients, each client separately.
    pub limited: Limited,
    /// The queue for the list of bulk.
    pub note_queue: NoteQueue,
    /// The check since the start whether the file is an old copy.
    pub peer_check: PeerCheck,
    /// Whether the local counts have a new origin, and the file still has the old ones.
    pub renewed: bool,
}

/// Changed cells of limited clients after which updates are cut early, so that they take little memory.
const CUT_CELLS: usize = 1 << 18;

/// The reason why a batch is not counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCounted {
    /// Its number is below that of a counted batch.
    #[error(transparent)]
    Backwards(#[from] Backwards),
    /// Its client may report no more new signatures in this window.
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
    /// No spool of its client can be forgotten for this one.
    #[error(transparent)]
    TooManySpools(#[from] TooManySpools),
    /// It is not known yet whether this ledger is an old copy.
    #[error(
        "this server was started and has not heard from all its peers yet; it takes reports within seconds"
    )]
    Waits,
}

impl Server {
    /// The count over all local and others' reports.
    pub fn count(&self, signature: Signature, now: u64) -> u32 {
        self.limited.prefetch(signature);
        let held = self.peer_check.count(Calendar::new(&self.counts.settings), signature, now);
        let counted = self.counts.count(signature, now).saturating_add(self.limited.count(signature, now));
        counted.saturating_add(held)
    }

    /// An upper bound of [`count`](Self::count), with one lookup for all limited clients.
    fn bound(&self, signature: Signature, now: u64) -> u32 {
        let held = self.peer_check.count(Calendar::new(&self.counts.settings), signature, now);
        let counted = self.counts.bound(signature, now).saturating_add(self.limited.bound(signature, now));
        counted.saturating_add(held)
    }

    /// Whether the count of a signature is at least `least`. Most are far below, which the bound shows.
    pub(crate) fn reaches(&self, signature: Signature, least: u32, now: u64) -> bool {
        self.bound(signature, now) >= least && self.count(signature, now) >= least
    }

    /// Counts a client's batch once, within the client's limits if there are any. `new` is a random number for a new origin.
    ///
    /// # Errors
    /// [`NotCounted`]; nothing is counted then.
    pub fn take_batch(
        &mut self,
        reporter: Reporter,
        number: u64,
        reports: &[(Signature, u32)],
        limits: Option<Limits>,
        now: u64,
        new: Origin,
    ) -> Result<Receipt, NotCounted> {
        self.counts.clock = now;
        if let Some(receipt) = self.receipts.find(&reporter, number)? {
            return Ok(receipt);
        }
        if self.peer_check.waits() {
            return Err(NotCounted::Waits);
        }
        if let Some(forgotten) = self.receipts.make_place(&reporter, now, self.longest_wait())? {
            self.counts.changes.receipts.insert(forgotten, None);
        }
        let receipt = match limits {
            None => self.count_batch(reports, now),
            Some(limits) => self.count_limited(&reporter.client, reports, limits, now, new)?,
        };
        let last = LastBatch { number, receipt, at: now };
        self.receipts.set(reporter.clone(), last);
        self.counts.changes.receipts.insert(reporter, Some(last));
        for (i, &(signature, _)) in reports.iter().enumerate() {
            if let Some(&(soon, _)) = reports.get(i + AHEAD) {
                self.limited.prefetch(soon);
            }
            self.queue_if_bulk(signature, now);
        }
        if self.counts.local.is_full() || self.note_queue.is_full() || self.limited.grown_cells() >= CUT_CELLS
        {
            self.cut(now);
        }
        Ok(receipt)
    }

    /// The longest time, in seconds, for which a milter keeps reports without an answer: user reports for as long as they count.
    fn longest_wait(&self) -> u64 {
        let user_reports = self.counts.settings.user_report_retention.as_secs();
        SPOOL_AGE.as_secs().max(user_reports.saturating_add(USER_REPORT_WINDOW))
    }

    /// Counts a batch of a client without limits, in the common counts.
    fn count_batch(&mut self, reports: &[(Signature, u32)], now: u64) -> Receipt {
        let local = &self.counts.local;
        if reports.is_empty() {
            return self.waits_for_nothing();
        }
        let receipt = Receipt { origin: local.origin(), version: local.next_version() };
        for (i, &(signature, times)) in reports.iter().enumerate() {
            if let Some(&(soon, _)) = reports.get(i + AHEAD) {
                let generations = &self.counts.local.generations;
                generations.prefetch(generations.window_of(soon, now), soon);
            }
            self.counts.add(signature, times, now);
        }
        receipt
    }

    /// Counts a batch of a limited client, separate from all others.
    fn count_limited(
        &mut self,
        client: &str,
        reports: &[(Signature, u32)],
        limits: Limits,
        now: u64,
        new: Origin,
    ) -> Result<Receipt, OverQuota> {
        let calendar = Calendar::new(&self.counts.settings);
        for of_user_reports in [false, true] {
            let signatures = reports.iter().map(|&(signature, _)| signature);
            let signatures = signatures.filter(|signature| signature.is_user_report() == of_user_reports);
            let window = if of_user_reports { calendar.of_user_reports(now) } else { calendar.at(now) };
            self.limited.check_quota(client, signatures, window, limits, now)?;
        }
        if self.limited.get(client).is_none() {
            self.counts.changes.clients.insert(client.to_owned());
        }
        let (member, bounds) = self.limited.member(client, new);
        let raised = (&mut *member, bounds);
        let added = add_limited(&mut self.counts, &self.peer_check, raised, reports, limits.influence, now);
        if let Err(e) = added {
            self.counts.broken = Some(format!("no memory for more signatures: {e}"));
        }
        let version = member.mark.version + u64::from(member.has_grown());
        let receipt = Receipt { origin: member.origin, version };
        Ok(if version > 0 { receipt } else { self.waits_for_nothing() })
    }

    /// The receipt of a batch of which nothing is counted: all existing updates include it. The next one may never be made.
    fn waits_for_nothing(&self) -> Receipt {
        let local = &self.counts.local;
        Receipt { origin: local.origin(), version: local.mark().version }
    }

    /// Withdraws all counts of a limited client, here and everywhere; a batch that comes again counts nothing. Returns false if there is no
    /// such client.
    pub fn withdraw(&mut self, client: &str, now: u64) -> bool {
        if self.peer_check.waits() {
            return false;
        }
        let Some((update, bytes)) = self.limited.withdraw(client) else { return false };
        self.counts.changes.clients.insert(client.to_owned());
        let released =
            self.receipts.release(client).into_iter().map(|(reporter, last)| (reporter, Some(last)));
        self.counts.changes.receipts.extend(released);
        // This history is finished, but others still need it.
        self.counts.merged.vector_mut().set(update.origin(), update.mark(&bytes));
        self.counts.keep(&update, bytes.into(), now);
        self.restart_bulk();
        true
    }

    /// Makes updates of the growth since the last ones.
    pub fn cut(&mut self, now: u64) {
        if let Some((update, bytes)) = self.counts.local.cut() {
            self.counts.keep(&update, bytes.into(), now);
            self.note_queue.has_moved = true;
        }
        self.cut_limited(now);
        if !self.peer_check.waits() {
            // Otherwise the journal has the held reports, which must be in no update at the next start.
            self.cut_at = self.counts.next;
        }
        self.cut_bulk(now);
    }

    /// The version up to which each origin is counted here, including own ones.
    pub fn vector(&self) -> Vector {
        let mut vector = self.counts.merged.vector().clone();
        vector.set(self.counts.local.origin(), self.counts.local.mark());
        for (_, member) in self.limited.iter() {
            vector.set(member.origin, member.mark);
        }
        vector
    }

    fn cut_limited(&mut self, now: u64) {
        for ClientUpdate { client, update, bytes } in self.limited.cut() {
            self.counts.changes.clients.insert(client);
            self.counts.keep(&update, bytes.into(), now);
            self.note_queue.has_moved = true;
        }
    }

    /// The mark of an origin that only this server writes; `None` for others.
    pub fn own_mark(&self, origin: Origin) -> Option<Mark> {
        if origin == self.counts.local.origin() {
            return Some(self.counts.local.mark());
        }
        self.limited.of_origin(origin).map(|member| member.mark)
    }

    /// Applies an update of another origin. `new` is a random number for a new origin.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn apply(
        &mut self,
        update: &Update,
        bytes: Arc<[u8]>,
        now: u64,
        new: Origin,
    ) -> Result<Applied, Refusal> {
        self.counts.clock = now;
        let (origin, version) = (update.origin(), update.version());
        if let Some(ours) = self.own_mark(origin) {
            if version <= ours.version {
                return Ok(Applied::Known);
            }
            if version != ours.version + 1 || update.before() != ours.chain {
                return Err(Refusal::Fork { origin, version });
            }
            // Others know more of our own history: this ledger was restored from an old copy. Under the old origin we would continue a
            // different history than theirs.
            self.log_restored(origin);
            let mut known = Vector::new();
            known.set(origin, Mark { version, ..Mark::default() });
            self.peer_check.receive("", &known);
            self.peer_check.stop_waiting();
            if let Err(error) = self.renew(now, new) {
                self.counts.broken = Some(format!("a new origin could not begin: {error}"));
                return Err(Refusal::Parameter { origin, error });
            }
        }
        let applied = self.counts.apply(update, bytes, now)?;
        self.note_queue.has_moved |= applied == Applied::New;
        if applied == Applied::New && update.scope == Scope::Withdrawn {
            self.restart_bulk();
        }
        Ok(applied)
    }

    pub(crate) fn log_restored(&self, known: Origin) {
        log::error!(
            "this ledger was restored from an old copy: others know more than {} updates of its origin {known}. It goes on \
             under a new origin and takes over what they know",
            self.own_mark(known).unwrap_or_default().version
        );
    }

    /// Continues under new origins. The previous counts become others' counts, except for growth that is in no update yet: that is the
    /// first update of the new origins.
    pub fn renew(&mut self, now: u64, new: Origin) -> Result<(), ParameterError> {
        let Counts { local, merged, settings, .. } = &mut self.counts;
        let (old, mark) = (local.origin(), local.mark());
        let parts = local.generations.take_growth();
        for generation in local.generations.iter() {
            merged.merge_generation(generation)?;
        }
        if mark.version > 0 {
            merged.vector_mut().set(old, mark);
        }
        let first = local.renew(Generations::new(settings), new, parts);
        self.cut_at = self.counts.next;
        if let Some((update, bytes)) = first {
            self.counts.keep(&update, bytes.into(), now);
        }
        self.renewed = true;
        // Notes after that copy have numbers that would be used again.
        self.restart_bulk();
        self.renew_limited(now, new)
    }

    /// Likewise for the limited clients.
    fn renew_limited(&mut self, now: u64, new: Origin) -> Result<(), ParameterError> {
        // The new origins are random because `new` is.
        let mut next = new.0;
        let names = || {
            next = next.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            Origin(next)
        };
        for (client, member) in self.limited.renew(names) {
            let (origin, mark) = (member.origin, member.mark);
            let (layer, since) = member.into_published()?;
            let merged = &mut self.counts.merged;
            merged.layers_mut().insert(origin, layer)?;
            merged.vector_mut().set(origin, mark);
            let (member, bounds) = self.limited.member(&client, Origin(0));
            for Reported { window, signature, times } in since {
                member.add(bounds, window, signature, times, true)?;
            }
        }
        self.cut_limited(now);
        Ok(())
    }

    /// Adopts a snapshot of others' counts.
    ///
    /// # Errors
    /// If it has counts of this server itself, which would count twice; otherwise see [`Counts::adopt`].
    pub fn adopt(&mut self, snapshot: MergedCounts) -> Result<(), Refusal> {
        self.may_adopt(snapshot.vector())?;
        self.note_queue.has_moved = true;
        self.counts.adopt(snapshot)
    }
}

/// Adds the reports that are within the limits of a client.
fn add_limited(
    counts: &mut Counts,
    peer_check: &PeerCheck,
    (member, bounds): (&mut Member, &mut Bounds),
    reports: &[(Signature, u32)],
    most: u32,
    now: u64,
) -> Result<(), ParameterError> {
    let calendar = Calendar::new(&counts.settings);
    for &(signature, times) in reports {
        let window = calendar.of(signature, now);
        let layers = counts.merged.layers();
        let elsewhere = |cell| {
            let former = member.former.iter().filter_map(|&origin| layers.get(origin));
            let held =
                member.former.iter().fold(0, |sum: u32, &of| sum.saturating_add(peer_check.cell(of, cell)));
            former.fold(held, |sum: u32, layer| sum.saturating_add(layer.sum(calendar, window, cell, now)))
        };
        let times = member.allowed(calendar, window, (signature, times), most, now, elsewhere)?;
        if times > 0 {
            member.add(bounds, window, signature, times, true)?;
            counts.journal(JournalEntry { window, signature, times, client: Some(member.origin) });
        }
    }
    Ok(())
}
