// SPDX-License-Identifier: GPL-3.0-or-later
//! The reasons for refusing data of other machines.

use super::vector::Origin;
use bulkmark_filter::ParameterError;

/// The reason why an update cannot be applied.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Updates before it are missing.
    #[error(
        "origin {origin}: version {version} came, but {have} is the last one known here; those between are missing"
    )]
    Gap {
        /// The origin.
        origin: Origin,
        /// The version that is known.
        have: u64,
        /// The version that came.
        version: u64,
    },
    /// It continues another history than the known one.
    #[error(
        "origin {origin}: version {version} continues another history than the one known here; was a server \
         restored from an old backup?"
    )]
    Fork {
        /// The origin.
        origin: Origin,
        /// The version that came.
        version: u64,
    },
    /// It has too many windows, or windows too far away: a clock must be wrong.
    #[error("origin {origin}: version {version} counts in the window {window}, {why}; is a clock wrong?")]
    Clock {
        /// The origin.
        origin: Origin,
        /// The version that came.
        version: u64,
        /// The window, as start and length in seconds.
        window: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A snapshot has fewer updates of an origin than are known here.
    #[error(
        "the snapshot knows only {version} updates of the origin {origin}, and {have} are known here; it would be a step \
         back"
    )]
    Behind {
        /// The origin.
        origin: Origin,
        /// The version that is known.
        have: u64,
        /// The version in the snapshot.
        version: u64,
    },
    /// A snapshot contains counts of this server itself.
    #[error(
        "the snapshot has what this server counted itself (origin {origin}), so that it would count twice"
    )]
    Own {
        /// This server's origin.
        origin: Origin,
    },
    /// Its filters have another size, or there is not enough memory.
    #[error("origin {origin}: {error}")]
    Parameter {
        /// The origin.
        origin: Origin,
        /// The mismatch.
        error: ParameterError,
    },
}

/// The reason why a step of a fleet's chain is not applied. Nothing is changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StepRefusal {
    /// It cannot be read, or has impossible values. All readers skip it.
    #[error("{0}")]
    Junk(String),
    /// It was made for another key or another length of windows. All readers with this configuration skip it.
    #[error("{name} differs: {theirs} in the fleet, {ours} here")]
    Unlike {
        /// The setting that differs.
        name: &'static str,
        /// Its value here.
        ours: String,
        /// Its value in the step.
        theirs: String,
    },
    /// Steps before it are missing; a snapshot contains them.
    #[error("step {version} came, but {have} is the last one known here; those between are missing")]
    Gap {
        /// The last known step.
        have: u64,
        /// The step that came.
        version: u64,
    },
    /// It has the next version, but continues another chain than the known one. If later steps do so too, the log has another history; a
    /// snapshot contains it.
    #[error(
        "step {version} continues another chain than the one known here; was the log put back to an older state?"
    )]
    Fork {
        /// The step that came.
        version: u64,
    },
}
