// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon of this machine that a command is about.

use crate::config::{DEFAULT_PATH, SERVER_PATH};
use std::path::PathBuf;

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct Whose {
    /// The server instead of the milter.
    #[arg(long)]
    pub(super) server: bool,
    /// The daemon's configuration [default: /etc/bulkmark/milter.toml, with --server /etc/bulkmark/server.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Whose {
    /// Where the packages have the configuration.
    pub(super) const fn default_path(&self) -> &'static str {
        if self.server { SERVER_PATH } else { DEFAULT_PATH }
    }

    /// The daemon's configuration.
    pub(super) fn path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.default_path().into())
    }
}
