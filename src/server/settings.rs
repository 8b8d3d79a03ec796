// SPDX-License-Identifier: GPL-3.0-or-later
//! What the configuration says of the server itself.

use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at a time; more wait.
    pub max_connections: NonZeroUsize,
    /// Reports a second of a client that has no rate of its own.
    pub rate: NonZeroU32,
    /// Refused tokens a minute from one address, before it is not listened to for the rest of the minute.
    pub failed_attempts: NonZeroU32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: const { NonZeroUsize::new(16_384).unwrap() },
            rate: const { NonZeroU32::new(1_000_000).unwrap() },
            failed_attempts: const { NonZeroU32::new(10).unwrap() },
        }
    }
}

/// What the server's own part of the configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where it listens, as the system has it.
    pub address: String,
    /// Whether counts, updates and snapshots are for everybody.
    pub anonymous_reading: bool,
    /// Bounds on what clients may do.
    pub limits: Limits,
    /// Where clients and counts are.
    pub state_dir: PathBuf,
}
