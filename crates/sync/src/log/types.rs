// SPDX-License-Identifier: GPL-3.0-or-later
//! What is said to a log, and what it answers.

use bulkmark_counts::Limits;
use std::num::NonZeroU32;

/// A number that the log gives what it stores: it grows, with gaps or without. 0 is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

/// Bytes of a batch, a step or a part of a snapshot at most.
pub const MAX_BYTES: usize = 960 << 10;

/// Bytes of what a member says of itself at most.
pub const MAX_STATE_REPORT: usize = 32 << 10;

/// By what a batch is known while it is appended again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchId {
    /// The random number of its spool.
    pub spool: u64,
    /// Its number there.
    pub number: u64,
    /// How often the log was found not to have it although it had said so, or heard of it. By another attempt it is another message.
    pub attempt: u32,
}

/// A batch as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Where.
    pub place: Place,
    /// Who appended it: the name that belongs to the account or role, as [`Client::name`].
    pub client: String,
    /// When, by the log's clock, in seconds since 1970.
    pub at: u64,
    /// What was appended.
    pub bytes: Vec<u8>,
}

/// A step as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where.
    pub place: Place,
    /// What was appended.
    pub bytes: Vec<u8>,
}

/// What a member says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateReport {
    /// Its name, as the log proves it.
    pub name: String,
    /// How long ago it said so, by the log's clock, in seconds.
    pub seconds_ago: u64,
    /// What it said.
    pub bytes: Vec<u8>,
}

/// Bytes of a snapshot, at most [`MAX_BYTES`].
pub type Part = Vec<u8>;

/// Which log it is, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// What tells this place for batches from one that was made anew: a time of creation, or a random number.
    pub made: u64,
    /// The last batch.
    pub batches: Place,
    /// The last step.
    pub steps: Place,
    /// The first step that is still kept, or the next one where none is.
    pub first_step: Place,
}

/// One that may report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its name: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// What it may bring; none for an own one.
    pub limits: Option<Limits>,
    /// How often what it brought was taken back. It begins anew each time.
    pub withdrawn: u32,
    /// Reports a second that it may bring, where the log does not see to that itself; none: as many as it likes.
    pub rate: Option<NonZeroU32>,
}

/// A log did not do what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be reached, or does not answer in time; or something that it needs is not there.
    #[error("{0}")]
    Unavailable(String),
    /// It has heard of a batch, does not store it, and takes every repetition for the same: it is to be appended by another attempt.
    #[error("{0}")]
    NotStored(String),
    /// The client has brought as much as it may for now, and is to bring the rest later.
    #[error("{0}")]
    RateLimited(String),
    /// Its disk is full.
    #[error("the log's disk is full: {0}")]
    Full(String),
    /// It says that this account may not do so.
    #[error("{0}")]
    Denied(String),
    /// What is behind this place is not kept any more, or there never was as much.
    #[error("what follows place {} is not there any more", .0.0)]
    Gone(Place),
    /// Nobody made it ready for a fleet, or it is of another version: `bulkmark fleet setup`.
    #[error("{0}")]
    NotSetUp(String),
    /// The configuration, or a file that it names.
    #[error("{0}")]
    Setup(String),
}

/// By this it is known that another one's lock was waited for in vain: PostgreSQL's code in the text of an error.
const LOCKED: &str = "(55P03)";

impl LogError {
    /// What helps against it, where that is known.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Denied(_) => {
                Some("is it in the file of members, under this name and with this key or password?")
            }
            Self::Full(_) => Some("make space there"),
            Self::RateLimited(_) => Some("the rest waits here, and is brought later"),
            Self::Unavailable(what) if what.contains(LOCKED) => {
                Some("a member holds it: bulkmark doctor --server on an aggregator names who")
            }
            Self::Unavailable(what) if what.contains("certificate") => Some(
                "the log's server needs one that is in date, for the name in log =, of an authority in ca-file or the system's",
            ),
            Self::Unavailable(what) if what.contains("lookup address") => Some(
                "correct the name in log =, or its record in the DNS: getent hosts NAME shows what this machine finds",
            ),
            Self::NotSetUp(_)
            | Self::Setup(_)
            | Self::Unavailable(_)
            | Self::NotStored(_)
            | Self::Gone(_) => None,
        }
    }
}
