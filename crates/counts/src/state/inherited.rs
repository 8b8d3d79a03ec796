// SPDX-License-Identifier: GPL-3.0-or-later
//! What a start finds in the spool, and who has to be asked about it.
//!
//! The file may be an old copy that was put back. Then what waits in it may have been sent since, under numbers that would be
//! given again. Only the servers know. So after a start each server is asked, by an empty batch under the number of the last
//! one that is known here, before anything new is sent to it: a server that knows a later one refuses it. And what waited
//! already at the start goes nowhere until all servers have been asked, since any of them may have counted it.

use std::collections::{BTreeMap, BTreeSet};

/// The number of the last batch that was begun for each server under the spool's present number, as the file tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastSent {
    /// The last batch for each server, by its URL.
    pub to: BTreeMap<String, u64>,
    /// For those that are not named.
    pub others: u64,
}

/// What was there when the file was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inherited {
    /// Reports below this number were there.
    end: u64,
    /// The last batches that were begun before; none when there is nothing to ask, as in a new spool.
    last: Option<LastSent>,
    /// All servers that may have something of this spool.
    upstreams: BTreeSet<String>,
    /// Those that know no later batch.
    agreed: BTreeSet<String>,
}

impl Inherited {
    /// Reports below `end`, and batches up to `last`. `upstreams` are those that are to be asked.
    pub fn new(end: u64, last: LastSent, upstreams: &[String]) -> Self {
        let upstreams = upstreams.iter().cloned().collect();
        Self { end, last: Some(last), upstreams, agreed: BTreeSet::new() }
    }

    /// Whether the report of this number was there at the start.
    pub const fn has(&self, report: u64) -> bool {
        report < self.end
    }

    /// The number of the first report that was made since.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// The reports that were there have other numbers now: those below this one.
    pub const fn move_end(&mut self, end: u64) {
        self.end = end;
    }

    /// The number under which this server is still to be asked.
    pub fn question(&self, upstream: &str) -> Option<u64> {
        let last = self.last.as_ref().filter(|_| !self.agreed.contains(upstream))?;
        Some(last.to.get(upstream).copied().unwrap_or(last.others))
    }

    /// This server knows no later batch.
    pub fn agree(&mut self, upstream: &str) {
        self.agreed.insert(upstream.to_owned());
    }

    /// Whether no server has anything of what waited at the start.
    pub fn all_agreed(&self) -> bool {
        self.last.is_none() || self.upstreams.is_subset(&self.agreed)
    }
}
