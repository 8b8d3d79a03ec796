// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts of a server as the beginning of a fleet's chain: a first step, and a snapshot of the counts behind it.
//!
//! The step counts nothing itself, and names a hash that no step before it has. So no member applies it: each takes the snapshot, and
//! waits until it is there. The log accepts one first step only, which decides between servers. The same ledger always gives the same
//! bytes for both, so an interrupted import can continue.

use crate::clock::now;
use crate::disk::errors::{OpenError, no_memory};
use crate::disk::load::Loaded;
use crate::disk::open;
use crate::image::file_of;
use crate::random::random;
use crate::status::Status;
use bulkmark_counts::history::chunks::{CHUNK_BLOCKS, blocks_of, layer_parts};
use bulkmark_counts::history::fleet_mark::{FleetMark, origin_of_client};
use bulkmark_counts::history::row::Row;
use bulkmark_counts::history::spool_mark::SpoolMark;
use bulkmark_counts::history::step::{SpoolMarks, Step, StepHead};
use bulkmark_counts::history::vector::{Chain, Origin, Vector};
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::fleet::marks::KnownMark;
use bulkmark_counts::state::fleet::parts::{Entry, Head, Packer};
use bulkmark_counts::state::merged::MergedCounts;
use bulkmark_counts::state::receipts::Reporter;
use bulkmark_counts::state::roles::State;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The content whose hash the first step names as the step before it.
const BEFORE: &[u8] = b"bulkmark fleet: counts of a server";

/// The counts of a server, and the last counted batches of its clients.
pub struct Seed {
    merged: MergedCounts,
    vector: Vector,
    key_id: u64,
    window: u64,
    /// The spools, each with the number of its last counted batch.
    batches: Vec<(Reporter, u64)>,
    origin: Origin,
}

/// A ledger's counts cannot begin a chain.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The ledger belongs neither to a server nor to a milter that counts alone.
    #[error(
        "{path}: this is {role}'s ledger; a fleet begins with the ledger of a server, or of a milter without servers"
    )]
    Role {
        /// The file.
        path: PathBuf,
        /// Its owner.
        role: &'static str,
    },
    /// The ledger holds back reports that are in no update yet.
    #[error(
        "{path}: it holds back {reports} reports until its peers answer; start the server once more, and stop it when bulkmark status \
         --server lists no silent peer"
    )]
    HoldsReports {
        /// The file.
        path: PathBuf,
        /// The number of reports held back.
        reports: usize,
    },
    /// The ledger's windows or key are not the fleet's.
    #[error("{path}: its {name} is {found}, and {expected} is configured")]
    Differs {
        /// The file.
        path: PathBuf,
        /// The parameter that differs.
        name: &'static str,
        /// Its value in the file.
        found: String,
        /// Its configured value.
        expected: String,
    },
}

impl Seed {
    /// Reads the ledger `path`, or the one in this directory, which no daemon may have open. `key_id` is the id of the fleet's key, and
    /// `window` the length of its windows in seconds.
    ///
    /// # Errors
    /// See [`SeedError`].
    pub fn read(path: &Path, key_id: u64, window: u64) -> Result<Self, SeedError> {
        let path = file_of(path);
        let io = |reason| OpenError::Io { path: path.clone(), reason };
        let random = [random().map_err(io)?, random().map_err(io)?];
        let (Loaded { mut state, .. }, found) = open::open_any(&path, random)?;
        let check_equal = |name, found: String, expected: String| {
            let path = path.clone();
            if found == expected { Ok(()) } else { Err(SeedError::Differs { path, name, found, expected }) }
        };
        check_equal("federation key id", format!("{found:016x}"), format!("{key_id:016x}"))?;
        if matches!(state, State::Cache(_)) {
            return Err(SeedError::Role { path, role: "a fleet's machine or a server's milter" });
        }
        // The cells include reports after the last update; the versions must include them, too.
        state.cut(now());
        if let Some(reports) = Status::of(&state, None).held {
            return Err(SeedError::HoldsReports { path, reports });
        }
        let seed = Self::of(state, key_id, window).map_err(|e| no_memory(e).at(path.clone()))?;
        // Windows of user reports have the same length everywhere.
        for merged in seed.merged.windows().iter().filter(|merged| !merged.window.is_user_report()) {
            check_equal("window", format!("{}s", merged.window.length), format!("{window}s"))?;
        }
        Ok(seed)
    }

    fn of(mut state: State, key_id: u64, window: u64) -> Result<Self, bulkmark_filter::ParameterError> {
        let vector = state.vector();
        let (mut batches, mut layers) = (Vec::new(), Vec::new());
        if let State::Server(server) = &mut state {
            batches = server.receipts.iter().collect();
            batches.sort_unstable();
            let names: Vec<_> = server.limited.iter().map(|(name, _)| name.to_owned()).collect();
            layers = names.into_iter().zip(server.limited.take_layers()).collect();
        }
        let Counts { local, mut merged, .. } = state.into_counts();
        let mut hash = Sha256::new();
        hash.update(b"bulkmark fleet of a server");
        hash.update(local.origin().0.to_le_bytes());
        hash.update(vector.to_string().as_bytes());
        for (Reporter { client, spool }, number) in &batches {
            hash.update(format!("{client} {spool} {number}\n").as_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        let origin = Origin(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
        for (name, (_, layer)) in layers {
            // The origin under which the fleet knows this client.
            merged.layers_mut().insert(origin_of_client(origin, &name, 0), layer)?;
        }
        for generation in local.generations.iter().filter(|generation| !generation.row.slices().is_empty()) {
            merged.merge_generation(generation)?;
        }
        Ok(Self { merged, vector, key_id, window, batches, origin })
    }

    /// Returns the bytes of the first step, for a log whose place for batches has the number `made`.
    #[must_use]
    pub fn step(&self, made: u64) -> Vec<u8> {
        let head = StepHead {
            origin: self.origin,
            version: 1,
            before: Chain::of(BEFORE),
            key_id: self.key_id,
            window: self.window,
            epoch: 1,
            made,
            covers: 0,
            time: 0,
            bound: 0,
        };
        Step { head, marks: SpoolMarks::new(), bulk: Vec::new(), updates: Vec::new() }.encode()
    }

    /// Hands the parts of the snapshot behind the first step, which is at `place`, to `take`, one after the other, until `take` returns
    /// false.
    pub fn parts(&self, made: u64, place: u64, mut take: impl FnMut(Vec<u8>) -> bool) {
        let mut packer = Packer::default();
        let (mut rows, marks) = (0, self.batches.len() as u64);
        let mark =
            FleetMark { version: 1, chain: Chain::of(&self.step(made)), epoch: 1, made, covers: 0, place };
        let Self { origin, key_id, window, .. } = *self;
        let head = Head { mark, origin, time: 0, key_id, window, vector: self.vector.clone() };
        packer.push(&Entry::Head(head));
        // A server has no list of bulk, so holders of bulk alone begin with nothing.
        let partial = Entry::Partial { marks, sections: 0, bound: 0 };
        for entry in self.marks().chain([partial]).chain(self.rows().map(Entry::Row)) {
            rows += u64::from(matches!(entry, Entry::Row(_)));
            packer.push(&entry);
            while let Some(part) = packer.take(false) {
                if !take(part) {
                    return;
                }
            }
        }
        packer.push(&Entry::End { rows, marks });
        while let Some(part) = packer.take(true) {
            if !take(part) {
                return;
            }
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        let cells = self.merged.windows().iter().flat_map(|merged| {
            (0..).zip(&merged.slices).flat_map(move |(slice, filter)| {
                let blocks = filter.blocks();
                (0..).zip(0..blocks.div_ceil(CHUNK_BLOCKS)).map(move |(chunk, at)| Row {
                    window: merged.window,
                    capacity: merged.capacity,
                    slice,
                    chunk,
                    client: None,
                    bytes: filter.bytes(blocks_of(at, blocks)),
                })
            })
        });
        let layers = self.merged.layers().iter().flat_map(|(origin, layer)| {
            layer.windows.iter().flat_map(move |(&window, held)| {
                let row = move |chunk| {
                    let bytes = held.part(chunk)?;
                    let capacity = held.capacity;
                    Some(Row { window, capacity, slice: 0, chunk, client: Some(origin), bytes })
                };
                layer_parts(held.filter.blocks()).filter_map(row)
            })
        });
        cells.chain(layers)
    }

    /// Returns a mark for each spool: all batches up to the last one are counted.
    fn marks(&self) -> impl Iterator<Item = Entry> {
        self.batches.iter().map(|(Reporter { client, spool }, number)| {
            let mut mark = SpoolMark::default();
            mark.take(*number, *number);
            Entry::Mark { client: client.clone(), spool: *spool, known: KnownMark { at: 1, mark } }
        })
    }
}
