// SPDX-License-Identifier: GPL-3.0-or-later
//! The configuration file that a command reads.

use crate::command::daemon_args::DaemonArgs;
use crate::config::{ConfigError, Kind};
use std::path::PathBuf;

/// The configuration file that a command reads.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct FileArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// The configuration file, as with --config.
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
}

impl FileArgs {
    /// Returns the path of the file, and the kind of its daemon.
    pub(super) fn find(&self) -> Result<(PathBuf, Kind), ConfigError> {
        let path = self.file.clone().unwrap_or_else(|| self.daemon.path());
        let kind = self.daemon.kind(&path)?;
        Ok((path, kind))
    }
}
