// SPDX-License-Identifier: GPL-3.0-or-later
//! Why what others tell is not taken.

use super::vector::Origin;
use bulkmark_filter::ParameterError;

/// An update cannot be applied.
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
    /// It continues another history than the one that is known.
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
    /// Its windows are so many or so far away that a clock must be wrong.
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
    /// A snapshot knows less than is known here.
    #[error(
        "the snapshot knows only {version} updates of the origin {origin}, and {have} are known here; it would be a step \
         back"
    )]
    Behind {
        /// The origin.
        origin: Origin,
        /// The version that is known.
        have: u64,
        /// That of the snapshot.
        version: u64,
    },
    /// A snapshot has what this server counted itself.
    #[error(
        "the snapshot has what this server counted itself (origin {origin}), so that it would count twice"
    )]
    Own {
        /// This server's origin.
        origin: Origin,
    },
    /// It is of filters of another size, or there is no memory.
    #[error("origin {origin}: {error}")]
    Parameter {
        /// The origin.
        origin: Origin,
        /// What does not go together.
        error: ParameterError,
    },
}

/// A step of a fleet's chain is not applied. Nothing is changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StepRefusal {
    /// It cannot be read, or says what cannot be. It is passed over, by everybody.
    #[error("{0}")]
    Junk(String),
    /// It was made for another key or another length of windows. It is passed over, by whoever is configured like this.
    #[error("it is of a fleet whose {name} is {theirs}, and here it is {ours}")]
    Unlike {
        /// What differs.
        name: &'static str,
        /// Here.
        ours: String,
        /// There.
        theirs: String,
    },
    /// Steps before it are missing: a snapshot has them.
    #[error("step {version} came, but {have} is the last one known here; those between are missing")]
    Gap {
        /// The step that is known.
        have: u64,
        /// The one that came.
        version: u64,
    },
    /// It would be the next one, but continues another chain than the one known here. When what follows does so, too, the log knows
    /// another history: a snapshot has it.
    #[error(
        "step {version} continues another chain than the one known here; was the log put back to an older state?"
    )]
    Fork {
        /// The step that came.
        version: u64,
    },
}
