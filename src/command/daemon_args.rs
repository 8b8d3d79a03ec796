// SPDX-License-Identifier: GPL-3.0-or-later
//! The choice of a daemon of this machine by options.

use crate::config::{ConfigError, DEFAULT_PATH, INTERFACES_PATH, Kind, SERVER_PATH};
use std::path::{Path, PathBuf};

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct DaemonArgs {
    /// The server instead of the milter. With --config, the content of the file decides.
    #[arg(long)]
    server: bool,
    /// The interfaces instead of the milter. This is the default if there is no milter.toml, but an interfaces.toml.
    #[arg(long, conflicts_with = "server")]
    interfaces: bool,
    /// The daemon's configuration [default: /etc/bulkmark/milter.toml, with --server server.toml, with --interfaces interfaces.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl DaemonArgs {
    /// Returns the default path of the configuration.
    pub(super) fn default_path(&self) -> &'static str {
        match (self.server, self.interfaces) {
            (true, _) => SERVER_PATH,
            (_, true) => INTERFACES_PATH,
            _ => judging_config(),
        }
    }

    /// Returns the path of the daemon's configuration.
    pub(super) fn path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.default_path().into())
    }

    /// Returns the kind of the daemon with the configuration at `path`: by --server, or else by the content.
    pub(super) fn kind(&self, path: &Path) -> Result<Kind, ConfigError> {
        if self.server { Ok(Kind::Server) } else { Kind::of(path) }
    }
}

/// Returns the default configuration of the daemon that judges mail on this machine: the milter's, or that of interfaces alone.
pub(super) fn judging_config() -> &'static str {
    let is_there = |path: &str| Path::new(path).exists();
    if !is_there(DEFAULT_PATH) && is_there(INTERFACES_PATH) { INTERFACES_PATH } else { DEFAULT_PATH }
}
