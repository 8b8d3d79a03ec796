// SPDX-License-Identifier: GPL-3.0-or-later
//! Dropping uncounted mail from a spool that has waited too long, or is too much. User reports stay as long as they count, under the number
//! under which they were sent: so any server that may have them can still answer whether it counted them.

use super::{Batch, Spool, Waiting};
use std::collections::VecDeque;
use std::ops::Range;

/// Kept reports are rewritten each time, so a trim must drop at least one for so many of them.
const WORTH_WRITING: usize = 8;

/// The result of a trim.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Dropped reports that no server has acknowledged.
    pub lost: u64,
    /// Batches that have fewer reports than before.
    pub batches: Vec<u64>,
    /// Reports below this number have other numbers than before; `None` if there are none.
    pub renumbered: Option<u64>,
}

/// Reports at the front: those of a batch, or in no batch.
struct Stretch {
    reports: Range<u64>,
    is_batch: bool,
}

impl Spool {
    /// Drops the oldest reports as long as there are more than `most` or they are from before `since`, except those that `keeps` selects. A
    /// batch is trimmed as a whole. Kept reports move up to the following ones.
    pub fn trim(&mut self, most: usize, since: u64, keeps: impl Fn(&Waiting) -> bool) -> Trimmed {
        let (parts, end, kept) = self.oldest_parts(most, since, &keeps);
        let dropped = self.places(&(self.first..end)).len() - kept;
        if dropped == 0 || dropped < kept / WORTH_WRITING {
            return Trimmed::default();
        }
        let mut trimmed = Trimmed { renumbered: (kept > 0).then_some(end), ..Trimmed::default() };
        let first = end - kept as u64;
        let (mut stays, mut batches) = (VecDeque::with_capacity(kept), VecDeque::new());
        let mut inherited = self.inherited.end();
        for Stretch { reports, is_batch } in parts {
            let batch = if is_batch { self.batches.pop_front() } else { None };
            let is_counted = batch.as_ref().is_some_and(|batch| batch.included);
            let start = first + stays.len() as u64;
            for number in reports.clone() {
                if number == self.inherited.end() {
                    inherited = first + stays.len() as u64;
                }
                let place = self.places(&(number..number + 1));
                let Some(&report) = self.reports.range(place).next() else { continue };
                if !is_counted && keeps(&report) {
                    stays.push_back(report);
                } else if !is_counted {
                    self.take_out(report);
                }
            }
            let left = start..first + stays.len() as u64;
            let gone = (reports.end - reports.start) - (left.end - left.start);
            if batch.as_ref().is_none_or(|batch| batch.receipt.is_none()) {
                trimmed.lost += gone;
            }
            if let Some(batch) = batch.filter(|_| !left.is_empty()) {
                trimmed.batches.push(batch.number);
                batches.push_back(Batch { reports: left, ..batch });
            }
        }
        self.reports.drain(..self.places(&(self.first..end)).len());
        stays.into_iter().rev().for_each(|report| self.reports.push_front(report));
        batches.into_iter().rev().for_each(|batch| self.batches.push_front(batch));
        self.first = first;
        self.inherited.move_end(inherited);
        trimmed
    }

    /// The parts that are too old or too many, from the first on; the number after them; and the number of their reports that are kept.
    fn oldest_parts(
        &self,
        most: usize,
        since: u64,
        keeps: impl Fn(&Waiting) -> bool,
    ) -> (Vec<Stretch>, u64, usize) {
        let (mut parts, mut at, mut kept): (Vec<Stretch>, u64, usize) = (Vec::new(), self.first, 0);
        let mut batches = self.batches.iter().peekable();
        loop {
            let passed = self.places(&(self.first..at)).len();
            let Some(next) = self.reports.get(passed) else { break };
            if self.reports.len() - (passed - kept) <= most && next.at >= since {
                break;
            }
            let batch = batches.next_if(|batch| batch.reports.start <= at);
            let reports = at..batch.map_or(at + 1, |batch| batch.reports.end.max(at));
            if batch.is_none_or(|batch| !batch.included) {
                kept += self.reports.range(self.places(&reports)).filter(|report| keeps(report)).count();
            }
            at = reports.end;
            match parts.last_mut().filter(|part| !part.is_batch && batch.is_none()) {
                Some(part) => part.reports.end = at,
                None => parts.push(Stretch { reports, is_batch: batch.is_some() }),
            }
        }
        (parts, at, kept)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::reopened;
    use super::super::{Dropped, MAX_BATCH};
    use super::*;
    use crate::history::vector::{Origin, Vector};
    use crate::state::receipts::Receipt;
    use bulkmark_types::{FederationKey, Signature, nomination};

    fn mail(n: u8) -> Signature {
        Signature::from_bytes([n; 16])
    }

    fn user_report(n: u8) -> Signature {
        nomination(&FederationKey::public(), mail(n))
    }

    fn push(spool: &mut Spool, signatures: &[Signature], at: u64) {
        signatures.iter().for_each(|&signature| spool.push(Waiting { signature, times: 3, at }));
    }

    fn trim(spool: &mut Spool, most: usize, since: u64) -> Trimmed {
        spool.trim(most, since, |report| report.signature.is_user_report())
    }

    fn all(spool: &Spool) -> Vec<Signature> {
        spool.reports.iter().map(|report| report.signature).collect()
    }

    /// In an unanswered batch and in none, mail is dropped and user reports stay, those of the batch under its number.
    #[test]
    fn user_reports_stay() {
        let mut spool = Spool::new(1);
        push(&mut spool, &[mail(1), user_report(2), mail(3), user_report(4)], 10);
        assert_eq!(spool.begin("a").map(|batch| batch.reports.len()), Some(4));
        push(&mut spool, &[mail(5), user_report(6), mail(7)], 20);
        push(&mut spool, &[mail(8)], 30);
        assert_eq!(trim(&mut spool, 100, 10), Trimmed::default());
        assert_eq!(trim(&mut spool, 100, 11), Trimmed { lost: 2, batches: vec![1], renumbered: Some(4) });
        assert_eq!(trim(&mut spool, 100, 21), Trimmed { lost: 2, batches: vec![1], renumbered: Some(7) });
        assert_eq!(all(&spool), [user_report(2), user_report(4), user_report(6), mail(8)]);
        assert_eq!(trim(&mut spool, 100, 21), Trimmed::default(), "nothing more goes");
        for (signature, pending) in
            [(mail(1), 0), (user_report(2), 3), (user_report(6), 3), (mail(7), 0), (mail(8), 3)]
        {
            assert_eq!(spool.pending(signature), pending);
        }
        let mut spool = reopened(&spool, &[]);
        let open = spool.open("a").unwrap();
        let mut batch = vec![(user_report(2), 3), (user_report(4), 3)];
        batch.sort_unstable();
        assert_eq!((open.number, open.reports), (1, batch));
        // Likewise beyond the bound of waiting reports.
        assert_eq!(trim(&mut spool, 2, 0).lost, 1);
        assert_eq!(all(&spool), [user_report(2), user_report(4), user_report(6)]);
        let receipt = Receipt { origin: Origin(1), version: 1 };
        assert!(spool.acknowledge("a", 1, receipt));
        let mut vector = Vector::new();
        vector.set(Origin(1), crate::history::vector::Mark { version: 1, ..Default::default() });
        spool.settle(&vector);
        assert_eq!(all(&spool), [user_report(6)]);
    }

    /// Reports from before the start stay separate from later ones when they move.
    #[test]
    fn reports_from_before_the_start_wait_for_all_servers() {
        let mut spool = Spool::new(1);
        push(&mut spool, &[mail(1), user_report(2), mail(3)], 10);
        let mut spool = reopened(&spool, &["a".to_owned(), "b".to_owned()]);
        push(&mut spool, &[mail(4), user_report(5)], 10);
        assert_eq!(trim(&mut spool, 100, 11).lost, 3);
        spool.acknowledge("a", 0, Receipt { origin: Origin(1), version: 1 });
        assert_eq!(spool.begin("a").map(|batch| batch.reports), Some(vec![(user_report(5), 3)]));
        assert_eq!(spool.begin("a"), None);
        let Dropped { lost, user_reports, .. } = spool.renew("b", 1, 2);
        assert_eq!(user_reports, [Waiting { signature: user_report(2), times: 3, at: 10 }]);
        assert_eq!((lost, spool.pending(user_report(2)), spool.pending(user_report(5))), (1, 0, 3));
    }

    /// Batches that the counts include are dropped; later reports do not move.
    #[test]
    fn batches_that_are_counted_go() {
        let mut spool = Spool::new(1);
        for (n, upstream) in [(1, "a"), (2, "b"), (3, "c")] {
            push(&mut spool, &[user_report(n), mail(n)], n.into());
            spool.begin(upstream).unwrap();
        }
        push(&mut spool, &[mail(4)], 4);
        spool.acknowledge("b", 2, Receipt { origin: Origin(0), version: 0 });
        spool.settle(&Vector::new());
        assert_eq!(trim(&mut spool, 100, 4), Trimmed { lost: 2, batches: vec![1, 3], renumbered: Some(6) });
        assert_eq!(all(&spool), [user_report(1), user_report(3), mail(4)]);
        assert_eq!([2, 3].map(|n| spool.pending(user_report(n))), [0, 3]);
        assert_eq!(spool.open("c").map(|batch| batch.reports), Some(vec![(user_report(3), 3)]));
    }

    /// Kept reports are not rewritten for each dropped one.
    #[test]
    fn little_is_not_worth_writing_much() {
        let mut spool = Spool::new(1);
        push(&mut spool, &vec![user_report(1); 10 * WORTH_WRITING], 1);
        push(&mut spool, &[mail(2); 9], 2);
        assert_eq!(trim(&mut spool, MAX_BATCH, 3), Trimmed::default());
        push(&mut spool, &[mail(2)], 2);
        assert_eq!(trim(&mut spool, MAX_BATCH, 3).lost, 10);
    }
}
