// SPDX-License-Identifier: GPL-3.0-or-later
//! A milter whose counts come from upstream servers, and whose reports are sent to them.

use crate::history::refusal::{Refusal, StepRefusal};
use crate::history::spool_batch::SpoolBatch;
use crate::history::step::Step;
use crate::history::update::Update;
use crate::history::vector::Vector;
use crate::history::window::Calendar;
use crate::settings::SPOOL_AGE;
use crate::state::counts::Counts;
use crate::state::fleet::assembly::Assembled;
use crate::state::fleet::fold::check_like;
use crate::state::merged::{Applied, MergedCounts};
use crate::state::receipts::Receipt;
use crate::state::report::Addition;
use crate::state::retries::Retries;
use crate::state::spool::fleet::Sent;
use crate::state::spool::{Dropped, Outgoing, Spool, Trimmed, Waiting};
use std::sync::Arc;

/// The state of a milter with upstream servers. Counts from before it had one stay until their windows are over; otherwise its own counts
/// have only reports that it does not share.
pub struct Cache {
    /// All counts: own reports that are not shared, and the servers' counts.
    pub counts: Counts,
    /// Messages that were refused temporarily.
    pub retries: Retries,
    /// Own reports that the merged counts do not include yet.
    pub spool: Spool,
}

impl Cache {
    /// Puts an addition into the spool, or counts it here if it is not shared.
    pub(crate) fn add(&mut self, Addition { signature, times, shared }: Addition, now: u64) {
        if shared {
            let waiting = Waiting { signature, times, at: now };
            self.spool.push(waiting);
            self.counts.changes.spool.waiting.push(waiting);
        } else {
            self.counts.add(signature, times, now);
        }
    }

    /// Applies an update.
    ///
    /// # Errors
    /// [`Refusal`]; nothing is changed then.
    pub fn apply(&mut self, update: &Update, bytes: Arc<[u8]>, now: u64) -> Result<Applied, Refusal> {
        self.counts.clock = now;
        let applied = self.counts.apply(update, bytes, now)?;
        if applied == Applied::New {
            self.forget_bulk();
        }
        self.settle();
        Ok(applied)
    }

    /// Adopts a snapshot. If the server's history `forked` from the known one, which only that server can know, the snapshot replaces
    /// everything: counts that the server forgot are gone.
    ///
    /// # Errors
    /// See [`Counts::adopt`].
    pub fn adopt(&mut self, snapshot: MergedCounts, forked: bool) -> Result<(), Refusal> {
        let before = self.counts.merged.vector().clone();
        if forked {
            self.counts.replace(snapshot);
        } else {
            self.counts.adopt(snapshot)?;
        }
        // The snapshot has all counts, including those of bulk.
        self.forget_bulk();
        self.settle();
        if forked {
            // The vectors do not show which origin forked. If another one moved, its update comes anyway.
            let now = self.counts.merged.vector().clone();
            self.let_go(|_, receipt| now.get(receipt.origin) != before.get(receipt.origin));
        }
        Ok(())
    }

    pub(crate) fn settle(&mut self) {
        let before = self.spool.first();
        self.spool.settle(self.counts.merged.vector());
        self.counts.changes.spool.settled |= self.spool.first() != before;
    }

    /// Drops those of the `expected` batches of a server that it forgot: the server was at `vector` after it gave their receipts, and a
    /// receipt has at most the next version.
    pub fn drop_forgotten(&mut self, expected: &[u64], vector: &Vector) {
        let is_ahead =
            |receipt: Receipt| receipt.version > vector.get(receipt.origin).version.saturating_add(1);
        self.let_go(|number, receipt| expected.contains(&number) && is_ahead(receipt));
    }

    /// Drops counted batches that their server forgot. It may reach their versions late or never; until then their reports would count
    /// here, and all later ones would wait behind them.
    fn let_go(&mut self, forgot: impl Fn(u64, Receipt) -> bool) {
        let before = self.spool.first();
        let dropped = self.spool.drop_forgotten(forgot);
        self.counts.changes.spool.settled |= self.spool.first() != before;
        self.counts.changes.spool.batches.extend(dropped);
    }

    /// Returns the next batch for an upstream server, and the number of its spool.
    pub fn next_batch(&mut self, upstream: &str, new: bool) -> Option<(u64, Outgoing)> {
        if let Some(open) = self.spool.open(upstream) {
            return Some((self.spool.id_of(open.number), open));
        }
        if let Some(question) = self.spool.question(upstream) {
            return Some((self.spool.ids().0, question));
        }
        let batch = if new { self.spool.begin(upstream) } else { None }?;
        self.counts.changes.spool.batches.insert(batch.number);
        Some((self.spool.id_of(batch.number), batch))
    }

    /// Drops a batch that this server will never accept.
    pub fn drop_batch(&mut self, upstream: &str, number: u64) {
        let user_reports = self.spool.user_reports_of(&[number]);
        if self.spool.drop_batch(upstream, number) {
            self.counts.changes.spool.batches.insert(number);
            self.counts.changes.spool.settled = true;
            self.counts.mark_unknown(&user_reports);
        }
    }

    /// Begins a spool with the number `new` if the present one is `known`, of which this server has later batches. Returns the number of
    /// dropped reports. Returns `None`, without a new spool, if the batch was for a fleet whose counts this server has: it is counted.
    pub fn renew_spool(&mut self, upstream: &str, known: u64, new: u64) -> Option<u64> {
        if let Some(counted) = self.spool.is_counted(upstream) {
            self.counts.changes.spool.batches.insert(counted);
            self.counts.changes.spool.settled = true;
            return None;
        }
        let Dropped { batches, lost, user_reports } = self.spool.renew(upstream, known, new);
        self.counts.changes.spool.batches.extend(batches);
        self.counts.changes.spool.settled = true;
        self.counts.mark_unknown(&user_reports);
        Some(lost)
    }

    /// Records that a server counted a batch.
    pub fn acknowledge(&mut self, upstream: &str, number: u64, receipt: Receipt) {
        let user_reports = self.spool.user_reports_of(&[number]);
        if self.spool.acknowledge(upstream, number, receipt) {
            self.counts.changes.spool.batches.insert(number);
            self.settle();
            self.counts.mark_counted(&user_reports, self.counts.clock);
        }
    }

    /// Applies a step of a fleet's chain, and drops the batches that it includes. `new` is a random number for a new spool.
    ///
    /// # Errors
    /// [`StepRefusal`]; nothing is changed then.
    pub fn apply_step(
        &mut self,
        step: &Step,
        bytes: Arc<[u8]>,
        place: u64,
        now: u64,
        new: u64,
    ) -> Result<Applied, StepRefusal> {
        let applied = self.counts.apply_step(step, bytes, place, now)?;
        if applied == Applied::New {
            if self.counts.settings.federation.serves {
                for (update, bytes) in &step.updates {
                    self.counts.keep(update, bytes.as_slice().into(), now);
                }
            }
            self.apply_marks(new);
        }
        Ok(applied)
    }

    /// Adopts a fleet's snapshot if it is ahead of the known counts, or if the chain `forked`.
    ///
    /// # Errors
    /// If it is of another kind.
    pub fn adopt_fleet(
        &mut self,
        snapshot: Assembled,
        forked: bool,
        new: u64,
    ) -> Result<Applied, StepRefusal> {
        let Assembled { head, merged, held, fleet } = snapshot;
        check_like(head.key_id, head.window, &self.counts.settings)?;
        if !forked && head.mark.version <= self.counts.fleet.mark.version {
            return Ok(Applied::Known);
        }
        self.counts.replace_fleet(merged, held, fleet);
        self.apply_marks(new);
        self.settle();
        Ok(Applied::New)
    }

    /// Drops the reports that are counted according to the fleet's marks.
    fn apply_marks(&mut self, new: u64) {
        let Counts { fleet, settings, changes, .. } = &mut self.counts;
        let Some(client) = &settings.federation.fleet_client else { return };
        let applied = self.spool.apply_marks(client, |spool| fleet.marks.get(client, spool), new);
        if let Some(dropped) = applied.renewed {
            log::warn!(
                "this ledger is an old copy: the fleet counted batches of it that it has yet to send. {dropped} reports that waited in \
                 it are dropped, since they may be counted; those made since are sent"
            );
        }
        changes.spool.settled |= applied.renewed.is_some() || !applied.settled.is_empty();
        changes.spool.batches.extend(applied.settled);
        self.counts.mark_counted(&applied.counted, self.counts.clock);
        self.counts.mark_unknown(&applied.unknown);
    }

    /// Returns the open batches for a fleet's log with numbers above `after`, and then, with `begin`, new ones; `most` in all. With
    /// `bulk_from` they ask for the list of bulk from that count on.
    pub fn for_fleet(&mut self, after: u64, most: usize, begin: bool, bulk_from: u32) -> Vec<SpoolBatch> {
        let federation = &self.counts.settings.federation;
        let Some(client) = &federation.fleet_client else { return Vec::new() };
        let (sent, new) = self.spool.for_fleet(client, after, most, begin);
        self.counts.changes.spool.batches.extend(new);
        let batch = |Sent { spool, lowest, outgoing: Outgoing { number, reports } }| SpoolBatch {
            key_id: federation.key_id,
            spool,
            number,
            lowest,
            bulk_from,
            reports,
        };
        sent.into_iter().map(batch).collect()
    }

    /// Drops reports that waited too long or are too many. User reports stay as long as they count. Returns the number of lost reports.
    pub fn trim_spool(&mut self, now: u64) -> u64 {
        let before = self.spool.first();
        let most = self.counts.settings.max_spool();
        let since = now.saturating_sub(SPOOL_AGE.as_secs());
        let calendar = Calendar::new(&self.counts.settings);
        let keeps = |report: &Waiting| {
            report.signature.is_user_report() && !calendar.is_over(calendar.of_user_reports(report.at), now)
        };
        let Trimmed { lost, batches, renumbered } = self.spool.trim(most, since, keeps);
        let changes = &mut self.counts.changes.spool;
        changes.batches.extend(batches);
        changes.renumbered = changes.renumbered.max(renumbered);
        changes.settled |= self.spool.first() != before;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::vector::{Mark, Origin};
    use crate::settings::Settings;
    use crate::state::spool::SpoolChanges;
    use crate::state::user_reports_tests::{NOW, counts};
    use bulkmark_types::Signature;

    const SERVER: &str = "https://a";

    /// The reports of a batch leave the file when the counts include them, or when the server that counted them forgot them, and nothing is
    /// written before.
    #[test]
    fn reports_leave_the_file_once() {
        let counts = counts(&Settings::default());
        let mut cache = Cache { counts, retries: Retries::default(), spool: Spool::new(1) };
        let receipt = Receipt { origin: Origin(5), version: 2 };
        for is_forgotten in [true, false] {
            cache.add(Addition { signature: Signature::from_bytes([7; 16]), times: 1, shared: true }, NOW);
            let (_, Outgoing { number, .. }) = cache.next_batch(SERVER, true).unwrap();
            cache.acknowledge(SERVER, number, receipt);
            cache.counts.changes.spool = SpoolChanges::default();
            cache.settle();
            cache.drop_forgotten(&[], &Vector::new());
            assert!(cache.counts.changes.spool.is_empty() && cache.spool.held() == 1);
            if is_forgotten {
                cache.drop_forgotten(&[number], &Vector::new());
            } else {
                let mark = Mark { version: receipt.version, ..Mark::default() };
                cache.counts.merged.vector_mut().set(receipt.origin, mark);
                cache.settle();
            }
            assert!(cache.counts.changes.spool.settled && cache.spool.held() == 0);
        }
    }
}
