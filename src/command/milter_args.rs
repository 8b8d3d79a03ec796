// SPDX-License-Identifier: GPL-3.0-or-later
//! The milter that commands on reports and orders ask.

use crate::command::output::{AS_ROOT, EX_ERROR, EX_TEMPFAIL, failed};
use crate::config::{self, DEFAULT_PATH};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

// No docstring: clap would take it for that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct MilterArgs {
    /// The milter's configuration, which names the control socket.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH, global = true)]
    pub(super) config: PathBuf,
    /// The control socket. No configuration is read then.
    #[arg(long, value_name = "SOCKET", global = true)]
    pub(super) control: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long, global = true)]
    pub(super) json: bool,
}

impl MilterArgs {
    pub(super) fn socket(&self) -> anyhow::Result<PathBuf> {
        Ok(match &self.control {
            Some(socket) => socket.clone(),
            None => config::load_parts(&self.config)?.file.control,
        })
    }
}

/// Prints an error of the milter, and returns the exit code.
pub(super) fn unanswered(socket: &Path, error: io::Error) -> ExitCode {
    // An unknown or ambiguous reporter or mailing, or an invalid order.
    if error.kind() == io::ErrorKind::InvalidInput {
        return failed(&error.into(), 1);
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        let denied = format!("cannot ask the daemon at {}: {error}; {AS_ROOT}", socket.display());
        return failed(&anyhow::Error::msg(denied), EX_ERROR);
    }
    let silent = format!("no daemon answers at {}", socket.display());
    failed(&anyhow::Error::new(error).context(silent), EX_TEMPFAIL)
}
