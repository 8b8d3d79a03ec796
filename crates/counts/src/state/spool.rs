// SPDX-License-Identifier: GPL-3.0-or-later
//! Local reports on their way to an upstream server: waiting, sent, acknowledged, and at last included in the merged counts.

use crate::history::vector::{Origin, Vector};
use crate::state::inherited::{Inherited, LastSent};
use crate::state::receipts::Receipt;
use bulkmark_types::Signature;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;

mod changes;
pub mod fleet;
mod lost;
mod trim;

pub use changes::SpoolChanges;
pub use lost::Dropped;
pub use trim::Trimmed;

/// The most reports in one batch from a spool to a server.
pub const MAX_BATCH: usize = 8192;

/// The receipt of a batch that no server will count, or of which a server counts nothing.
const DROPPED: Receipt = Receipt { origin: Origin(0), version: u64::MAX };

/// A report in the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The reported signature.
    pub signature: Signature,
    /// The number of times that it was seen.
    pub times: u32,
    /// The time of the report, in seconds since 1970.
    pub at: u64,
}

/// Reports that are sent together, under one number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Its number in its spool.
    pub number: u64,
    /// The server that it was first sent to: after a lost answer only that server knows whether it is counted.
    pub upstream: String,
    /// The numbers of its reports.
    pub reports: Range<u64>,
    /// Its receipt; `None` while it is open.
    pub receipt: Option<Receipt>,
    /// Whether the merged counts include it. It is kept only because an older one is not settled.
    pub included: bool,
}

/// A batch as it is sent: each signature once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number; a repeated batch has the same.
    pub number: u64,
    /// Signatures, each with the number of times that it was seen.
    pub reports: Vec<(Signature, u32)>,
}

/// All reports that the merged counts do not include yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spool {
    /// A random number that identifies it to servers.
    id: u64,
    /// The previous number, and the number of the first batch under the present one.
    before: Option<(u64, u64)>,
    /// Reports `first ..`.
    reports: VecDeque<Waiting>,
    first: u64,
    /// In the order of their reports. Reports in no batch wait.
    batches: VecDeque<Batch>,
    next_batch: u64,
    last_sent: LastSent,
    /// The sum over `reports`, without those in included batches.
    pending: HashMap<Signature, u64>,
    inherited: Inherited,
    /// Open batches for a fleet's log; a server that has the fleet's counts decides about them.
    moved: BTreeSet<u64>,
}

/// The content of a spool in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// The spool's random number.
    pub id: u64,
    /// The previous number, and the number of the first batch under the present one.
    pub before: Option<(u64, u64)>,
    /// Its reports, in the order of their numbers.
    pub reports: VecDeque<Waiting>,
    /// The number of the first report.
    pub first: u64,
    /// Its batches, in any order.
    pub batches: Vec<Batch>,
    /// The number of the next new batch.
    pub next_batch: u64,
    /// `None` in files of older programs.
    pub last_sent: Option<LastSent>,
}

/// The number of a batch's spool: the present one, or the previous one for earlier batches.
const fn id_of(id: u64, before: Option<(u64, u64)>, batch: u64) -> u64 {
    match before {
        Some((before, until)) if batch < until => before,
        _ => id,
    }
}

impl Spool {
    /// An empty spool with this random number.
    pub fn new(id: u64) -> Self {
        Self::of(Stored { id, next_batch: 1, ..Stored::default() }, Inherited::default())
    }

    /// Restores a spool from its file. Before it sends anything, `upstreams` must be asked for their last batches.
    pub fn restore(mut stored: Stored, upstreams: &[String]) -> Self {
        let moved = upstreams.first().map(|upstream| stored.readdress(upstream));
        let end = stored.first + stored.reports.len() as u64;
        let before = LastSent { others: stored.next_batch.saturating_sub(1), ..LastSent::default() };
        let last_sent = stored.last_sent.clone().unwrap_or(before);
        let inherited = Inherited::new(end, last_sent.clone(), upstreams);
        let spool = Self::of(Stored { last_sent: Some(last_sent), ..stored }, inherited);
        Self { moved: moved.unwrap_or_default(), ..spool }
    }

    fn of(stored: Stored, inherited: Inherited) -> Self {
        let Stored { id, before, reports, first, mut batches, next_batch, last_sent } = stored;
        let mut pending = HashMap::new();
        for report in &reports {
            *pending.entry(report.signature).or_default() += u64::from(report.times);
        }
        batches.sort_by_key(|batch| (batch.reports.start, batch.number));
        let last_sent = last_sent.unwrap_or_default();
        let (batches, moved) = (batches.into(), BTreeSet::new());
        Self { id, before, reports, first, batches, next_batch, last_sent, pending, inherited, moved }
    }

    /// Its random number, and the previous one with the number of the first batch under the present one.
    pub const fn ids(&self) -> (u64, Option<(u64, u64)>) {
        (self.id, self.before)
    }

    /// The last batches that were begun under its present number.
    pub const fn last_sent(&self) -> &LastSent {
        &self.last_sent
    }

    /// The number of the spool under which a batch was first sent.
    pub fn id_of(&self, batch: u64) -> u64 {
        id_of(self.id, self.before, batch)
    }

    /// The number of local reports of `signature` that are not in the merged counts yet.
    pub fn pending(&self, signature: Signature) -> u32 {
        self.pending.get(&signature).map_or(0, |&sum| u32::try_from(sum).unwrap_or(u32::MAX))
    }

    /// The number of held reports.
    pub fn held(&self) -> usize {
        self.reports.len()
    }

    /// The number of unacknowledged reports.
    pub fn unsent(&self) -> u64 {
        let taken = self.batches.iter().filter(|batch| batch.receipt.is_some());
        let taken: u64 = taken.map(|batch| self.places(&batch.reports).len() as u64).sum();
        (self.reports.len() as u64).saturating_sub(taken)
    }

    /// The time of the oldest unacknowledged report.
    pub fn oldest(&self) -> Option<u64> {
        let waiting = self.gaps().first().map(|gap| gap.start);
        let open = self.batches.iter().find(|batch| batch.receipt.is_none()).map(|batch| batch.reports.start);
        let oldest = waiting.into_iter().chain(open).min()?;
        self.reports.get(self.places(&(oldest..oldest + 1)).start).map(|report| report.at)
    }

    /// The ranges of reports that are in no batch; those from before the start are separate from later ones.
    fn gaps(&self) -> Vec<Range<u64>> {
        let (mut gaps, mut from) = (Vec::new(), self.first);
        let behind = self.end()..self.end();
        for taken in self.batches.iter().map(|batch| &batch.reports).chain([&behind]) {
            let start = self.inherited.end().clamp(from, taken.start.max(from));
            gaps.extend([from..start, start..taken.start].into_iter().filter(|gap| gap.start < gap.end));
            from = from.max(taken.end);
        }
        gaps
    }

    /// The number of the next report.
    pub fn end(&self) -> u64 {
        self.first + self.reports.len() as u64
    }

    /// The number of the oldest report.
    pub const fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn push(&mut self, report: Waiting) {
        self.reports.push_back(report);
        *self.pending.entry(report.signature).or_default() += u64::from(report.times);
    }

    /// The oldest batch that `upstream` has not answered.
    pub fn open(&self, upstream: &str) -> Option<Outgoing> {
        let open = self.batches.iter().filter(|batch| batch.receipt.is_none() && batch.upstream == upstream);
        open.min_by_key(|batch| batch.number).map(|batch| self.outgoing(batch))
    }

    /// An empty batch that asks this server whether it knows a later batch of this spool.
    pub fn question(&self, upstream: &str) -> Option<Outgoing> {
        self.inherited.question(upstream).map(|number| Outgoing { number, reports: Vec::new() })
    }

    /// Begins a batch of waiting reports. It must be on disk before it is sent.
    pub fn begin(&mut self, upstream: &str) -> Option<Outgoing> {
        let may = |gap: &Range<u64>| !self.inherited.has(gap.start) || self.inherited.all_agreed();
        let gap = self.gaps().into_iter().find(may)?;
        let reports = gap.start..gap.end.min(gap.start + MAX_BATCH as u64);
        let batch = self.put(upstream, reports);
        Some(self.outgoing(&batch))
    }

    /// Puts waiting reports into a new batch.
    fn put(&mut self, upstream: &str, reports: Range<u64>) -> Batch {
        let number = self.next_batch;
        self.next_batch += 1;
        if !upstream.is_empty() {
            self.last_sent.to.insert(upstream.to_owned(), number);
        }
        let batch = Batch { number, upstream: upstream.to_owned(), reports, receipt: None, included: false };
        let at = self.batches.partition_point(|other| other.reports.start < batch.reports.start);
        self.batches.insert(at, batch.clone());
        batch
    }

    /// Drops the batch that this server refused if it was for a fleet's log. The refusal means that a later batch of the fleet is counted,
    /// and so is this one.
    pub fn is_counted(&mut self, upstream: &str) -> Option<u64> {
        let number = self.open(upstream)?.number;
        self.moved.remove(&number).then_some(number).filter(|&number| self.drop_batch(upstream, number))
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

    /// Records the receipt of a batch of this server, or that the server knows no later one. Returns false if there is no such batch.
    pub fn acknowledge(&mut self, upstream: &str, number: u64, receipt: Receipt) -> bool {
        // In the file, version 0 means that there is no receipt.
        let receipt = if receipt.version == 0 { DROPPED } else { receipt };
        let found = self.mark(upstream, number, receipt);
        let of_this = found && self.id_of(number) == self.id;
        if of_this || self.inherited.question(upstream) == Some(number) {
            self.inherited.agree(upstream);
        }
        found
    }

    fn mark(&mut self, upstream: &str, number: u64, receipt: Receipt) -> bool {
        // A question has the number of a batch, which may have its receipt already.
        let mut open = self.batches.iter_mut().filter(|batch| batch.receipt.is_none());
        let batch = open.find(|batch| batch.number == number && batch.upstream == upstream);
        batch.map(|batch| batch.receipt = Some(receipt)).is_some()
    }

    /// Drops the reports that are included in the merged counts of `vector`.
    pub fn settle(&mut self, vector: &Vector) {
        let shown =
            |receipt: Receipt| receipt == DROPPED || vector.get(receipt.origin).version >= receipt.version;
        let mut batches = std::mem::take(&mut self.batches);
        for batch in batches.iter_mut().filter(|batch| !batch.included && batch.receipt.is_some_and(shown)) {
            batch.included = true;
            self.release(&batch.reports);
        }
        while let Some(batch) =
            batches.pop_front_if(|batch| batch.included && batch.reports.start <= self.first)
        {
            self.forget(batch.reports.end);
        }
        self.batches = batches;
    }

    /// Subtracts reports from the sums.
    fn release(&mut self, numbers: &Range<u64>) {
        let reports: Vec<Waiting> = self.reports.range(self.places(numbers)).copied().collect();
        reports.into_iter().for_each(|report| self.take_out(report));
    }

    fn take_out(&mut self, report: Waiting) {
        if let Some(sum) = self.pending.get_mut(&report.signature) {
            *sum = sum.saturating_sub(report.times.into());
            if *sum == 0 {
                self.pending.remove(&report.signature);
            }
        }
    }

    /// The reports below this number.
    pub fn below(&self, end: u64) -> Vec<Waiting> {
        self.reports.range(self.places(&(self.first..end))).copied().collect()
    }

    /// Removes the reports below this number.
    fn forget(&mut self, end: u64) {
        let gone = self.places(&(self.first..end)).len();
        self.reports.drain(..gone);
        self.first += gone as u64;
    }

    /// The indices of the reports with these numbers.
    fn places(&self, numbers: &Range<u64>) -> Range<usize> {
        let place = |number: u64| {
            usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.reports.len())
        };
        place(numbers.start)..place(numbers.end)
    }

    /// The number of the next new batch.
    pub const fn next_batch(&self) -> u64 {
        self.next_batch
    }

    /// All batches that are not settled, in the order of their reports.
    pub fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.batches.iter()
    }
}

#[cfg(test)]
pub use tests::reopened;

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: u64 = 7;
    const NEW: u64 = 8;

    fn push(spool: &mut Spool, reports: Range<usize>) {
        for n in reports {
            let signature = Signature::from_bytes((n as u128 + 1).to_le_bytes());
            spool.push(Waiting { signature, times: 1, at: n as u64 });
        }
    }

    /// The servers of these tests.
    fn two() -> [String; 2] {
        ["a", "b"].map(str::to_owned)
    }

    /// The spool after storing and loading.
    pub fn reopened(spool: &Spool, upstreams: &[String]) -> Spool {
        let (id, before) = spool.ids();
        let stored = Stored {
            id,
            before,
            reports: spool.reports.clone(),
            first: spool.first,
            batches: spool.batches.iter().cloned().collect(),
            next_batch: spool.next_batch,
            last_sent: Some(spool.last_sent.clone()),
        };
        Spool::restore(stored, upstreams)
    }

    fn signatures(batch: Option<Outgoing>) -> Vec<u128> {
        batch
            .unwrap()
            .reports
            .iter()
            .map(|(signature, _)| u128::from_le_bytes(signature.to_bytes()))
            .collect()
    }

    const COUNTED: Receipt = Receipt { origin: Origin(1), version: 1 };

    /// An old copy was restored: it has an open batch for one server, and more waiting reports than fit one batch. The other server is
    /// active, and knows nothing. None of these is sent, but later reports are.
    #[test]
    fn an_old_copy_sends_none_of_its_reports() {
        let mut spool = Spool::new(OLD);
        push(&mut spool, 0..10);
        assert_eq!(spool.begin("a").unwrap().number, 1);
        push(&mut spool, 10..3 * MAX_BATCH);
        let mut spool = reopened(&spool, &two());
        push(&mut spool, 3 * MAX_BATCH..3 * MAX_BATCH + 2);
        // The active server is asked first, and then gets the later reports.
        assert_eq!(spool.open("b"), None);
        assert_eq!(spool.question("b"), Some(Outgoing { number: 0, reports: Vec::new() }));
        spool.acknowledge("b", 0, COUNTED);
        assert_eq!(spool.question("b"), None);
        let new = 3 * MAX_BATCH as u128 + 1;
        assert_eq!(signatures(spool.begin("b")), [new, new + 1]);
        // The other server has yet to get its open batch; it knows a later one.
        assert_eq!(spool.open("a").unwrap().number, 1);
        assert_eq!(spool.renew("a", OLD, NEW).lost, 3 * MAX_BATCH as u64);
        assert_eq!((spool.open("a"), spool.question("a"), spool.begin("a")), (None, None, None));
        // The active server's batch since the start keeps the number under which it was sent.
        assert_eq!((spool.id_of(2), signatures(spool.open("b"))), (OLD, vec![new, new + 1]));
        assert_eq!(spool.held(), 3 * MAX_BATCH + 2 - 3 * MAX_BATCH);
        push(&mut spool, 0..1);
        let batch = spool.begin("a").unwrap();
        assert_eq!((spool.id_of(batch.number), signatures(Some(batch))), (NEW, vec![1]));
        // All of this holds after another start.
        let spool = reopened(&spool, &two());
        assert_eq!((spool.id_of(2), spool.ids().0, spool.held()), (OLD, NEW, 3));
    }

    /// Reports that waited at the start are sent once all servers have been asked, and not mixed with later ones.
    #[test]
    fn waiting_reports_are_sent_when_all_agree() {
        let mut spool = Spool::new(OLD);
        push(&mut spool, 0..3);
        let mut spool = reopened(&spool, &two());
        push(&mut spool, 3..5);
        spool.acknowledge("a", 0, COUNTED);
        assert_eq!(signatures(spool.begin("a")), [4, 5]);
        assert_eq!(spool.begin("a"), None, "the other may have it");
        spool.acknowledge("b", 0, COUNTED);
        assert_eq!(signatures(spool.begin("a")), [1, 2, 3]);
        assert_eq!(spool.oldest(), Some(0));
        spool.acknowledge("a", 1, COUNTED);
        spool.acknowledge("a", 2, COUNTED);
        let mut vector = Vector::new();
        vector.set(Origin(1), crate::history::vector::Mark { version: 1, ..Default::default() });
        spool.settle(&vector);
        assert_eq!((spool.held(), spool.batches().count()), (0, 0));
    }

    /// A new spool was never sent anywhere, so no server is asked.
    #[test]
    fn a_new_spool_asks_nobody() {
        let mut spool = Spool::new(OLD);
        push(&mut spool, 0..1);
        assert_eq!(spool.question("a"), None);
        assert_eq!(signatures(spool.begin("a")), [1]);
    }
}
