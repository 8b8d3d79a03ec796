// SPDX-License-Identifier: GPL-3.0-or-later
//! The content of a spool at the start, and the servers that must be asked about it.
//!
//! The file may be an old copy that was restored. Then reports that wait in it may have been sent since, under numbers that would be used
//! again. Only the servers know. So after a start, before anything new is sent, each server is asked by an empty batch under the last
//! number known here: a server that knows a later one refuses it. And reports that waited at the start are not sent until all servers have
//! been asked, since any of them may have counted these.

use std::collections::{BTreeMap, BTreeSet};

/// The number of the last batch that was begun for each server under the spool's present number, according to the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastSent {
    /// The last batch for each server, by its URL.
    pub to: BTreeMap<String, u64>,
    /// For all other servers.
    pub others: u64,
}

/// The content of the spool when the file was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inherited {
    /// Reports below this number were in it.
    end: u64,
    /// The last batches that were begun before; `None` if there is nothing to ask, as in a new spool.
    last: Option<LastSent>,
    /// All servers that may know batches of this spool.
    upstreams: BTreeSet<String>,
    /// Servers that know no later batch.
    agreed: BTreeSet<String>,
}

impl Inherited {
    /// Reports below `end`, and batches up to `last`. `upstreams` are the servers to ask.
    pub fn new(end: u64, last: LastSent, upstreams: &[String]) -> Self {
        let upstreams = upstreams.iter().cloned().collect();
        Self { end, last: Some(last), upstreams, agreed: BTreeSet::new() }
    }

    /// Whether the report of this number was there at the start.
    pub const fn has(&self, report: u64) -> bool {
        report < self.end
    }

    /// The number of the first report since the start.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Changes the end after the reports were renumbered.
    pub const fn move_end(&mut self, end: u64) {
        self.end = end;
    }

    /// The number under which this server must still be asked.
    pub fn question(&self, upstream: &str) -> Option<u64> {
        let last = self.last.as_ref().filter(|_| !self.agreed.contains(upstream))?;
        Some(last.to.get(upstream).copied().unwrap_or(last.others))
    }

    /// Records that this server knows no later batch.
    pub fn agree(&mut self, upstream: &str) {
        self.agreed.insert(upstream.to_owned());
    }

    /// Whether no server has any report that waited at the start.
    pub fn all_agreed(&self) -> bool {
        self.last.is_none() || self.upstreams.is_subset(&self.agreed)
    }
}
