// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon of this machine that a command is about.

use crate::config::{ConfigError, DEFAULT_PATH, INTERFACES_PATH, Kind, SERVER_PATH};
use std::path::{Path, PathBuf};

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct Whose {
    /// The server instead of the milter. With --config, the content of the file tells.
    #[arg(long)]
    server: bool,
    /// The interfaces instead of the milter. Without this they are meant where there is no milter.toml, but an interfaces.toml.
    #[arg(long, conflicts_with = "server")]
    interfaces: bool,
    /// The daemon's configuration [default: /etc/bulkmark/milter.toml, with --server server.toml, with --interfaces interfaces.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Whose {
    /// Where the packages have the configuration.
    pub(super) fn default_path(&self) -> &'static str {
        match (self.server, self.interfaces) {
            (true, _) => SERVER_PATH,
            (_, true) => INTERFACES_PATH,
            _ => of_messages(),
        }
    }

    /// The daemon's configuration.
    pub(super) fn path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.default_path().into())
    }

    /// The daemon whose configuration is at `path`: that of --server, or else the one that its content tells.
    pub(super) fn kind(&self, path: &Path) -> Result<Kind, ConfigError> {
        if self.server { Ok(Kind::Server) } else { Kind::of(path) }
    }
}

/// The configuration of the daemon that judges mail on this machine: the milter's, or that of interfaces alone.
pub(super) fn of_messages() -> &'static str {
    let is_there = |path: &str| Path::new(path).exists();
    if !is_there(DEFAULT_PATH) && is_there(INTERFACES_PATH) { INTERFACES_PATH } else { DEFAULT_PATH }
}
