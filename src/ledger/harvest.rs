// SPDX-License-Identifier: GPL-3.0-or-later
//! What a fleet counted, for a server's ledger to begin with: all counts, and which batches of its milters are among them.
//!
//! A server remembers the last batch of each spool, a fleet all batches up to one and some above it. So a spool of which a batch
//! is missing in between must get it counted first.

use crate::ledger::clock::now;
use crate::ledger::disk::commit;
use crate::ledger::disk::errors::{Fault, OpenError};
use crate::ledger::disk::load::Loaded;
use crate::ledger::disk::{open, schema};
use crate::ledger::history::fleet::{FleetMark, origin_of_client};
use crate::ledger::history::vector::{Mark, Origin, Vector};
use crate::ledger::image::file_of;
use crate::ledger::random::random;
use crate::ledger::settings::Role;
use crate::ledger::state::changes::Expired;
use crate::ledger::state::counts::Counts;
use crate::ledger::state::limited::Member;
use crate::ledger::state::merged::MergedCounts;
use crate::ledger::state::receipts::{Receipt, Reporter};
use crate::ledger::state::roles::State;
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
    /// Partners, and under which origin the fleet has what they brought.
    partners: Vec<(String, Origin)>,
}

/// A fleet's counts cannot be read, or not be written.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    /// The ledger cannot be opened, or not be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is none of a fleet.
    #[error("{0}: no step of a fleet is counted in it; expected the ledger of an aggregator")]
    NoFleet(PathBuf),
    /// There is a ledger already.
    #[error("{0} already exists")]
    Exists(PathBuf),
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
        let (mut batches, mut gaps, mut partners) = (Vec::new(), Vec::new(), Vec::new());
        for (client, spool, known) in fleet.marks.iter() {
            let (last, is_whole) = known.mark.last();
            if !is_whole {
                gaps.push(client.to_owned());
            }
            if last > 0 {
                batches.push((Reporter { client: client.to_owned(), spool }, last));
            }
            if partners.last().is_none_or(|(name, _)| name != client) {
                let mut origins =
                    (0..MAX_WITHDRAWN).map(|times| origin_of_client(fleet.origin, client, times));
                let brought = origins.rfind(|&origin| merged.layers().get(origin).is_some());
                partners.extend(brought.map(|origin| (client.to_owned(), origin)));
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
    pub fn write(self, directory: &Path) -> Result<PathBuf, HarvestError> {
        let path = directory.join(schema::FILE_NAME);
        if path.exists() {
            return Err(HarvestError::Exists(path));
        }
        let at = |fault: Fault| HarvestError::Open(fault.at(path.clone()));
        let io = |e| at(Fault::Io(e));
        schema::create(&path, Role::Server, self.key_id).map_err(at)?;
        let ids = [random().map_err(io)?, random().map_err(io)?];
        let (Loaded { db, mut state, .. }, _) = open::open_any(&path, ids)?;
        let State::Server(server) = &mut state else {
            return Err(at(Fault::Io(io::Error::other("it was made for a server, and is none"))));
        };
        let receipt = Receipt { origin: self.origin, version: self.vector.get(self.origin).version };
        let counts = &mut server.counts;
        for (reporter, number) in self.batches {
            counts.changes.receipts.insert(reporter, Some((number, receipt)));
        }
        let capacity = counts.settings.capacity.get();
        for (name, former) in self.partners {
            let member = Member::new(Origin(random().map_err(io)?), Mark::default(), vec![former], capacity);
            counts.changes.clients.insert(name.clone());
            server.limited.restore(name, member);
        }
        counts.merged = self.merged;
        counts.merged.mark_dirty();
        for (origin, mark) in self.vector.iter() {
            counts.merged.vector_mut().set(origin, mark);
        }
        (counts.adopted, counts.replaced) = (true, true);
        let result = commit::checkpoint(&db, &mut state, &Expired::default());
        result.map_err(|e| io(io::Error::other(e.to_string())))?;
        Ok(path)
    }
}
