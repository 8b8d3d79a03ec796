// SPDX-License-Identifier: GPL-3.0-or-later
//! Which batches of reports were counted already.

use crate::ledger::history::vector::Origin;
use std::collections::HashMap;

/// Who numbers batches: a client of this server, and one spool of it. A client may have several milters, and a milter
/// that lost its disk begins another spool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reporter {
    /// The client's name.
    pub client: String,
    /// The spool's random number.
    pub spool: u64,
}

/// Where a batch was counted: it is in all updates of this origin from this version on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The origin that counted it.
    pub origin: Origin,
    /// The first version that includes it.
    pub version: u64,
}

/// Spools of one client that are remembered. A client has as many as it has milters; a thousand more bring nothing but a
/// larger ledger, so those that were silent for longest are forgotten.
const MAX_SPOOLS: usize = 1000;

/// The last batch of each reporter: by client, then by spool.
#[derive(Debug, Clone, Default)]
pub(crate) struct Receipts(HashMap<String, HashMap<u64, (u64, Receipt)>>);

/// A batch number is below that of a batch that was counted, so that nobody can tell what it should mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("batch {found} came after batch {last} of the same spool")]
pub struct Backwards {
    /// The number that came.
    pub found: u64,
    /// The last one that was counted.
    pub last: u64,
}

impl Receipts {
    /// The receipt of a batch that was counted; none when it is new.
    pub(crate) fn find(&self, reporter: &Reporter, number: u64) -> Result<Option<Receipt>, Backwards> {
        match self.0.get(&reporter.client).and_then(|spools| spools.get(&reporter.spool)) {
            Some(&(last, receipt)) if number == last => Ok(Some(receipt)),
            Some(&(last, _)) if number < last => Err(Backwards { found: number, last }),
            _ => Ok(None),
        }
    }

    /// Remembers a batch that was counted. Returns the spool that is forgotten for it.
    #[must_use]
    pub(crate) fn set(&mut self, reporter: Reporter, number: u64, receipt: Receipt) -> Option<Reporter> {
        let Reporter { client, spool } = reporter;
        let spools = self.0.entry(client.clone()).or_default();
        spools.insert(spool, (number, receipt));
        if spools.len() <= MAX_SPOOLS {
            return None;
        }
        let oldest =
            spools.iter().min_by_key(|(_, (_, receipt))| receipt.version).map(|(&spool, _)| spool)?;
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
        let mut acknowledged = Receipts::default();
        let reporter = |client: &str, spool| Reporter { client: client.to_owned(), spool };
        let receipt = |version| Receipt { origin: Origin(1), version };
        assert_eq!(acknowledged.set(reporter("good", 1), 7, receipt(1)), None);
        for n in 0..3000 {
            let forgotten = acknowledged.set(reporter("bad", n), 1, receipt(n + 1));
            let expected = n.checked_sub(MAX_SPOOLS as u64).map(|spool| reporter("bad", spool));
            assert_eq!(forgotten, expected);
        }
        assert_eq!(acknowledged.find(&reporter("good", 1), 7), Ok(Some(receipt(1))));
        assert_eq!(acknowledged.find(&reporter("bad", 2999), 1), Ok(Some(receipt(3000))));
        assert_eq!(acknowledged.find(&reporter("bad", 0), 1), Ok(None));
    }
}
