// SPDX-License-Identifier: GPL-3.0-or-later
//! The batches of reports that were counted.

use crate::history::vector::Origin;
use std::collections::HashMap;

/// The sender that numbers batches: a client of this server, and one of its spools. A client may have several milters, and a milter that
/// lost its disk begins another spool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reporter {
    /// The client's name.
    pub client: String,
    /// The spool's random number.
    pub spool: u64,
}

/// The place where a batch was counted: it is in all updates of this origin from this version on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The origin that counted it.
    pub origin: Origin,
    /// The first version that includes it; zero if nothing of it is counted, and there is no update yet.
    pub version: u64,
}

/// The last counted batch of a spool, as stored in a file.
#[derive(Debug, Clone)]
pub struct LastBatch {
    /// The spool.
    pub reporter: Reporter,
    /// The batch's number.
    pub number: u64,
    /// Where it was counted.
    pub receipt: Receipt,
}

/// The most spools of one client that are remembered. A client has as many as it has milters; more would only enlarge the ledger, so the
/// ones that are silent for longest are forgotten.
pub const MAX_SPOOLS: usize = 1000;

/// The last batch of each reporter: by client, then by spool.
#[derive(Debug, Clone, Default)]
pub struct Receipts {
    clients: HashMap<String, HashMap<u64, Last>>,
    /// Grows with each batch. Versions of two origins have no common order.
    clock: u64,
}

/// The last batch of a spool, and its position in time.
#[derive(Debug, Clone, Copy)]
struct Last {
    number: u64,
    receipt: Receipt,
    at: u64,
}

/// A batch number is below that of a counted batch, so that its meaning is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("batch {found} came after batch {last} of the same spool")]
pub struct Backwards {
    /// The number that came.
    pub found: u64,
    /// The last one that was counted.
    pub last: u64,
}

impl Receipts {
    /// Restores the last batches of a server's file; `origin` is the server's present origin. A file has no order of arrival; those of the
    /// present origin are the newest, and within an origin versions give the order.
    pub fn restore(mut read: Vec<LastBatch>, origin: Origin) -> Self {
        read.sort_by_key(|LastBatch { receipt, .. }| (receipt.origin == origin, receipt.version));
        let mut receipts = Self::default();
        for LastBatch { reporter, number, receipt } in read {
            // The file has no more than are remembered.
            let _ = receipts.set(reporter, number, receipt);
        }
        receipts
    }

    /// All reporters, each with the number of its last batch.
    pub fn iter(&self) -> impl Iterator<Item = (Reporter, u64)> {
        let spools =
            self.clients.iter().flat_map(|(client, all)| all.iter().map(move |spool| (client, spool)));
        spools.map(|(client, (&spool, last))| (Reporter { client: client.clone(), spool }, last.number))
    }

    /// Returns the receipt of a counted batch; `None` if it is new.
    pub fn find(&self, reporter: &Reporter, number: u64) -> Result<Option<Receipt>, Backwards> {
        match self.clients.get(&reporter.client).and_then(|spools| spools.get(&reporter.spool)) {
            Some(last) if number == last.number => Ok(Some(last.receipt)),
            Some(last) if number < last.number => Err(Backwards { found: number, last: last.number }),
            _ => Ok(None),
        }
    }

    /// Remembers a counted batch. Returns the spool that is forgotten for it.
    #[must_use]
    pub fn set(&mut self, reporter: Reporter, number: u64, receipt: Receipt) -> Option<Reporter> {
        let Reporter { client, spool } = reporter;
        self.clock += 1;
        let spools = self.clients.entry(client.clone()).or_default();
        spools.insert(spool, Last { number, receipt, at: self.clock });
        if spools.len() <= MAX_SPOOLS {
            return None;
        }
        let oldest = spools.iter().min_by_key(|(_, last)| last.at).map(|(&spool, _)| spool)?;
        spools.remove(&oldest);
        Some(Reporter { client, spool: oldest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that begins a new spool for each batch makes the ledger no larger than others do, and harms only itself.
    #[test]
    fn spools_of_a_client_are_bounded() {
        let mut receipts = Receipts::default();
        let reporter = |client: &str, spool| Reporter { client: client.to_owned(), spool };
        let receipt = |version| Receipt { origin: Origin(1), version };
        assert_eq!(receipts.set(reporter("good", 1), 7, receipt(1)), None);
        for n in 0..3000 {
            let forgotten = receipts.set(reporter("bad", n), 1, receipt(n + 1));
            let expected = n.checked_sub(MAX_SPOOLS as u64).map(|spool| reporter("bad", spool));
            assert_eq!(forgotten, expected);
        }
        assert_eq!(receipts.find(&reporter("good", 1), 7), Ok(Some(receipt(1))));
        assert_eq!(receipts.find(&reporter("bad", 2999), 1), Ok(Some(receipt(3000))));
        assert_eq!(receipts.find(&reporter("bad", 0), 1), Ok(None));
    }

    /// A batch counts once. A batch with a lower number does not count: it may be any earlier one.
    #[test]
    fn numbers_go_up() {
        let mut receipts = Receipts::default();
        let reporter = |spool| Reporter { client: "a".to_owned(), spool };
        let receipt = Receipt { origin: Origin(1), version: 3 };
        assert_eq!(receipts.set(reporter(1), 7, receipt), None);
        assert_eq!(receipts.find(&reporter(1), 7), Ok(Some(receipt)));
        assert_eq!(receipts.find(&reporter(1), 8), Ok(None));
        assert_eq!(receipts.find(&reporter(1), 6), Err(Backwards { found: 6, last: 7 }));
        assert_eq!(receipts.find(&reporter(2), 6), Ok(None), "of another spool");
    }

    /// A server that continues under another origin starts over with version 1. Its reporters are still the newest.
    #[test]
    fn receipts_of_a_new_origin_are_the_newest() {
        let reporter = |spool| Reporter { client: "a".to_owned(), spool };
        let old = |n| Receipt { origin: Origin(1), version: 5000 + n };
        let new = Receipt { origin: Origin(2), version: 1 };
        let mut receipts = Receipts::default();
        let full = MAX_SPOOLS as u64;
        for n in 0..full {
            assert_eq!(receipts.set(reporter(n), 1, old(n)), None);
        }
        assert_eq!(receipts.set(reporter(full), 1, new), Some(reporter(0)));
        assert_eq!(receipts.find(&reporter(full), 1), Ok(Some(new)));
        // The same holds after a restart.
        let read = (1..=full).map(|n| {
            let receipt = if n < full { old(n) } else { new };
            LastBatch { reporter: reporter(n), number: 1, receipt }
        });
        let mut receipts = Receipts::restore(read.collect(), Origin(2));
        assert_eq!(receipts.set(reporter(full + 1), 1, new), Some(reporter(1)));
        assert_eq!(receipts.set(reporter(full + 2), 1, new), Some(reporter(2)));
    }
}
