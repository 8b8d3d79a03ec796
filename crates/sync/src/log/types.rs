// SPDX-License-Identifier: GPL-3.0-or-later
//! Types of requests to a log, and of its answers.

use bulkmark_counts::Limits;
use std::num::NonZeroU32;

/// A number that the log assigns to each entry: it grows, with or without gaps. 0 is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

/// Maximum size of a batch, a step or a part of a snapshot.
pub const MAX_BYTES: usize = 960 << 10;

/// Maximum size of a state report.
pub const MAX_STATE_REPORT: usize = 32 << 10;

/// Identifies a batch while it is appended again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchId {
    /// The random number of its spool.
    pub spool: u64,
    /// Its number there.
    pub number: u64,
    /// How often the log did not have it although it had acknowledged or received it. Another attempt is another message for the log.
    pub attempt: u32,
}

/// A batch in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Its place.
    pub place: Place,
    /// The client that appended it: the name that belongs to the account or role, as [`Client::name`].
    pub client: String,
    /// The time by the log's clock, in seconds since 1970.
    pub at: u64,
    /// The content.
    pub bytes: Vec<u8>,
}

/// A step in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its place.
    pub place: Place,
    /// The content.
    pub bytes: Vec<u8>,
}

/// The state report of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateReport {
    /// Its name, as the log authenticated it.
    pub name: String,
    /// Its age by the log's clock, in seconds.
    pub seconds_ago: u64,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A part of a snapshot, at most [`MAX_BYTES`].
pub type Part = Vec<u8>;

/// The identity of a log, and its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Distinguishes this stream of batches from one that was created again: a time of creation, or a random number.
    pub made: u64,
    /// The last batch.
    pub batches: Place,
    /// The last step.
    pub steps: Place,
    /// The first step that is still kept, or the next one if none is.
    pub first_step: Place,
}

/// A client that may report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Its name: 1 to 64 letters, digits, `-` and `_`.
    pub name: String,
    /// The limits of its reports; none for an own client.
    pub limits: Option<Limits>,
    /// How often its reports were withdrawn. After each time, its layer starts over.
    pub withdrawn: u32,
    /// Reports a second that it may send, if the log does not limit them itself; none for no limit.
    pub rate: Option<NonZeroU32>,
}

/// A request to a log failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It cannot be reached, does not answer in time, or lacks something that it needs.
    #[error("{0}")]
    Unavailable(String),
    /// It received a batch, has not stored it, and treats each repetition as the same: another attempt is needed.
    #[error("{0}")]
    NotStored(String),
    /// The client reached its rate, and must send the rest later.
    #[error("{0}")]
    RateLimited(String),
    /// Its disk is full.
    #[error("the log's disk is full: {0}")]
    Full(String),
    /// This account lacks the right.
    #[error("{0}")]
    Denied(String),
    /// Entries behind this place are no longer kept, or never existed.
    #[error("the entries behind place {} are no longer in the log", .0.0)]
    Gone(Place),
    /// It is not set up for a fleet, or has another version: `bulkmark fleet setup`.
    #[error("{0}")]
    NotSetUp(String),
    /// The configuration, or a file that it names, is unusable.
    #[error("{0}")]
    Setup(String),
}

/// Marks an error about a lock that was waited for in vain: PostgreSQL's code in its text.
const LOCKED: &str = "(55P03)";

impl LogError {
    /// Returns the remedy, if one is known.
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
