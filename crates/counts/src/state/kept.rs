// SPDX-License-Identifier: GPL-3.0-or-later
//! Updates, notes and steps as they are kept for others and handed on.

use crate::history::vector::Origin;
use std::sync::Arc;

/// An update as it is kept and handed on.
#[derive(Debug, Clone)]
pub struct KeptUpdate {
    /// The origin whose history it continues.
    pub origin: Origin,
    /// The version that it makes.
    pub version: u64,
    /// When it was made or came, in seconds since 1970.
    pub at: u64,
    /// The update as it travels.
    pub bytes: Arc<[u8]>,
}

/// A note of bulk as it is kept and handed on.
#[derive(Debug, Clone)]
pub struct KeptNote {
    /// Its number in its list.
    pub number: u64,
    /// When it was made or came, in seconds since 1970.
    pub at: u64,
    /// The note as it travels.
    pub bytes: Arc<[u8]>,
}

/// A step of a fleet's chain, as it is kept.
#[derive(Debug, Clone)]
pub struct KeptStep {
    /// The version that it makes.
    pub version: u64,
    /// Where the log has it.
    pub place: u64,
    /// The step as it travels.
    pub bytes: Arc<[u8]>,
}
