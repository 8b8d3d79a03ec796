// SPDX-License-Identifier: GPL-3.0-or-later
//! The state of a ledger in any role, and the operations of all roles.

use crate::history::vector::{Origin, Vector};
use crate::settings::Role;
use crate::state::cache::Cache;
use crate::state::counts::Counts;
use crate::state::expired::Expired;
use crate::state::report::{Addition, Report, RetryKey};
use crate::state::retries::Retries;
use crate::state::server::Server;
use crate::state::shares::{Shares, add_up};
use crate::state::spool::Spool;
use crate::state::user_report::ReportSum;
use bulkmark_types::{Signature, weigh};

/// The state of a milter that counts alone.
pub struct Site {
    /// All counts.
    pub counts: Counts,
    /// Messages that were refused temporarily.
    pub retries: Retries,
    /// Reports that waited for a server when this milter had one. They count, and are never sent.
    pub left: Spool,
}

/// All counts of a ledger in memory, with the changes that are not on disk yet. Each role has its own operations.
pub enum State {
    /// A milter without servers.
    Site(Site),
    /// A milter whose counts come from servers or a fleet.
    Cache(Cache),
    /// A signature server.
    Server(Server),
}

/// A ledger of this role does not have the requested operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongRole;

impl State {
    /// The role of this ledger.
    pub const fn role(&self) -> Role {
        match self {
            Self::Site(_) => Role::Site,
            Self::Cache(_) => Role::Cache,
            Self::Server(_) => Role::Server,
        }
    }

    /// The counts that every role has.
    pub const fn counts(&self) -> &Counts {
        match self {
            Self::Site(site) => &site.counts,
            Self::Cache(cache) => &cache.counts,
            Self::Server(server) => &server.counts,
        }
    }

    /// The counts, to change them.
    pub const fn counts_mut(&mut self) -> &mut Counts {
        match self {
            Self::Site(site) => &mut site.counts,
            Self::Cache(cache) => &mut cache.counts,
            Self::Server(server) => &mut server.counts,
        }
    }

    /// Returns only the counts.
    pub fn into_counts(self) -> Counts {
        match self {
            Self::Site(site) => site.counts,
            Self::Cache(cache) => cache.counts,
            Self::Server(server) => server.counts,
        }
    }

    /// The state of a milter with upstream servers.
    ///
    /// # Errors
    /// If the role is another one.
    pub const fn cache(&mut self) -> Result<&mut Cache, WrongRole> {
        if let Self::Cache(cache) = self { Ok(cache) } else { Err(WrongRole) }
    }

    /// The state of a server.
    ///
    /// # Errors
    /// If the role is another one.
    pub const fn server(&mut self) -> Result<&mut Server, WrongRole> {
        if let Self::Server(server) = self { Ok(server) } else { Err(WrongRole) }
    }

    /// Own reports that are not in the merged counts; a server has none.
    pub const fn spool(&self) -> Option<&Spool> {
        match self {
            Self::Site(site) => Some(&site.left),
            Self::Cache(cache) => Some(&cache.spool),
            Self::Server(_) => None,
        }
    }

    /// Temporarily refused messages; none at a server.
    pub const fn retries(&self) -> Option<&Retries> {
        match self {
            Self::Site(site) => Some(&site.retries),
            Self::Cache(cache) => Some(&cache.retries),
            Self::Server(_) => None,
        }
    }

    /// The count of a signature. Never too low.
    pub fn count(&self, signature: Signature, now: u64) -> u32 {
        match self {
            Self::Server(server) => server.count(signature, now),
            _ => self.counts().count_at_milter(signature, now).saturating_add(self.pending(signature)),
        }
    }

    /// The count of user reports by a tagged signature, where a report of others' users weighs `thousandths` of a local one.
    pub fn weighed(&self, signature: Signature, thousandths: u32, now: u64) -> u32 {
        weigh(self.count(signature, now), self.counts().user_reports.own(signature).units, thousandths)
    }

    fn pending(&self, signature: Signature) -> u32 {
        self.spool().map_or(0, |spool| spool.pending(signature))
    }

    /// The parts of the count of `signature`.
    pub fn shares(&self, signature: Signature, now: u64) -> Shares {
        let own = self.counts().local.generations.count_by_window(signature, now);
        let (own, others) = match self {
            Self::Server(server) => (
                add_up(own.into_iter().chain(server.limited.count_by_window(signature, now))),
                self.counts().merged.count_by_window(signature, now),
            ),
            _ => (own, self.counts().others_by_window(signature, now)),
        };
        let ReportSum { units: said, reporters } = self.counts().user_reports.own(signature);
        Shares { own, others, waiting: self.pending(signature), said, reporters, asked: None }
    }

    /// Adds a message's report. Returns the counts afterwards, of its signatures and its questions.
    ///
    /// # Errors
    /// A server accepts batches, but no reports.
    pub fn report(&mut self, report: &Report) -> Result<Vec<u32>, WrongRole> {
        let (counts, retries) = self.of_milter()?;
        counts.clock = report.now;
        let again = retries.again(&mut counts.changes, report);
        report.additions(again).for_each(|addition| self.add(addition, report.now));
        Ok(report.wanted().map(|signature| self.count(signature, report.now)).collect())
    }

    /// Remembers temporarily refused messages.
    ///
    /// # Errors
    /// A server refuses no messages.
    pub fn remember(&mut self, keys: Vec<RetryKey>, now: u64) -> Result<(), WrongRole> {
        let (counts, retries) = self.of_milter()?;
        retries.remember_all(&mut counts.changes, keys, now);
        Ok(())
    }

    /// The counts and retries of a milter.
    pub(crate) const fn of_milter(&mut self) -> Result<(&mut Counts, &mut Retries), WrongRole> {
        match self {
            Self::Site(Site { counts, retries, .. }) | Self::Cache(Cache { counts, retries, .. }) => {
                Ok((counts, retries))
            }
            Self::Server(_) => Err(WrongRole),
        }
    }

    /// Counts an addition of a milter; with upstream servers, a shared one waits in the spool.
    pub(crate) fn add(&mut self, addition: Addition, now: u64) {
        match self {
            Self::Cache(cache) => cache.add(addition, now),
            _ => self.counts_mut().add(addition.signature, addition.times, now),
        }
    }

    /// The version up to which each origin is counted here, including a server's own.
    pub fn vector(&self) -> Vector {
        match self {
            Self::Server(server) => server.vector(),
            _ => self.counts().merged.vector().clone(),
        }
    }

    /// The origins whose history only this ledger writes.
    pub fn own_origins(&self) -> Vec<Origin> {
        if matches!(self, Self::Server(server) if server.peer_check.waits()) {
            // Others may know more of them.
            return Vec::new();
        }
        let mut own = vec![self.counts().local.origin()];
        if let Self::Server(server) = self {
            own.extend(server.limited.iter().map(|(_, member)| member.origin));
        }
        own
    }

    /// Makes an update of a server's counts since the last one; other roles make none.
    pub fn cut(&mut self, now: u64) {
        if let Self::Server(server) = self {
            server.cut(now);
        }
    }

    /// Whether there is growth for an update.
    pub fn has_grown(&self) -> bool {
        matches!(self, Self::Server(server) if server.counts.local.has_grown() || server.limited.has_grown() || server.has_bulk_news())
    }

    /// Whether the changes must be written as a whole: updates that follow a snapshot or a new origin.
    pub const fn needs_checkpoint(&self) -> bool {
        self.counts().unwritten.is_apart()
            || self.counts().unwritten.asked
            || matches!(self, Self::Server(server) if server.renewed || server.peer_check.changed)
    }

    /// Removes expired state from memory, and returns it.
    pub fn take_expired(&mut self, now: u64) -> Expired {
        let counts = self.counts_mut();
        let keep_updates = counts.settings.federation.keep_updates.as_secs();
        let (local, merged) = (counts.local.generations.take_expired(now), counts.merged.take_expired(now));
        let held = counts.held.take_expired(now);
        counts.take_expired_reports(now);
        self.judge(now);
        let retries = match self {
            Self::Site(Site { retries, .. }) | Self::Cache(Cache { retries, .. }) => {
                retries.take_expired(now)
            }
            Self::Server(server) => {
                server.limited.take_expired(now);
                Vec::new()
            }
        };
        let updates_before = Some(now.saturating_sub(keep_updates));
        Expired { local, merged, held, retries, updates_before, now: Some(now) }
    }
}
