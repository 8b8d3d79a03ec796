// SPDX-License-Identifier: GPL-3.0-or-later
//! Which configuration a command is about.

use crate::command::whose::Whose;
use crate::config::{ConfigError, Kind};
use std::path::PathBuf;

/// Which configuration.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Which {
    #[command(flatten)]
    whose: Whose,
    /// The configuration file, as with --config.
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
}

impl Which {
    /// The file, and whose it is.
    pub(super) fn find(&self) -> Result<(PathBuf, Kind), ConfigError> {
        let path = self.file.clone().unwrap_or_else(|| self.whose.path());
        let kind = self.whose.kind(&path)?;
        Ok((path, kind))
    }
}
