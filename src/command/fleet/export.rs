// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark fleet export`

use super::{last_step, no_fleet};
use crate::command::output::{failed, print_result};
use crate::config::{self, SERVER_PATH};
use anyhow::{Context, bail};
use bulkmark_ledger::FleetCounts;
use bulkmark_sync::Link;
use bulkmark_sync::log::{Log, Settings};
use bulkmark_sync::with_log;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Write the counts of a fleet as the ledger of a new server.
///
/// Run it on an aggregator that is stopped, after all others are stopped. It asks the log whether this aggregator has counted all of its
/// batches. Exit code 0: the ledger is written; 2: error; 78: the configuration cannot be used. With --json it prints an object with file.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Args {
    /// The state directory of the new server, in which there is no ledger yet.
    #[arg(value_name = "STATE-DIR")]
    to: PathBuf,
    /// The configuration of the aggregator.
    #[arg(long, value_name = "FILE", default_value = SERVER_PATH)]
    config: PathBuf,
    /// Do not ask the log, for example because it is lost, and omit reports that milters may still have in batches that were overtaken.
    #[arg(long)]
    force: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match export(args) {
        Ok(path) => {
            let text = format!("the fleet's counts are in {}", path.display());
            print_result(args.json, &json!({ "file": path }), text)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(e) => Ok(failed(&e, 2)),
    }
}

fn export(args: &Args) -> anyhow::Result<PathBuf> {
    let (file, key) = config::load_server(&args.config)?;
    let shown = args.config.display();
    let settings = file.fleet.ok_or_else(|| no_fleet(&args.config))?;
    let counts = FleetCounts::read(&file.state_dir)?;
    if counts.key_id() != key.id() {
        bail!(
            "{}: its federation key id is {:016x}, and that of {shown} is {:016x}",
            file.state_dir.display(),
            counts.key_id(),
            key.id()
        );
    }
    if !args.force {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(open(&settings, &counts)).with_context(|| settings.log.clone())?;
        if !counts.gaps().is_empty() {
            bail!(
                "batches of {} are not counted although later ones are; start an aggregator once more, and wait until bulkmark status on \
                 these machines says that nothing waits (--force gives them up)",
                counts.gaps().join(", ")
            );
        }
    }
    Ok(counts.write(&args.to)?)
}

async fn open(settings: &Settings, counts: &FleetCounts) -> anyhow::Result<()> {
    let link = Arc::new(Link::new(&settings.log));
    with_log!(settings, link, |log| compare(&log, counts).await)
}

/// Checks that everything in the log is counted.
async fn compare<L: Log>(log: &L, counts: &FleetCounts) -> anyhow::Result<()> {
    let (ends, mark) = (log.ends().await?, counts.mark());
    let last = last_step(log, ends).await?.map(|(_, last)| last).unwrap_or_default();
    if last.version != mark.version {
        bail!(
            "this aggregator has counted {} steps, and the log has {}: take the one that bulkmark fleet status --server calls in step",
            mark.version,
            last.version
        );
    }
    if last.chain != mark.chain {
        bail!(
            "step {} of this aggregator is another than the log's: take one that bulkmark fleet status --server calls in step",
            last.version
        );
    }
    if mark.made != ends.made || mark.covers < ends.batches.0 {
        bail!(
            "batches wait in the log that nobody has counted: start an aggregator, until bulkmark fleet status says that none do"
        );
    }
    Ok(())
}
