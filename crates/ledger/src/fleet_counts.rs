// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts of a fleet as the beginning of a server's ledger: all counts, and the milters' batches that they include.
//!
//! A server remembers the last batch of each spool, a fleet all batches up to one and some above it. So if a batch of a spool is
//! missing in between, it must be counted first.

use crate::clock::now;
use crate::disk::errors::OpenError;
use crate::disk::load::Loaded;
use crate::disk::open;
use crate::image::file_of;
use crate::new_ledger::{self, NewLedgerError};
use crate::random::random;
use bulkmark_counts::history::fleet_mark::{FleetMark, origin_of_client};
use bulkmark_counts::history::vector::{Mark, Origin, Vector};
use bulkmark_counts::settings::Role;
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::member::Member;
use bulkmark_counts::state::merged::MergedCounts;
use bulkmark_counts::state::receipts::{LastBatch, Receipt, Reporter};
use bulkmark_counts::state::roles::State;
use std::io;
use std::path::{Path, PathBuf};

/// The number of withdrawals of a partner's reports up to which its later reports are found.
const MAX_WITHDRAWN: u32 = 10_000;

/// The counts of a fleet, as held by one of its aggregators.
pub struct FleetCounts {
    merged: MergedCounts,
    vector: Vector,
    key_id: u64,
    mark: FleetMark,
    origin: Origin,
    /// The last batch of each spool that is counted together with all before it.
    batches: Vec<(Reporter, u64)>,
    /// Clients of spools in which a batch is missing before a counted one.
    gaps: Vec<String>,
    partners: Vec<Partner>,
}

/// A partner with counted reports.
struct Partner {
    name: String,
    /// The origin of its counts in the fleet.
    origin: Origin,
    capacity: u32,
}

/// The reason why a fleet's counts cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FleetCountsError {
    /// The ledger cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The ledger belongs to no fleet.
    #[error("{0}: no step of a fleet is counted in it; expected the ledger of an aggregator")]
    NoFleet(PathBuf),
}

impl FleetCounts {
    /// Reads the ledger of an aggregator, `path` or the one in this directory, which no daemon may have open.
    ///
    /// # Errors
    /// See [`FleetCountsError`].
    pub fn read(path: &Path) -> Result<Self, FleetCountsError> {
        let path = file_of(path);
        let io = |reason| OpenError::Io { path: path.clone(), reason };
        let random = [random().map_err(io)?, random().map_err(io)?];
        let (Loaded { mut state, .. }, key_id) = open::open_any(&path, random)?;
        state.take_expired(now());
        let vector = state.vector();
        let Counts { merged, fleet, .. } = state.into_counts();
        if fleet.mark.version == 0 {
            return Err(FleetCountsError::NoFleet(path));
        }
        let (mut batches, mut gaps, mut partners, mut last_client) =
            (Vec::new(), Vec::new(), Vec::new(), None);
        for (client, spool, known) in fleet.marks.iter() {
            let (last, is_whole) = known.mark.last();
            if !is_whole {
                gaps.push(client.to_owned());
            }
            if last > 0 {
                batches.push((Reporter { client: client.to_owned(), spool }, last));
            }
            if last_client.replace(client).is_none_or(|name| name != client) {
                partners.extend(find_partner(fleet.origin, client, &merged));
            }
        }
        gaps.dedup();
        Ok(Self { merged, vector, key_id, mark: fleet.mark, origin: fleet.origin, batches, gaps, partners })
    }

    /// Returns the position of the chain in the ledger.
    #[must_use]
    pub const fn mark(&self) -> FleetMark {
        self.mark
    }

    /// Returns the id of the federation's key.
    #[must_use]
    pub const fn key_id(&self) -> u64 {
        self.key_id
    }

    /// Returns the clients with a missing batch before a counted one. If that batch comes later, a server takes it for counted.
    #[must_use]
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// Writes the ledger of a new server in `directory`, which continues from there: the milters' counted batches do not count again, and
    /// each partner keeps the rest of its quota.
    ///
    /// # Errors
    /// If there is a ledger already, or it cannot be written.
    pub fn write(self, directory: &Path) -> Result<PathBuf, NewLedgerError> {
        let receipt = Receipt { origin: self.origin, version: self.vector.get(self.origin).version };
        new_ledger::write(directory, (Role::Server, self.key_id), (self.merged, &self.vector), |state| {
            let State::Server(server) = state else {
                return Err(io::Error::other("it was made for a server, and is none"));
            };
            let changes = &mut server.counts.changes;
            let batches = self.batches.into_iter();
            let last = |number| LastBatch { number, receipt, at: now() };
            changes.receipts.extend(batches.map(|(reporter, number)| (reporter, Some(last(number)))));
            for Partner { name, origin, capacity } in self.partners {
                let member = Member::new(Origin(random()?), Mark::default(), vec![origin], capacity);
                changes.clients.insert(name.clone());
                server.limited.restore(name, member);
            }
            Ok(())
        })
    }
}

/// Finds the last origin of a client with counts, and the size of its filters: in another size its signatures would have other cells.
fn find_partner(fleet: Origin, name: &str, merged: &MergedCounts) -> Option<Partner> {
    let mut origins = (0..MAX_WITHDRAWN).map(|times| origin_of_client(fleet, name, times));
    let origin = origins.rfind(|&origin| merged.layers().get(origin).is_some())?;
    let capacity = merged.layers().get(origin)?.windows.values().next_back()?.capacity;
    Some(Partner { name: name.to_owned(), origin, capacity })
}
