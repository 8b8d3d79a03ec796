// SPDX-License-Identifier: GPL-3.0-or-later
//! All counts of a ledger, its own and those of others together: to show, compare and merge.

use crate::clock::now;
use crate::disk::errors::OpenError;
use crate::disk::load::Loaded;
use crate::disk::open;
use crate::disk::schema::FILE_NAME;
use crate::new_ledger::{self, NewLedgerError};
use crate::random::random;
use crate::status::Status;
use bulkmark_counts::history::vector::{Origin, Vector};
use bulkmark_counts::history::window::Window;
use bulkmark_counts::settings::Role;
use bulkmark_counts::state::assembly::Assembly;
use bulkmark_counts::state::counts::Counts;
use bulkmark_counts::state::merged::MergedCounts;
use bulkmark_counts::state::merged_window::MergedWindow;
use bulkmark_counts::state::roles::State;
use bulkmark_filter::{Merged, ParameterError};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// All counts of one ledger.
pub struct Image {
    role: Role,
    key_id: u64,
    merged: MergedCounts,
    vector: Vector,
    /// The origins of these counts; a milter's own counts have no place in the vector.
    origins: BTreeSet<Origin>,
}

/// An origin that two images count up to different versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionDifference {
    /// The origin.
    pub origin: Origin,
    /// Its version in the first image.
    pub first: u64,
    /// Its version in the second.
    pub second: u64,
}

/// The differences of two images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Windows that were compared.
    pub windows: usize,
    /// Cells that differ.
    pub cells: u64,
    /// The largest difference of two cells.
    pub largest: u32,
    /// Origins that the images count up to different versions.
    pub versions: Vec<VersionDifference>,
}

impl Difference {
    /// Whether there is no difference.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.cells == 0 && self.versions.is_empty()
    }
}

/// The reason why two images cannot be added up.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The sum would count some reports twice.
    #[error("both hold counts of the origin {0}; their sum would count these twice")]
    CommonOrigin(Origin),
    /// A parameter differs.
    #[error("{name} is {ours} in the first ledger and {theirs} in another")]
    Differs {
        /// The parameter.
        name: &'static str,
        /// Its value in the first ledger.
        ours: String,
        /// Its value in the other ledger.
        theirs: String,
    },
    /// Their filters do not fit.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

fn check_equal(name: &'static str, ours: String, theirs: String) -> Result<(), MergeError> {
    if ours == theirs { Ok(()) } else { Err(MergeError::Differs { name, ours, theirs }) }
}

/// Returns the file of a ledger, from its own path or that of its directory.
pub(crate) fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
}

impl Image {
    /// Reads and checks all of the ledger `path`, which no daemon may have open. Returns also its status, with false bulk at this
    /// threshold.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path, threshold: u32) -> Result<(Self, Status), OpenError> {
        let path = file_of(path);
        let io = |reason| OpenError::Io { path: path.clone(), reason };
        let random = [random().map_err(io)?, random().map_err(io)?];
        let (Loaded { mut state, .. }, key_id) = open::open_any(&path, random)?;
        // The cells include reports after the last update; the versions must include them, too.
        state.cut(now());
        let status = Status::of(&state, Some(threshold));
        let image = Self::of(state, key_id).map_err(|e| crate::disk::errors::no_memory(e).at(path))?;
        Ok((image, status))
    }

    fn of(mut state: State, key_id: u64) -> Result<Self, ParameterError> {
        let (role, vector) = (state.role(), state.vector());
        let mut origins = origins_of(&vector);
        let layers = match &mut state {
            State::Server(server) => server.limited.take_layers(),
            _ => Vec::new(),
        };
        let Counts { local, mut merged, .. } = state.into_counts();
        for (origin, layer) in layers {
            merged.layers_mut().insert(origin, layer)?;
        }
        for generation in local.generations.iter().filter(|generation| !generation.row.slices().is_empty()) {
            origins.insert(local.origin());
            merged.merge_generation(generation)?;
        }
        Ok(Self { role, key_id, merged, vector, origins })
    }

    /// Returns the image of counts that came from a server, whose key has this id.
    #[must_use]
    pub fn of_server(assembly: Assembly, key_id: u64) -> Self {
        let merged = assembly.into_counts();
        let vector = merged.vector().clone();
        Self { role: Role::Server, key_id, origins: origins_of(&vector), merged, vector }
    }

    /// Returns the version up to which each origin is counted.
    #[must_use]
    pub const fn vector(&self) -> &Vector {
        &self.vector
    }

    /// Returns the ledger's role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns the id of the federation's key.
    #[must_use]
    pub const fn key_id(&self) -> u64 {
        self.key_id
    }

    /// Returns the status, with false bulk at this threshold; the counts of all origins are shown together.
    #[must_use]
    pub fn status(&self, threshold: u32) -> Status {
        Status::of_counts(&self.merged, self.vector.clone(), threshold)
    }

    /// Compares all cells with those of another image. Windows before the oldest of either are ignored: one ledger may have
    /// dropped them as expired.
    ///
    /// # Errors
    /// If filters of one capacity have different sizes, which cannot happen.
    pub fn difference(&self, other: &Self) -> Result<Difference, ParameterError> {
        let oldest = |merged: &MergedCounts| {
            let layers = merged.layers().iter().flat_map(|(_, layer)| layer.windows.keys().copied());
            merged.windows().iter().map(|window| window.window).chain(layers).min()
        };
        let from = oldest(&self.merged).max(oldest(&other.merged));
        let in_range = |window: &&MergedWindow| Some(window.window) >= from;
        // Filters of one window may be of several sizes.
        let filters: BTreeSet<(Window, u32)> = [&self.merged, &other.merged]
            .into_iter()
            .flat_map(|merged| merged.windows().iter().filter(in_range).map(|w| (w.window, w.capacity)))
            .collect();
        let windows: BTreeSet<Window> = filters.iter().map(|&(window, _)| window).collect();
        let mut difference = Difference { windows: windows.len(), ..Difference::default() };
        for (window, capacity) in filters {
            let of =
                |merged: &'_ MergedCounts| merged.of_size(window, capacity).map_or(0, |w| w.slices.len());
            for n in 0..of(&self.merged).max(of(&other.merged)) {
                let both = (self.slice(window, capacity, n), other.slice(window, capacity, n));
                let (cells, largest) = match both {
                    (Some(a), Some(b)) => a.differences(b)?,
                    (Some(one), None) | (None, Some(one)) => one.differences(&Merged::new(one.blocks())?)?,
                    (None, None) => (0, 0),
                };
                difference.cells += cells;
                difference.largest = largest.max(difference.largest);
            }
        }
        let (cells, largest) = self.merged.layers().differences(other.merged.layers(), from);
        difference.cells += cells;
        difference.largest = largest.max(difference.largest);
        for &origin in origins_of(&self.vector).union(&origins_of(&other.vector)) {
            let (ours, theirs) = (self.vector.get(origin), other.vector.get(origin));
            if ours != theirs {
                let (first, second) = (ours.version, theirs.version);
                difference.versions.push(VersionDifference { origin, first, second });
            }
        }
        Ok(difference)
    }

    fn slice(&self, window: Window, capacity: u32, number: usize) -> Option<&Merged> {
        self.merged.of_size(window, capacity)?.slices.get(number)
    }

    /// Adds all counts of another image, which must have no origin in common with this one.
    ///
    /// # Errors
    /// If it has one, or a parameter differs.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        check_equal("role", self.role.to_string(), other.role.to_string())?;
        check_equal("federation key id", format!("{:016x}", self.key_id), format!("{:016x}", other.key_id))?;
        if let Some(&origin) = self.origins.intersection(&other.origins).next() {
            return Err(MergeError::CommonOrigin(origin));
        }
        self.merged.add_all(&other.merged)?;
        for (origin, mark) in other.vector.iter() {
            self.vector.set(origin, mark);
        }
        self.origins.extend(&other.origins);
        Ok(())
    }

    /// Writes the image as a new ledger in `directory`, which has no own counts and holds all of these as others'.
    ///
    /// # Errors
    /// If there is one already, or it cannot be written.
    pub fn write(self, directory: &Path) -> Result<PathBuf, NewLedgerError> {
        new_ledger::write(directory, (self.role, self.key_id), (self.merged, &self.vector), |_| Ok(()))
    }
}

fn origins_of(vector: &Vector) -> BTreeSet<Origin> {
    vector.iter().filter(|(_, mark)| mark.version > 0).map(|(origin, _)| origin).collect()
}
