// SPDX-License-Identifier: GPL-3.0-or-later
//! What a start finds in the spool, and who has to be asked about it.
//!
//! The file may be an old copy that was put back. Then what waits in it may have been sent since, under numbers that would be
//! given again. Only the servers know. So after a start each server is asked, by an empty batch under the number of the last
//! one that is known here, before anything new is sent to it: a server that knows a later one refuses it. And what waited
//! already at the start goes nowhere until all servers have been asked, since any of them may have counted it.

use std::collections::BTreeSet;

/// What was there when the file was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Inherited {
    /// Reports below this number were there.
    end: u64,
    /// The number of the last batch that was begun before; none when there is nothing to ask, as in a new spool.
    last: Option<u64>,
    /// All servers that may have something of this spool.
    upstreams: BTreeSet<String>,
    /// Those that know no later batch.
    agreed: BTreeSet<String>,
}

impl Inherited {
    /// Reports below `end`, and batches up to the number `last`. `upstreams` are those that are to be asked.
    pub(crate) fn new(end: u64, last: u64, upstreams: &[String]) -> Self {
        let upstreams = upstreams.iter().cloned().collect();
        Self { end, last: Some(last), upstreams, agreed: BTreeSet::new() }
    }

    /// Whether the report of this number was there at the start.
    pub(crate) const fn has(&self, report: u64) -> bool {
        report < self.end
    }

    /// The number of the first report that was made since.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// The number under which this server is still to be asked.
    pub(crate) fn question(&self, upstream: &str) -> Option<u64> {
        self.last.filter(|_| !self.agreed.contains(upstream))
    }

    /// This server knows no later batch.
    pub(crate) fn agree(&mut self, upstream: &str) {
        self.agreed.insert(upstream.to_owned());
    }

    /// Whether no server has anything of what waited at the start.
    pub(crate) fn all_agreed(&self) -> bool {
        self.last.is_none() || self.upstreams.is_subset(&self.agreed)
    }
}
