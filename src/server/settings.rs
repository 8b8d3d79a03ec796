// SPDX-License-Identifier: GPL-3.0-or-later
//! What the configuration says of the server itself.

use super::registration::Registration;
use crate::net::Bounds;
use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// Connections at a time; more wait.
    pub max_connections: NonZeroUsize,
    /// Of these, from one address, of those who did not show a valid token.
    #[serde(skip)]
    pub connections_per_address: NonZeroUsize,
    /// Of one client.
    #[serde(skip)]
    pub connections_per_client: NonZeroUsize,
    /// Streams of updates and snapshots at a time: of one client, or of one address without a token.
    #[serde(skip)]
    pub streams_per_client: NonZeroUsize,
    /// Megabytes that wait for the readers of all streams at most.
    #[serde(skip)]
    pub stream_megabytes: NonZeroUsize,
    /// Reports a second of a client that has no rate of its own.
    pub rate: NonZeroU32,
    /// Single questions a minute: of one client, or of one address without a token.
    pub checks_per_minute: NonZeroU32,
    /// Invalid tokens a minute from one address; those after them have to wait. Valid ones do not.
    #[serde(skip)]
    pub failed_attempts: NonZeroU32,
}

impl Limits {
    /// Those of connections. However few there are in all, no client takes more than a quarter of them, and no address more than half.
    #[must_use]
    pub fn connections(&self) -> Bounds {
        let all = self.max_connections.get();
        Bounds {
            all,
            address: self.connections_per_address.get().min(all.div_ceil(2)),
            known: self.connections_per_client.get().min(all.div_ceil(4)),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: const { NonZeroUsize::new(16_384).unwrap() },
            connections_per_address: const { NonZeroUsize::new(1024).unwrap() },
            connections_per_client: const { NonZeroUsize::new(256).unwrap() },
            streams_per_client: const { NonZeroUsize::new(32).unwrap() },
            stream_megabytes: const { NonZeroUsize::new(64).unwrap() },
            rate: const { NonZeroU32::new(1_000_000).unwrap() },
            checks_per_minute: const { NonZeroU32::new(120).unwrap() },
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
    /// Sites that may register by themselves.
    pub registration: Registration,
    /// Bounds on what clients may do.
    pub limits: Limits,
    /// Where clients and counts are.
    pub state_dir: PathBuf,
}
