// SPDX-License-Identifier: GPL-3.0-or-later
//! Local reports on their way to an upstream server: waiting, sent, acknowledged, and at last included in what comes back.

use crate::ledger::history::vector::{Origin, Vector};
use crate::ledger::state::receipts::Receipt;
use crate::signature::Signature;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Reports in one batch at most, from a spool to a server.
pub(crate) const MAX_BATCH: usize = 8192;

/// The receipt of a batch that no server took and none is to take.
const DROPPED: Receipt = Receipt { origin: Origin(0), version: u64::MAX };

/// A report that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) signature: Signature,
    pub(crate) times: u32,
    /// When it was made, in seconds since 1970.
    pub(crate) at: u64,
}

/// Reports that travel together, under one number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) number: u64,
    /// The server that it was first sent to: after a lost answer only that one knows whether it counted.
    pub(crate) upstream: String,
    /// The number of the first report in it, and of that behind it.
    pub(crate) reports: Range<u64>,
    pub(crate) receipt: Option<Receipt>,
    /// Whether the merged counts show it. It is kept only because an older one is not settled.
    pub(crate) included: bool,
}

/// A batch as it is sent: each signature once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number; a batch that is sent again has the same.
    pub number: u64,
    /// Signatures, and how often each was seen.
    pub reports: Vec<(Signature, u32)>,
}

/// All reports that the merged counts do not show yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spool {
    /// Reports `first ..`, those of batches before those that wait.
    reports: VecDeque<Waiting>,
    first: u64,
    batches: VecDeque<Batch>,
    next_batch: u64,
    /// The sum over `reports`, without those in included batches.
    pending: HashMap<Signature, u64>,
}

impl Default for Spool {
    fn default() -> Self {
        Self::restore(VecDeque::new(), 0, VecDeque::new(), 1)
    }
}

impl Spool {
    /// As it was: `reports` from number `first` on, and the batches that they are in.
    pub(crate) fn restore(
        reports: VecDeque<Waiting>,
        first: u64,
        batches: VecDeque<Batch>,
        next_batch: u64,
    ) -> Self {
        let mut pending = HashMap::new();
        for report in &reports {
            *pending.entry(report.signature).or_default() += u64::from(report.times);
        }
        Self { reports, first, batches, next_batch, pending }
    }

    /// As it comes back from disk.
    #[cfg(test)]
    pub(crate) fn reopened(&self) -> Self {
        let batches = self.batches.iter().map(|batch| Batch { included: false, ..batch.clone() }).collect();
        Self::restore(self.reports.clone(), self.first, batches, self.next_batch)
    }

    /// How often `signature` was reported here and is not in the merged counts yet.
    pub(crate) fn pending(&self, signature: Signature) -> u32 {
        self.pending.get(&signature).map_or(0, |&sum| u32::try_from(sum).unwrap_or(u32::MAX))
    }

    /// Reports that are held.
    pub(crate) fn len(&self) -> usize {
        self.reports.len()
    }

    /// When the oldest report that nobody acknowledged was made.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let settled = self.batches.iter().take_while(|batch| batch.receipt.is_some()).last();
        let from = settled.map_or(self.first, |batch| batch.reports.end);
        self.reports.get(usize::try_from(from - self.first).ok()?).map(|report| report.at)
    }

    /// The number of the next report.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.reports.len() as u64
    }

    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn push(&mut self, report: Waiting) {
        self.reports.push_back(report);
        *self.pending.entry(report.signature).or_default() += u64::from(report.times);
    }

    /// A batch that `upstream` has not answered.
    pub(crate) fn open(&self, upstream: &str) -> Option<Outgoing> {
        let mut batches = self.batches.iter();
        let open = batches.find(|b| b.receipt.is_none() && !b.included && b.upstream == upstream);
        open.map(|batch| self.outgoing(batch))
    }

    /// A new batch of reports that wait. It must be written down before it is sent.
    pub(crate) fn begin(&mut self, upstream: &str) -> Option<Outgoing> {
        let start = self.batches.back().map_or(self.first, |batch| batch.reports.end);
        let end = self.end().min(start + MAX_BATCH as u64);
        if start == end {
            return None;
        }
        let batch = Batch {
            number: self.next_batch,
            upstream: upstream.to_owned(),
            reports: start..end,
            receipt: None,
            included: false,
        };
        self.next_batch += 1;
        let outgoing = self.outgoing(&batch);
        self.batches.push_back(batch);
        Some(outgoing)
    }

    /// Lets go of a batch's reports, as if they were in the merged counts.
    pub(crate) fn drop_batch(&mut self, number: u64) {
        self.acknowledge(number, DROPPED);
        self.settle(&Vector::new());
    }

    fn outgoing(&self, batch: &Batch) -> Outgoing {
        let mut sums: HashMap<Signature, u32> = HashMap::new();
        for report in self.reports.range(self.places(&batch.reports)) {
            let sum = sums.entry(report.signature).or_default();
            *sum = sum.saturating_add(report.times);
        }
        let mut reports: Vec<_> = sums.into_iter().collect();
        reports.sort_unstable();
        Outgoing { number: batch.number, reports }
    }

    /// Remembers where a batch was counted. False when there is no such batch any more.
    pub(crate) fn acknowledge(&mut self, number: u64, receipt: Receipt) -> bool {
        let batch = self.batches.iter_mut().find(|batch| batch.number == number);
        batch.map(|batch| batch.receipt = Some(receipt)).is_some()
    }

    /// Lets go of the reports that are in the merged counts of `vector`.
    pub(crate) fn settle(&mut self, vector: &Vector) {
        let shown =
            |receipt: Receipt| receipt == DROPPED || vector.get(receipt.origin).version >= receipt.version;
        let mut batches = std::mem::take(&mut self.batches);
        for batch in batches.iter_mut().filter(|batch| !batch.included && batch.receipt.is_some_and(shown)) {
            batch.included = true;
            self.release(&batch.reports);
        }
        while let Some(batch) = batches.pop_front_if(|batch| batch.included) {
            self.forget(batch.reports.end);
        }
        self.batches = batches;
    }

    /// Drops the oldest reports and the batches that they are in, while there are more than `most` or they were made
    /// before `since`. Returns how many of them no server has acknowledged.
    pub(crate) fn trim(&mut self, most: usize, since: u64) -> u64 {
        let mut lost = 0;
        while self.reports.len() > most || self.reports.front().is_some_and(|report| report.at < since) {
            let end = match self.batches.pop_front() {
                Some(batch) => {
                    if !batch.included {
                        self.release(&batch.reports);
                    }
                    if batch.receipt.is_none() {
                        lost += batch.reports.end - batch.reports.start;
                    }
                    batch.reports.end
                }
                None => {
                    lost += 1;
                    self.release(&(self.first..self.first + 1));
                    self.first + 1
                }
            };
            self.forget(end);
        }
        lost
    }

    /// Takes reports out of the sums.
    fn release(&mut self, numbers: &Range<u64>) {
        for report in self.reports.range(self.places(numbers)) {
            if let Some(sum) = self.pending.get_mut(&report.signature) {
                *sum = sum.saturating_sub(report.times.into());
                if *sum == 0 {
                    self.pending.remove(&report.signature);
                }
            }
        }
    }

    /// Takes the reports below this number out of the queue.
    fn forget(&mut self, end: u64) {
        let gone = self.places(&(self.first..end)).len();
        self.reports.drain(..gone);
        self.first += gone as u64;
    }

    /// Where reports with these numbers are in the queue.
    fn places(&self, numbers: &Range<u64>) -> Range<usize> {
        let place = |number: u64| {
            usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.reports.len())
        };
        place(numbers.start)..place(numbers.end)
    }

    /// The number of the next new batch.
    pub(crate) const fn next_batch(&self) -> u64 {
        self.next_batch
    }

    pub(crate) fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.batches.iter()
    }
}
