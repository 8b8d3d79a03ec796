// SPDX-License-Identifier: GPL-3.0-or-later
//! The batches that an aggregator read and no step covers yet.

use crate::log::{Batch, Client};
use bulkmark_counts::LoggedBatch;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Instant;

/// Maximum of bytes in memory. The log keeps later batches.
const MOST_BYTES: usize = 16 << 20;

/// Approximate bytes that one step can cover: with that many, it need not wait. And the bytes of the batches that one step is drafted from.
const FULL: usize = 1 << 20;
const DRAFTED: usize = 3 << 20;

/// Unknown names that are remembered beyond the number of clients: a member with an aggregator's rights can store batches under any name.
const MAX_UNKNOWN: usize = 1000;

/// Memory of a batch beside its bytes.
const OVERHEAD: usize = 200;

/// Batches in the log's order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    batches: VecDeque<Batch>,
    bytes: usize,
    /// When the first of them came, or the ones before it were covered.
    since: Option<Instant>,
}

impl Queue {
    /// Whether more batches should be read.
    pub(super) const fn has_room(&self) -> bool {
        self.bytes < MOST_BYTES
    }

    /// Whether there is enough for a whole step.
    pub(super) const fn is_full(&self) -> bool {
        self.bytes >= FULL
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.batches.len()
    }

    /// Returns the time since when batches wait; none when there are none.
    pub(super) const fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) fn push(&mut self, batch: Batch, now: Instant) {
        self.bytes += batch.bytes.len() + OVERHEAD;
        self.batches.push_back(batch);
        self.since.get_or_insert(now);
    }

    /// Removes the batches that are covered.
    pub(super) fn covered(&mut self, covers: u64, now: Instant) {
        while let Some(batch) = self.batches.pop_front_if(|batch| batch.place.0 <= covers) {
            self.bytes -= batch.bytes.len() + OVERHEAD;
            self.since = Some(now);
        }
        if self.batches.is_empty() {
            self.since = None;
        }
    }

    /// Whether batches wait from a client that is not in the list, and not known to be missing there.
    pub(super) fn has_unknown(&self, clients: &Clients) -> bool {
        self.batches.iter().any(|batch| !clients.knows(&batch.client))
    }

    /// Returns as many batches as one step may cover, with the limits of their clients. A batch of an unknown client is covered without
    /// being counted.
    pub(super) fn first(&self, clients: &Clients) -> Vec<LoggedBatch> {
        let (mut bytes, mut first) = (0, Vec::new());
        for batch in &self.batches {
            if bytes > DRAFTED {
                break;
            }
            bytes += batch.bytes.len() + OVERHEAD;
            let client = clients.all.get(&batch.client);
            first.push(LoggedBatch {
                place: batch.place.0,
                at: batch.at,
                client: batch.client.clone(),
                limits: client.and_then(|client| client.limits),
                withdrawn: client.map_or(0, |client| client.withdrawn),
                bytes: client.map_or_else(Vec::new, |_| batch.bytes.clone()),
            });
        }
        first
    }
}

/// The clients that may report, by name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Clients {
    all: BTreeMap<String, Client>,
    /// Reporters that are not in the list, and that the log need not be asked for again.
    unknown: BTreeSet<String>,
}

impl Clients {
    /// Sets the log's current list. Unknown clients stay unknown unless the list changed.
    pub(super) fn set(&mut self, clients: Vec<Client>) {
        let all = clients.into_iter().map(|client| (client.name.clone(), client)).collect();
        if all != self.all {
            *self = Self { all, unknown: BTreeSet::new() };
        }
    }

    /// Marks the clients of waiting batches that are not in the list as unknown. Beyond a bound, those without waiting batches are
    /// forgotten.
    pub(super) fn give_up(&mut self, queue: &Queue) {
        let unknown = queue.batches.iter().filter(|batch| !self.all.contains_key(&batch.client));
        let waiting: BTreeSet<String> = unknown.map(|batch| batch.client.clone()).collect();
        if self.unknown.len() > self.all.len() + MAX_UNKNOWN {
            self.unknown.clear();
        }
        self.unknown.extend(waiting);
    }

    fn knows(&self, name: &str) -> bool {
        self.all.contains_key(name) || self.unknown.contains(name)
    }

    /// Returns the reports a second that a client may send, if the log does not limit them itself.
    pub(super) fn rate(&self, name: &str) -> Option<NonZeroU32> {
        self.all.get(name)?.rate
    }

    /// Returns the clients whose reports were withdrawn, and how often.
    pub(super) fn withdrawn(&self) -> Vec<(String, u32)> {
        let all = self.all.values().filter(|client| client.withdrawn > 0);
        all.map(|client| (client.name.clone(), client.withdrawn)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Place;
    use bulkmark_counts::Limits;

    fn batch(place: u64, client: &str, bytes: usize) -> Batch {
        Batch { place: Place(place), client: client.to_owned(), at: 7, bytes: vec![1; bytes] }
    }

    #[test]
    fn batches_wait_until_they_are_covered() {
        let (mut queue, begin) = (Queue::default(), Instant::now());
        let later = begin + std::time::Duration::from_secs(1);
        assert_eq!(queue.since(), None);
        for place in 1..=3 {
            queue.push(batch(place, "a", 10), begin);
        }
        queue.covered(0, later);
        assert_eq!((queue.len(), queue.since()), (3, Some(begin)));
        queue.covered(2, later);
        assert_eq!((queue.len(), queue.since()), (1, Some(later)));
        queue.covered(9, later);
        assert_eq!((queue.len(), queue.since(), queue.bytes), (0, None, 0));
        while queue.has_room() {
            queue.push(batch(10, "a", 900 << 10), later);
        }
        assert!(queue.is_full() && queue.len() < 20 && queue.first(&Clients::default()).len() < 6);
    }

    /// Limits come from the log. Batches of clients that it no longer knows do not count.
    #[test]
    fn limits_are_those_of_the_client() {
        let limits = Some(Limits { influence: 5, quota: 9 });
        let client =
            |name: &str, limits, withdrawn| Client { name: name.to_owned(), limits, withdrawn, rate: None };
        let list = [client("own", None, 0), client("isp", limits, 2)];
        let mut clients = Clients::default();
        clients.set(list.to_vec());
        let mut queue = Queue::default();
        for name in ["own", "isp"] {
            queue.push(batch(1, name, 10), Instant::now());
        }
        assert!(!queue.has_unknown(&clients));
        queue.push(batch(2, "gone", 10), Instant::now());
        assert!(queue.has_unknown(&clients));
        let of = |batch: &LoggedBatch| (batch.limits, batch.withdrawn, batch.bytes.len());
        let first: Vec<_> = queue.first(&clients).iter().map(of).collect();
        assert_eq!(first, [(None, 0, 10), (limits, 2, 10), (None, 0, 0)]);
        assert_eq!(clients.withdrawn(), [("isp".to_owned(), 2)]);

        // It is asked for once, until the list changes.
        clients.give_up(&queue);
        clients.set(list.to_vec());
        assert!(!queue.has_unknown(&clients));
        assert_eq!(queue.first(&clients)[2].bytes, [0; 0]);
        queue.push(batch(3, "new", 10), Instant::now());
        assert!(queue.has_unknown(&clients), "another one");
        for n in 0..5000 {
            queue.covered(u64::MAX, Instant::now());
            queue.push(batch(4, &format!("made-up-{n}"), 10), Instant::now());
            clients.give_up(&queue);
            assert!(!queue.has_unknown(&clients) && clients.unknown.len() <= 2 + MAX_UNKNOWN + 1);
        }
        queue.push(batch(5, "gone", 10), Instant::now());
        clients.give_up(&queue);
        clients.set(vec![client("own", None, 0), client("gone", None, 0)]);
        assert!(queue.has_unknown(&clients));
        assert_eq!(queue.first(&clients)[1].bytes.len(), 10, "it is let in again");
    }
}
