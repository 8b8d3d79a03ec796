// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark ledger begin` and `bulkmark ledger backup`, for the ledger of a daemon on this machine.

use super::daemon::Unsent;
use super::daemon_args::DaemonArgs;
use super::output::print_result;
use super::show::called;
use crate::config::{self, Kind};
use crate::control;
use anyhow::Context;
use bulkmark_ledger::{Backup, OpenError};
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Put the ledger of a stopped daemon aside, so that its next start begins with empty counts.
///
/// The old ledger stays in the state directory under a dated name, which is printed. If only the federation key changed, the daemon
/// does this automatically. With --json it prints an object with file (none without a ledger) and unsent, the number of reports that no server
/// took.
#[derive(Debug, clap::Args)]
pub(super) struct BeginArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Copy a daemon's ledger while it runs.
///
/// The copy is the ledger at one moment, with all checksums verified, and is a ledger itself. To restore it, replace ledger.redb in the state
/// directory while the daemon is stopped. If no daemon runs, its file is copied. With --json it prints an object with file.
#[derive(Debug, clap::Args)]
pub(super) struct BackupArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// The file for the copy. An older copy there is replaced once the new one is complete.
    file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A daemon's name, its state directory and its control socket.
type Places = (&'static str, PathBuf, PathBuf);

/// Returns the places of the chosen daemon. Needs neither key nor white lists.
fn places(daemon: &DaemonArgs) -> anyhow::Result<Places> {
    let path = daemon.path();
    if daemon.kind(&path)? == Kind::Server {
        let (file, _) = config::load_server_parts(&path)?;
        return Ok(("server", file.state_dir, file.control));
    }
    let file = config::load_parts(&path)?.file;
    Ok((file.daemon(), file.state_dir, file.control))
}

/// An error of the daemon or of the copy.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Daemon(#[from] io::Error),
    #[error(transparent)]
    File(#[from] OpenError),
}

/// Returns the error of a copy that cannot be written: the file is no daemon's ledger.
fn unwritten(error: OpenError) -> anyhow::Error {
    match error {
        OpenError::Io { path, reason } => {
            anyhow::Error::new(reason).context(format!("cannot write the backup {}", path.display()))
        }
        other => other.into(),
    }
}

pub(super) fn backup(args: &BackupArgs) -> anyhow::Result<ExitCode> {
    let places = places(&args.daemon)?;
    let mut backup = Backup::begin(&args.file).map_err(unwritten)?;
    if let Err(e) = fill(&mut backup, places) {
        backup.abandon();
        return Err(e);
    }
    backup.finish().map_err(unwritten)?;
    print_result(args.json, &json!({ "file": args.file }), args.file.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Copies a whole ledger: from its daemon, or from its file if none runs.
fn fill(backup: &mut Backup, (daemon, directory, control): Places) -> anyhow::Result<()> {
    let daemon = called(daemon);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(control::backup(&control, |piece| Ok(backup.push(piece)?))) {
        Ok(()) => Ok(()),
        Err(Broken::Daemon(e))
            if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
        {
            let file = backup.take_file(&directory);
            file.with_context(|| format!("no {daemon} answers at {} ({e})", control.display()))
        }
        Err(Broken::Daemon(e)) => {
            Err(e).with_context(|| format!("the {daemon} at {} gives no backup", control.display()))
        }
        Err(Broken::File(e)) => Err(unwritten(e)),
    }
}

pub(super) fn begin(args: &BeginArgs) -> anyhow::Result<ExitCode> {
    let (daemon, directory, _) = places(&args.daemon)?;
    let daemon = called(daemon);
    let kept = bulkmark_ledger::put_aside(&directory, bulkmark_ledger::now())?;
    let text = match &kept {
        None => {
            let directory = directory.display();
            format!("there is no ledger in {directory}; the {daemon} begins one at its start")
        }
        Some(kept) => {
            let (path, unsent) = (kept.path.display(), Unsent(kept.unsent));
            format!("the ledger is kept as {path}{unsent}; the {daemon} begins a new one at its start")
        }
    };
    let unsent = kept.as_ref().map_or(0, |kept| kept.unsent);
    print_result(args.json, &json!({ "file": kept.map(|kept| kept.path), "unsent": unsent }), text)?;
    Ok(ExitCode::SUCCESS)
}
