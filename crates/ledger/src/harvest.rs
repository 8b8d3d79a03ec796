// SPDX-License-Identifier: GPL-3.0-or-later
//! What a fleet counted, for a server's ledger to begin with: all counts, and which batches of its milters are among them.
//!
//! A server remembers the last batch of each spool, a fleet all batches up to one and some above it. So a spool of which a batch
//! is missing in between must get it counted first.

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
use bulkmark_counts::state::receipts::{Receipt, Reporter};
use bulkmark_counts::state::roles::State;
use std::io;
use std::path::{Path, PathBuf};

/// How often a partner's reports may have been taken back for those since to be found.
const MAX_WITHDRAWN: u32 = 10_000;

/// The counts of a fleet, as one of its aggregators has them.
pub struct Harvest {
    merged: MergedCounts,
    vector: Vector,
    key_id: u64,
    mark: FleetMark,
    origin: Origin,
    /// The last batch of each spool that is counted, with all before it.
    batches: Vec<(Reporter, u64)>,
    /// Spools of which a batch is missing before one that is counted.
    gaps: Vec<String>,
    partners: Vec<Partner>,
}

/// A partner of whom something is counted.
struct Partner {
    name: String,
    /// Under which the fleet has what it brought.
    origin: Origin,
    capacity: u32,
}

/// A fleet's counts cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    /// The ledger cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is none of a fleet.
    #[error("{0}: no step of a fleet is counted in it; expected the ledger of an aggregator")]
    NoFleet(PathBuf),
}

impl Harvest {
    /// Reads the ledger of an aggregator, `path` or the one in this directory, which no daemon may have open.
    ///
    /// # Errors
    /// [`HarvestError`]
    pub fn read(path: &Path) -> Result<Self, HarvestError> {
        let path = file_of(path);
        let io = |reason| OpenError::Io { path: path.clone(), reason };
        let random = [random().map_err(io)?, random().map_err(io)?];
        let (Loaded { mut state, .. }, key_id) = open::open_any(&path, random)?;
        state.take_expired(now());
        let vector = state.vector();
        let Counts { merged, fleet, .. } = state.into_counts();
        if fleet.mark.version == 0 {
            return Err(HarvestError::NoFleet(path));
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
                partners.extend(brought(fleet.origin, client, &merged));
            }
        }
        gaps.dedup();
        Ok(Self { merged, vector, key_id, mark: fleet.mark, origin: fleet.origin, batches, gaps, partners })
    }

    /// Where the chain stands in it.
    #[must_use]
    pub const fn mark(&self) -> FleetMark {
        self.mark
    }

    /// The number of the federation's key.
    #[must_use]
    pub const fn key_id(&self) -> u64 {
        self.key_id
    }

    /// The clients of which a batch is not counted although a later one is. If it comes after all, a server takes it for counted.
    #[must_use]
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// Writes it as the ledger of a new server in `directory`, which goes on from there: the milters' batches that are counted are not
    /// counted again, and partners may bring what they may, less what they brought.
    ///
    /// # Errors
    /// When there is a ledger already, or it cannot be written.
    pub fn write(self, directory: &Path) -> Result<PathBuf, NewLedgerError> {
        let receipt = Receipt { origin: self.origin, version: self.vector.get(self.origin).version };
        new_ledger::write(directory, (Role::Server, self.key_id), (self.merged, &self.vector), |state| {
            let State::Server(server) = state else {
                return Err(io::Error::other("it was made for a server, and is none"));
            };
            let changes = &mut server.counts.changes;
            let batches = self.batches.into_iter();
            changes.receipts.extend(batches.map(|(reporter, number)| (reporter, Some((number, receipt)))));
            for Partner { name, origin, capacity } in self.partners {
                let member = Member::new(Origin(random()?), Mark::default(), vec![origin], capacity);
                changes.clients.insert(name.clone());
                server.limited.restore(name, member);
            }
            Ok(())
        })
    }
}

/// The last origin of a client under which something is counted, and the size of its filters: another would take other cells.
fn brought(fleet: Origin, name: &str, merged: &MergedCounts) -> Option<Partner> {
    let mut origins = (0..MAX_WITHDRAWN).map(|times| origin_of_client(fleet, name, times));
    let origin = origins.rfind(|&origin| merged.layers().get(origin).is_some())?;
    let capacity = merged.layers().get(origin)?.windows.values().next_back()?.capacity;
    Some(Partner { name: name.to_owned(), origin, capacity })
}
