// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark ledger begin`: what is done with the ledger of a daemon of this machine.

use super::daemon::Unsent;
use crate::config::{self, DEFAULT_PATH, SERVER_PATH};
use crate::ledger;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Whose ledger is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Whose {
    /// The server's ledger instead of the milter's.
    #[arg(long)]
    server: bool,
    /// The daemon's configuration [default: /etc/bulkmark/milter.toml, with --server /etc/bulkmark/server.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Whose {
    fn path(&self) -> PathBuf {
        let default = if self.server { SERVER_PATH } else { DEFAULT_PATH };
        self.config.clone().unwrap_or_else(|| default.into())
    }

    /// The daemon's name, its state directory and its control socket. Neither key nor white lists matter.
    fn places(&self) -> anyhow::Result<(&'static str, PathBuf, PathBuf)> {
        if self.server {
            let (file, _) = config::load_server_parts(&self.path())?;
            return Ok(("server", file.state_dir, file.control));
        }
        let file = config::load_parts(&self.path())?.file;
        Ok(("milter", file.state_dir, file.control))
    }
}

/// Put the ledger of a stopped daemon aside, so that its next start begins with empty counts.
///
/// The old ledger stays beside the new one under a dated name, which is printed. Where only the federation key changed, the daemon
/// does so by itself.
#[derive(Debug, clap::Args)]
pub(super) struct BeginArgs {
    #[command(flatten)]
    whose: Whose,
}

pub(super) fn begin(args: &BeginArgs) -> anyhow::Result<ExitCode> {
    let (daemon, directory, _) = args.whose.places()?;
    let mut out = io::stdout().lock();
    match ledger::put_aside(&directory, ledger::now())? {
        None => writeln!(
            out,
            "there is no ledger in {}; the {daemon} begins one at its start",
            directory.display()
        )?,
        Some(kept) => {
            let (path, unsent) = (kept.path.display(), Unsent(kept.unsent));
            writeln!(
                out,
                "the ledger is kept as {path}{unsent}; the {daemon} begins a new one at its start"
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
