// SPDX-License-Identifier: GPL-3.0-or-later
//! The server's own part of the configuration.

use super::registration::Registration;
use crate::net::Bounds;
use serde::Deserialize;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum of connections; more wait.
    pub max_connections: NonZeroUsize,
    /// Maximum from one address without a valid token.
    #[serde(skip)]
    pub connections_per_address: NonZeroUsize,
    /// Maximum of one client.
    #[serde(skip)]
    pub connections_per_client: NonZeroUsize,
    /// Maximum of streams of updates and snapshots: of one client, or of one address without a token.
    #[serde(skip)]
    pub streams_per_client: NonZeroUsize,
    /// Maximum of megabytes that wait for the readers of all streams.
    #[serde(skip)]
    pub stream_megabytes: NonZeroUsize,
    /// Reports a second of a client without its own rate.
    pub rate: NonZeroU32,
    /// Single questions a minute: of one client, or of one address without a token.
    pub checks_per_minute: NonZeroU32,
    /// Invalid tokens a minute from one address; further ones have to wait. Valid ones do not.
    #[serde(skip)]
    pub failed_attempts: NonZeroU32,
}

impl Limits {
    /// Returns the limits of connections. However low the maximum is, no client takes more than a quarter, and no address more than half.
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

/// The server's own settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address that it listens on, from the system.
    pub address: String,
    /// Whether everybody may read counts, updates and snapshots.
    pub anonymous_reading: bool,
    /// Sites that may register by themselves.
    pub registration: Registration,
    /// Bounds on what clients may do.
    pub limits: Limits,
    /// The directory of clients and counts.
    pub state_dir: PathBuf,
}
