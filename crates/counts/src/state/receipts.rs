// SPDX-License-Identifier: GPL-3.0-or-later
//! The batches of reports that were counted.

use crate::history::vector::Origin;
use std::collections::{HashMap, HashSet};

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

/// The last counted batch of a spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastBatch {
    /// The batch's number.
    pub number: u64,
    /// Where it was counted.
    pub receipt: Receipt,
    /// When it came, in seconds since 1970; 0 in a file of an older program, and once its counts are withdrawn.
    pub at: u64,
}

/// The most spools of one client that are remembered: more would only enlarge the ledger. A client has as many as it has milters, and one
/// for each time that one of them started over.
pub const MAX_SPOOLS: usize = 1000;

/// The last batch of each reporter: by client, then by spool.
#[derive(Debug, Clone, Default)]
pub struct Receipts {
    /// With each batch its position in the order of arrival: versions of two origins have none, and many batches come in a second.
    clients: HashMap<String, HashMap<u64, (LastBatch, u64)>>,
    /// Grows with each batch.
    clock: u64,
    /// Clients whose new spools are refused, according to the log.
    refused: HashSet<String>,
}

/// A client has as many spools as are remembered, and each of them may still send its last batch again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{MAX_SPOOLS} milters, or new ledgers of milters, reported as {client} within {days} days, so no other one can; give some of the milters \
     another name (bulkmark client add)"
)]
pub struct TooManySpools {
    client: String,
    days: u64,
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
    /// Restores the last batches of a server's file; `origin` is the server's present origin. In files of older programs batches have no
    /// times: those of the present origin are the newest, and within an origin versions give the order.
    pub fn restore(mut read: Vec<(Reporter, LastBatch)>, origin: Origin) -> Self {
        read.sort_by_key(|(_, LastBatch { receipt, at, .. })| {
            (*at, receipt.origin == origin, receipt.version)
        });
        let mut receipts = Self::default();
        read.into_iter().for_each(|(reporter, last)| receipts.set(reporter, last));
        receipts
    }

    /// All reporters, each with the number of its last batch.
    pub fn iter(&self) -> impl Iterator<Item = (Reporter, u64)> {
        let spools =
            self.clients.iter().flat_map(|(client, all)| all.iter().map(move |spool| (client, spool)));
        spools.map(|(client, (&spool, (last, _)))| (Reporter { client: client.clone(), spool }, last.number))
    }

    /// Returns the receipt of a counted batch; `None` if it is new.
    pub fn find(&self, reporter: &Reporter, number: u64) -> Result<Option<Receipt>, Backwards> {
        match self.clients.get(&reporter.client).and_then(|spools| spools.get(&reporter.spool)) {
            Some((last, _)) if number == last.number => Ok(Some(last.receipt)),
            Some((last, _)) if number < last.number => Err(Backwards { found: number, last: last.number }),
            _ => Ok(None),
        }
    }

    /// Makes place for a reporter at the time `now`, if it is new. Of a client with too many spools the oldest one is forgotten and returned,
    /// if it has been silent for so many seconds that it can send nothing again.
    ///
    /// # Errors
    /// If there is none: if it were forgotten, a batch that comes again would count twice.
    pub fn make_place(
        &mut self,
        reporter: &Reporter,
        now: u64,
        silent: u64,
    ) -> Result<Option<Reporter>, TooManySpools> {
        let Some(spools) = self.clients.get_mut(&reporter.client) else { return Ok(None) };
        if spools.len() < MAX_SPOOLS || spools.contains_key(&reporter.spool) {
            return Ok(None);
        }
        let client = reporter.client.clone();
        let is_old = |last: &LastBatch| last.at.saturating_add(silent) < now;
        let oldest = spools.iter().min_by_key(|(_, (last, order))| (last.at, *order));
        if let Some((&spool, _)) = oldest.filter(|(_, (last, _))| is_old(last)) {
            spools.remove(&spool);
            self.refused.remove(&client);
            return Ok(Some(Reporter { client, spool }));
        }
        let refusal = TooManySpools { client: client.clone(), days: silent.div_ceil(86_400) };
        if self.refused.insert(client) {
            log::warn!("{refusal}");
        }
        Err(refusal)
    }

    /// Lets new spools of a client, whose counts were withdrawn, take the places of all its present ones. Returns these, as they are kept.
    ///
    /// Their last batches stay known: a batch that came again, or that an old copy of a milter sent elsewhere, would count beside the
    /// withdrawn one at holders that have yet to hear of the withdrawal.
    pub fn release(&mut self, client: &str) -> Vec<(Reporter, LastBatch)> {
        self.refused.remove(client);
        let spools = self.clients.get_mut(client).into_iter().flatten();
        let release = |(&spool, (last, _)): (&u64, &mut (LastBatch, u64))| {
            last.at = 0;
            (Reporter { client: client.to_owned(), spool }, *last)
        };
        spools.map(release).collect()
    }

    /// Remembers a counted batch of a reporter that has a place.
    pub fn set(&mut self, Reporter { client, spool }: Reporter, last: LastBatch) {
        self.clock += 1;
        self.clients.entry(client).or_default().insert(spool, (last, self.clock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;
    const SILENT: u64 = 1000;

    fn reporter(client: &str, spool: u64) -> Reporter {
        Reporter { client: client.to_owned(), spool }
    }

    fn last(number: u64, version: u64, at: u64) -> LastBatch {
        LastBatch { number, receipt: Receipt { origin: Origin(1), version }, at }
    }

    /// A client that begins a new spool for each batch makes the ledger no larger than others do, and harms only itself: it waits until its
    /// spools are old. The log says so once.
    #[test]
    fn spools_of_a_client_are_bounded() {
        let mut receipts = Receipts::default();
        receipts.set(reporter("good", 1), last(7, 1, NOW));
        let mut take = |n: u64, now| {
            let forgotten = receipts.make_place(&reporter("bad", n), now, SILENT)?;
            receipts.set(reporter("bad", n), last(1, n, now));
            Ok(forgotten)
        };
        let most = MAX_SPOOLS as u64;
        assert!((0..most).all(|n| take(n, NOW + n / 2) == Ok(None)));
        let refusal = TooManySpools { client: "bad".to_owned(), days: 1 };
        assert_eq!(take(most, NOW + SILENT), Err(refusal.clone()));
        assert_eq!(take(0, NOW + SILENT), Ok(None), "it has a place");
        assert_eq!(take(most, NOW + SILENT + 1), Ok(Some(reporter("bad", 1))));
        assert_eq!(take(most + 1, NOW + SILENT + 1), Err(refusal));
        assert_eq!(receipts.find(&reporter("good", 1), 7).map(|found| found.is_some()), Ok(true));
        assert_eq!(receipts.find(&reporter("bad", 1), 1), Ok(None));
        assert_eq!(receipts.iter().count(), 1 + MAX_SPOOLS);
    }

    /// A batch counts once. A batch with a lower number does not count: it may be any earlier one.
    #[test]
    fn numbers_go_up() {
        let mut receipts = Receipts::default();
        receipts.set(reporter("a", 1), last(7, 3, NOW));
        let found = |spool, number| receipts.find(&reporter("a", spool), number);
        assert_eq!(found(1, 7), Ok(Some(last(7, 3, NOW).receipt)));
        assert_eq!(found(1, 8), Ok(None));
        assert_eq!(found(1, 6), Err(Backwards { found: 6, last: 7 }));
        assert_eq!(found(2, 6), Ok(None), "of another spool");
    }

    /// A file of an older program has no times. A server that continues under another origin starts over with version 1; its reporters are
    /// still the newest.
    #[test]
    fn receipts_of_a_new_origin_are_the_newest() {
        let full = MAX_SPOOLS as u64;
        let read = (1..=full).map(|n| {
            let origin = Origin(if n < full { 1 } else { 2 });
            let version = if n < full { 5000 + n } else { 1 };
            (reporter("a", n), LastBatch { receipt: Receipt { origin, version }, ..last(1, 0, 0) })
        });
        let mut receipts = Receipts::restore(read.collect(), Origin(2));
        for n in 1..full {
            let new = reporter("a", full + n);
            assert_eq!(receipts.make_place(&new, NOW, SILENT), Ok(Some(reporter("a", n))));
            receipts.set(new, last(1, 2, NOW));
        }
        assert!(receipts.find(&reporter("a", full), 1).is_ok_and(|found| found.is_some()));
    }
}
