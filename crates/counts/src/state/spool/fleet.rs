// SPDX-License-Identifier: GPL-3.0-or-later
//! A spool whose batches are sent to a fleet's log: many at a time, and each until a step covers it.
//!
//! In place of a server, such a batch has the client and the spool's number under which it is sent. The steps' mark of that spool shows
//! which batches are counted, and also whether this file is an old copy: then a number is counted that was not used here yet.

use super::{DROPPED, Dropped, Spool, Stored, Waiting, id_of};
use crate::history::spool_mark::SpoolMark;
use crate::history::vector::Vector;
use crate::state::inherited::Inherited;
use bulkmark_types::Signature;
use std::collections::BTreeSet;

/// A batch for a fleet's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub(crate) spool: u64,
    pub(crate) lowest: u64,
    pub(crate) outgoing: super::Outgoing,
}

/// The changes of a spool by the marks of counted batches.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MarkChanges {
    /// Settled batches, by number.
    pub settled: Vec<u64>,
    /// If the file was an old copy, the number of dropped reports of which it is unknown whether they were counted.
    pub renewed: Option<u64>,
    /// User reports that are counted.
    pub counted: Vec<Waiting>,
    /// Dropped user reports of which this is unknown.
    pub unknown: Vec<Waiting>,
}

/// The text in place of a server's URL. It is not a URL.
fn place(client: &str, spool: u64) -> String {
    format!("fleet {client} {spool:016x}")
}

/// The client and the spool's number under which a batch is sent; `None` if it is for a server. The inverse of [`place`].
fn sender(upstream: &str) -> Option<(&str, u64)> {
    let (client, spool) = upstream.strip_prefix("fleet ")?.split_once(' ')?;
    Some((client, u64::from_str_radix(spool, 16).ok()?))
}

/// The number of this client's spool under which a batch is sent; `None` if it is sent elsewhere.
fn spool_of(upstream: &str, client: &str) -> Option<u64> {
    sender(upstream).filter(|(of, _)| *of == client).map(|(_, spool)| spool)
}

impl Stored {
    /// Readdresses the open batches of a milter that left its fleet to a server that has the fleet's counts, and so knows which of them are
    /// counted. Returns their numbers.
    pub(super) fn readdress(&mut self, upstream: &str) -> BTreeSet<u64> {
        let mut moved = BTreeSet::new();
        let spool = |place: &str| sender(place).map(|(_, spool)| spool);
        for batch in self.batches.iter_mut().filter(|batch| batch.receipt.is_none()) {
            // The server would not know it under another number.
            if spool(&batch.upstream) == Some(id_of(self.id, self.before, batch.number)) {
                upstream.clone_into(&mut batch.upstream);
                moved.insert(batch.number);
            }
        }
        if let Some(last_sent) = &mut self.last_sent {
            let of_fleet = last_sent.to.iter().filter(|(place, _)| spool(place) == Some(self.id));
            if let Some(last) = of_fleet.map(|(_, &last)| last).max()
                && !last_sent.to.contains_key(upstream)
            {
                last_sent.to.insert(upstream.to_owned(), last);
            }
        }
        moved
    }
}

impl Spool {
    /// The number of local reports of `signature` in batches that a server did not answer yet: it may have counted them, and then its update
    /// brings them before its answer does. A fleet's batches are not among them, as its step says which it has. Takes time in proportion to
    /// these batches.
    pub fn unanswered(&self, signature: Signature) -> u32 {
        let open =
            self.batches.iter().filter(|batch| batch.receipt.is_none() && sender(&batch.upstream).is_none());
        let reports = open.flat_map(|batch| self.reports.range(self.places(&batch.reports)));
        let same = reports.filter(|report| report.signature == signature);
        same.fold(0, |sum, report| sum.saturating_add(report.times))
    }

    /// Returns open batches of this client with numbers above `after`, in their order, at most `most`. If they are fewer, and with `begin`,
    /// puts waiting reports into new batches. Also returns the numbers of these, which must be on disk before they are sent.
    pub fn for_fleet(&mut self, client: &str, after: u64, most: usize, begin: bool) -> (Vec<Sent>, Vec<u64>) {
        let open = |spool: &Self| -> Vec<(u64, u64)> {
            let open = spool.batches.iter().filter(|batch| batch.receipt.is_none());
            let mut open: Vec<_> =
                open.filter_map(|b| Some((b.number, spool_of(&b.upstream, client)?))).collect();
            open.sort_unstable();
            open
        };
        let mut wanted: Vec<_> = open(self).into_iter().filter(|&(number, _)| number > after).collect();
        wanted.truncate(most);
        let mut new = Vec::new();
        while begin && wanted.len() < most {
            let Some(batch) = self.begin(&place(client, self.id)) else { break };
            new.push(batch.number);
            wanted.push((batch.number, self.id));
        }
        let all = open(self);
        let lowest = |of: u64| all.iter().filter(|&&(_, spool)| spool == of).map(|&(number, _)| number).min();
        let sent = wanted.into_iter().filter_map(|(number, spool)| {
            let batch = self.batches.iter().find(|batch| batch.number == number)?;
            Some(Sent { spool, lowest: lowest(spool)?, outgoing: self.outgoing(batch) })
        });
        (sent.collect(), new)
    }

    /// Settles the batches of this client's spools that are counted according to `marks`: the merged counts include them. If a number is
    /// counted that was not used here yet, the file is an old copy: reports that waited at the start may have been sent since, and are
    /// dropped; open batches stay, since their numbers identify them; and later ones are sent by the spool `new`.
    pub fn apply_marks<'a>(
        &mut self,
        client: &str,
        marks: impl Fn(u64) -> Option<&'a SpoolMark>,
        new: u64,
    ) -> MarkChanges {
        let mut changes = MarkChanges::default();
        let (id, before, sent) = (self.id, self.before, &mut self.last_sent.to);
        let mut counted = Vec::new();
        for batch in self.batches.iter_mut().filter(|batch| batch.receipt.is_none()) {
            let sent_here = spool_of(&batch.upstream, client);
            let spool = sent_here.unwrap_or_else(|| id_of(id, before, batch.number));
            let here = place(client, spool);
            // Batches of a server are decided by that server's own list, before this spool sends anything: after that, numbers say nothing
            // about them.
            if sent_here.is_none() && (batch.upstream.is_empty() || sent.contains_key(&here)) {
                continue;
            }
            let Some(mark) = marks(spool) else { continue };
            if mark.has(batch.number) {
                // Independent of the vector: these counts came with the marks.
                batch.receipt = Some(DROPPED);
                counted.push(batch.reports.clone());
                changes.settled.push(batch.number);
            } else if sent_here.is_none() && mark.is_before(batch.number) {
                // The server's counts are now the fleet's, and this is the first batch that it did not count.
                sent.insert(here.clone(), batch.number);
                batch.upstream = here;
                changes.settled.push(batch.number);
            }
        }
        changes.counted = counted.iter().flat_map(|reports| self.user_reports_in(reports)).collect();
        self.settle(&Vector::new());
        if marks(self.id).is_some_and(|mark| mark.reaches(self.next_batch)) {
            let waiting: Vec<_> =
                self.gaps().into_iter().filter(|gap| self.inherited.has(gap.start)).collect();
            let dropped = waiting.into_iter().map(|gap| self.put("", gap).number).collect();
            self.before = Some((self.id, self.next_batch));
            self.id = new;
            self.inherited = Inherited::default();
            let Dropped { batches, lost, user_reports } = self.drop_all(dropped);
            changes.settled.extend(batches);
            (changes.renewed, changes.unknown) = (Some(lost), user_reports);
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::reopened;
    use super::*;
    use crate::history::spool_mark::BatchStatus;
    use crate::history::vector::Origin;
    use crate::state::receipts::Receipt;
    use bulkmark_types::Signature;

    fn push(spool: &mut Spool, reports: std::ops::Range<u8>) {
        for n in reports {
            spool.push(Waiting { signature: Signature::from_bytes([n; 16]), times: 1, at: n.into() });
        }
    }

    fn numbers(sent: &[Sent]) -> Vec<(u64, u64, u64)> {
        sent.iter().map(|sent| (sent.spool, sent.outgoing.number, sent.lowest)).collect()
    }

    fn mark(numbers: impl IntoIterator<Item = u64>) -> SpoolMark {
        let mut mark = SpoolMark::default();
        numbers.into_iter().for_each(|number| assert_eq!(mark.take(number, 1), BatchStatus::New));
        mark
    }

    fn apply_marks(spool: &mut Spool, of: u64, mark: &SpoolMark) -> MarkChanges {
        spool.apply_marks("mx1", |id| (id == of).then_some(mark), 99)
    }

    /// Several batches are open at a time, and each is settled by its number, in any order.
    #[test]
    fn many_are_open_and_each_is_settled() {
        let mut spool = Spool::new(7);
        for n in 0..4 {
            push(&mut spool, n..n + 1);
            spool.for_fleet("mx1", n.into(), 64, true);
        }
        assert_eq!(spool.for_fleet("mx2", 0, 64, false).0, [], "those of another client");
        let (sent, new) = spool.for_fleet("mx1", 1, 2, true);
        assert_eq!((numbers(&sent), new), (vec![(7, 2, 1), (7, 3, 1)], Vec::new()));
        assert_eq!(
            apply_marks(&mut spool, 7, &mark([1, 3])),
            MarkChanges { settled: vec![1, 3], ..MarkChanges::default() }
        );
        assert_eq!(numbers(&spool.for_fleet("mx1", 0, 64, false).0), [(7, 2, 2), (7, 4, 2)]);
        assert_eq!(
            apply_marks(&mut spool, 8, &mark([2, 4])),
            MarkChanges::default(),
            "somebody else's marks"
        );
        let mut spool = reopened(&spool, &[]);
        assert_eq!(
            apply_marks(&mut spool, 7, &mark([1, 2, 3, 4])),
            MarkChanges { settled: vec![2, 4], ..MarkChanges::default() }
        );
        assert_eq!((spool.held(), spool.batches().count()), (0, 0));
    }

    /// If a server's list of batches became the fleet's, its counted batches are settled, the first one that it did not count is sent, and
    /// others stay unknown.
    #[test]
    fn batches_that_a_server_did_not_count_are_sent() {
        let mut spool = Spool::new(7);
        for n in 0..3 {
            push(&mut spool, n..n + 1);
            assert!(spool.begin(&format!("http://server{n}")).is_some());
        }
        let mut spool = reopened(&spool, &[]);
        assert_eq!(apply_marks(&mut spool, 8, &mark([1])), MarkChanges::default(), "of another spool");
        assert_eq!(apply_marks(&mut spool, 7, &mark([1])).settled, [1, 2]);
        let (sent, _) = spool.for_fleet("mx1", 0, 64, false);
        assert_eq!(numbers(&sent), [(7, 2, 2)]);
        // The fleet's mark of this spool says nothing of the third batch, which another server may have counted.
        let mut spool = reopened(&spool, &[]);
        assert_eq!(apply_marks(&mut spool, 7, &mark([1, 2])).settled, [2]);
        assert!(apply_marks(&mut spool, 7, &mark([1, 2, 3])).settled.is_empty());
        assert_eq!((spool.for_fleet("mx1", 0, 64, false).0, spool.held()), (vec![], 1));
    }

    /// A milter leaves its fleet for a server with the fleet's counts, which knows the last counted batch, and that all before it are
    /// counted too. Later ones are sent, and none is given up.
    #[test]
    fn a_server_goes_on_where_a_fleet_ended() {
        let mut spool = Spool::new(7);
        for n in 0..4 {
            push(&mut spool, n..n + 1);
            spool.for_fleet("mx1", n.into(), 64, true);
        }
        push(&mut spool, 4..6);
        let server = "http://server";
        let mut spool = reopened(&spool, &[server.to_owned()]);
        let counted = Receipt { origin: Origin(3), version: 9 };
        // The server has counted three, and refuses those before the last one.
        for number in [1, 2] {
            assert_eq!(spool.open(server).map(|batch| batch.number), Some(number));
            assert_eq!(spool.is_counted(server), Some(number));
        }
        assert_eq!(spool.open(server).map(|batch| batch.number), Some(3));
        assert!(spool.acknowledge(server, 3, counted));
        assert_eq!(spool.open(server).map(|batch| batch.number), Some(4));
        assert!(spool.acknowledge(server, 4, counted));
        assert_eq!(spool.question(server), None, "it said that it knows no later one");
        let waited = spool.begin(server).unwrap();
        assert_eq!((waited.number, waited.reports.len()), (5, 2));
        assert_eq!(spool.is_counted(server), None, "this one was never for the fleet");
        // Without open batches the server is asked under the fleet's last number.
        let mut spool = Spool::new(7);
        push(&mut spool, 0..1);
        spool.for_fleet("mx1", 0, 64, true);
        apply_marks(&mut spool, 7, &mark([1]));
        push(&mut spool, 1..2);
        let spool = reopened(&spool, &[server.to_owned()]);
        assert_eq!(spool.question(server).map(|question| question.number), Some(1));
    }

    /// An old copy was restored. Its open batch is identified by its number; its waiting reports are dropped. Later reports are sent under
    /// another spool number.
    #[test]
    fn an_old_copy_sends_nothing_again() {
        let mut spool = Spool::new(7);
        push(&mut spool, 0..2);
        spool.for_fleet("mx1", 0, 64, true);
        push(&mut spool, 2..4);
        let mut copy = reopened(&spool, &[]);
        spool.for_fleet("mx1", 1, 64, true);
        push(&mut copy, 4..5);
        // The batch of the waiting reports is counted, the one before is not yet.
        let changes = MarkChanges { settled: vec![2], renewed: Some(2), ..MarkChanges::default() };
        assert_eq!(apply_marks(&mut copy, 7, &mark([2])), changes);
        let (sent, _) = copy.for_fleet("mx1", 0, 64, true);
        assert_eq!(numbers(&sent), [(7, 1, 1), (99, 3, 3)]);
        assert_eq!(sent[1].outgoing.reports, [(Signature::from_bytes([4; 16]), 1)]);
        let mut copy = reopened(&copy, &[]);
        assert_eq!(apply_marks(&mut copy, 7, &mark([1, 2])).settled, [1]);
        assert_eq!(numbers(&copy.for_fleet("mx1", 0, 64, false).0), [(99, 3, 3)]);
    }
}
