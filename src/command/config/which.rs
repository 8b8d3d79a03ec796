// SPDX-License-Identifier: GPL-3.0-or-later
//! Which configuration a command is about.

use crate::command::whose::of_messages;
use crate::config::{ConfigError, Kind};
use std::path::{Path, PathBuf};

/// Which configuration.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Which {
    /// The configuration is a server's. Without this, the file's name or content decides.
    #[arg(long)]
    server: bool,
    /// The configuration file [default: /etc/bulkmark/milter.toml, with --server /etc/bulkmark/server.toml]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same, as other commands take it.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
}

impl Which {
    /// The file, and whose it is.
    pub(super) fn find(&self) -> Result<(&Path, Kind), ConfigError> {
        match self.file.as_ref().or(self.config.as_ref()) {
            Some(path) if self.server => Ok((path, Kind::Server)),
            Some(path) => Ok((path, Kind::of(path)?)),
            None if self.server => Ok((Path::new(Kind::Server.default_path()), Kind::Server)),
            None => {
                let path = Path::new(of_messages());
                Ok((path, Kind::of(path)?))
            }
        }
    }
}
