// SPDX-License-Identifier: GPL-3.0-or-later
//! What is let go of although nobody will ever say whether it was counted.

use super::{DROPPED, Spool, Waiting};
use crate::history::vector::Vector;
use crate::state::inherited::{Inherited, LastSent};
use crate::state::receipts::Receipt;
use std::ops::Range;

/// What was let go of although it is not known whether it was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// By number.
    pub batches: Vec<u64>,
    /// Reports in them.
    pub lost: u64,
    /// Those of user reports.
    pub words: Vec<Waiting>,
}

impl Spool {
    /// Lets go of the reports of a batch of this server, as if they were in the merged counts. False when it has none.
    pub fn drop_batch(&mut self, upstream: &str, number: u64) -> bool {
        let dropped = self.mark(upstream, number, DROPPED);
        self.settle(&Vector::new());
        dropped
    }

    /// The batches that this server counted and whose update is yet to come, by number. Usually there are none, or few.
    pub fn expected(&self, upstream: &str) -> Vec<u64> {
        let counted = self
            .batches
            .iter()
            .filter(|batch| batch.receipt.is_some() && !batch.included && batch.upstream == upstream);
        counted.map(|batch| batch.number).collect()
    }

    /// Lets go of counted batches whose update is yet to come and which their server forgot, as `forgot` says by their numbers and receipts.
    /// Returns the numbers.
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

    /// Goes on as the spool `new`, if `known` is this one: a server knows a later batch of it, so the file was an old copy.
    /// What was there at the start may have been counted, and is dropped. What was made since was sent to nobody but those
    /// who knew no more; it goes on. Returns what was dropped.
    pub fn renew(&mut self, upstream: &str, known: u64, new: u64) -> Dropped {
        let until = match self.before {
            _ if known == self.id => {
                let until = self.before.map_or(0, |(_, until)| until);
                self.before = Some((self.id, self.next_batch));
                self.id = new;
                self.last_sent = LastSent::default();
                until
            }
            // More than one server noticed. What was sent to this one since the start, if anything, it will not take.
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
        let words = self.words_of(&batches);
        let mut lost = 0;
        for batch in self.batches.iter_mut().filter(|batch| batches.contains(&batch.number)) {
            batch.receipt = Some(DROPPED);
            lost += batch.reports.end - batch.reports.start;
        }
        self.settle(&Vector::new());
        Dropped { batches, lost, words }
    }

    /// User reports in these batches, if they have no answer.
    pub fn words_of(&self, batches: &[u64]) -> Vec<Waiting> {
        let open = self.batches.iter().filter(|b| b.receipt.is_none() && batches.contains(&b.number));
        open.flat_map(|batch| self.words(&batch.reports)).collect()
    }

    /// User reports in these reports.
    pub(super) fn words(&self, numbers: &Range<u64>) -> impl Iterator<Item = Waiting> {
        let reports = self.reports.range(self.places(numbers));
        reports.filter(|report| report.signature.is_user_report()).copied()
    }
}
