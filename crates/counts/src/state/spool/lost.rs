// SPDX-License-Identifier: GPL-3.0-or-later
//! Dropping batches of which it will never be known whether they were counted.

use super::{DROPPED, Spool, Waiting};
use crate::history::vector::Vector;
use crate::state::inherited::{Inherited, LastSent};
use crate::state::receipts::Receipt;
use std::ops::Range;

/// Dropped batches of which it is unknown whether they were counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Their numbers.
    pub batches: Vec<u64>,
    /// Reports in them.
    pub lost: u64,
    /// The user reports among them.
    pub user_reports: Vec<Waiting>,
}

impl Spool {
    /// Drops the reports of a batch of this server, as if they were in the merged counts. Returns false if there is no such batch.
    pub fn drop_batch(&mut self, upstream: &str, number: u64) -> bool {
        let dropped = self.mark(upstream, number, DROPPED);
        self.settle(&Vector::new());
        dropped
    }

    /// The numbers of the batches that this server counted and whose update is still missing. Usually there are none, or few.
    pub fn expected(&self, upstream: &str) -> Vec<u64> {
        let counted = self
            .batches
            .iter()
            .filter(|batch| batch.receipt.is_some() && !batch.included && batch.upstream == upstream);
        counted.map(|batch| batch.number).collect()
    }

    /// Drops counted batches whose update is still missing and which their server forgot, according to `forgot`. Returns their numbers.
    pub fn drop_forgotten(&mut self, forgot: impl Fn(u64, Receipt) -> bool) -> Vec<u64> {
        let mut dropped = Vec::new();
        for batch in self.batches.iter_mut().filter(|batch| !batch.included) {
            if batch.receipt.is_some_and(|receipt| forgot(batch.number, receipt)) {
                batch.receipt = Some(DROPPED);
                dropped.push(batch.number);
            }
        }
        self.settle(&Vector::new());
        dropped
    }

    /// Continues as the spool `new` if this one is `known`: a server knows a later batch of it, so the file was an old copy. Reports from
    /// before the start may have been counted, and are dropped. Later ones were only sent to servers without later batches; they are kept.
    /// Returns the dropped batches.
    pub fn renew(&mut self, upstream: &str, known: u64, new: u64) -> Dropped {
        let until = match self.before {
            _ if known == self.id => {
                let until = self.before.map_or(0, |(_, until)| until);
                self.before = Some((self.id, self.next_batch));
                self.id = new;
                self.last_sent = LastSent::default();
                until
            }
            // Several servers noticed it. This one will not accept batches that were sent to it since the start.
            Some((before, until)) if known == before => {
                let open = self.batches.iter().filter(|b| b.receipt.is_none() && b.upstream == upstream);
                let dropped = open.filter(|b| b.number < until).map(|b| b.number).collect();
                return self.drop_all(dropped);
            }
            _ => return Dropped::default(),
        };
        let waiting = self.gaps().into_iter().filter(|gap| self.inherited.has(gap.start));
        let mut dropped: Vec<u64> =
            waiting.collect::<Vec<_>>().into_iter().map(|gap| self.put("", gap).number).collect();
        let open = self.batches.iter().filter(|batch| batch.receipt.is_none());
        let doubtful = open.filter(|batch| self.inherited.has(batch.reports.start) || batch.number < until);
        dropped.extend(doubtful.map(|batch| batch.number));
        self.inherited = Inherited::default();
        self.drop_all(dropped)
    }

    pub(super) fn drop_all(&mut self, mut batches: Vec<u64>) -> Dropped {
        batches.sort_unstable();
        batches.dedup();
        let user_reports = self.user_reports_of(&batches);
        let mut lost = 0;
        for batch in self.batches.iter_mut().filter(|batch| batches.contains(&batch.number)) {
            batch.receipt = Some(DROPPED);
            lost += batch.reports.end - batch.reports.start;
        }
        self.settle(&Vector::new());
        Dropped { batches, lost, user_reports }
    }

    /// The user reports in these batches that have no receipt.
    pub fn user_reports_of(&self, batches: &[u64]) -> Vec<Waiting> {
        let open = self.batches.iter().filter(|b| b.receipt.is_none() && batches.contains(&b.number));
        open.flat_map(|batch| self.user_reports_in(&batch.reports)).collect()
    }

    /// The user reports among these reports.
    pub(super) fn user_reports_in(&self, numbers: &Range<u64>) -> impl Iterator<Item = Waiting> {
        let reports = self.reports.range(self.places(numbers));
        reports.filter(|report| report.signature.is_user_report()).copied()
    }
}
