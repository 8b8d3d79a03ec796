// SPDX-License-Identifier: GPL-3.0-or-later
//! Updates, notes and steps that are kept for others.

use crate::history::vector::Origin;
use std::sync::Arc;

/// An update that is kept and forwarded.
#[derive(Debug, Clone)]
pub struct KeptUpdate {
    /// The origin whose history it continues.
    pub origin: Origin,
    /// The version after it.
    pub version: u64,
    /// The time at which it was made or received, in seconds since 1970.
    pub at: u64,
    /// The coded update.
    pub bytes: Arc<[u8]>,
}

/// A note of bulk that is kept and forwarded.
#[derive(Debug, Clone)]
pub struct KeptNote {
    /// Its number in its list.
    pub number: u64,
    /// The time at which it was made or received, in seconds since 1970.
    pub at: u64,
    /// The coded note.
    pub bytes: Arc<[u8]>,
}

/// A step of a fleet's chain that is kept.
#[derive(Debug, Clone)]
pub struct KeptStep {
    /// The version after it.
    pub version: u64,
    /// Its place in the log.
    pub place: u64,
    /// The coded step.
    pub bytes: Arc<[u8]>,
}
