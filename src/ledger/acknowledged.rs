// SPDX-License-Identifier: GPL-3.0-or-later
//! Which batches of reports were counted already.

use super::vector::Origin;
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

/// The last batch of each reporter.
#[derive(Debug, Clone, Default)]
pub(super) struct Acknowledged(HashMap<Reporter, (u64, Receipt)>);

/// A batch number is below that of a batch that was counted, so that nobody can tell what it should mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("batch {found} came after batch {last} of the same spool")]
pub struct Backwards {
    /// The number that came.
    pub found: u64,
    /// The last one that was counted.
    pub last: u64,
}

impl Acknowledged {
    /// The receipt of a batch that was counted; none when it is new.
    pub(super) fn find(&self, reporter: &Reporter, number: u64) -> Result<Option<Receipt>, Backwards> {
        match self.0.get(reporter) {
            Some(&(last, receipt)) if number == last => Ok(Some(receipt)),
            Some(&(last, _)) if number < last => Err(Backwards { found: number, last }),
            _ => Ok(None),
        }
    }

    /// Remembers a batch that was counted.
    pub(super) fn set(&mut self, reporter: Reporter, number: u64, receipt: Receipt) {
        self.0.insert(reporter, (number, receipt));
    }
}
