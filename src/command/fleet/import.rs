// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark fleet import`

use super::no_fleet;
use crate::command::output::{failed, print_result};
use crate::config::{self, SERVER_PATH};
use anyhow::{Context, bail};
use bulkmark_counts::step_head;
use bulkmark_ledger::Seed;
use bulkmark_sync::Link;
use bulkmark_sync::log::{Log, LogError, Place, Reader as _, Settings};
use bulkmark_sync::with_log;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Time limit for the log's answer, and for one step.
const PATIENCE: Duration = Duration::from_secs(30);

/// Parts of the snapshot that are sent at a time.
const PARTS: usize = 4;

/// Begin a fleet with the counts of a server, in a log that is set up and empty.
///
/// Stop the server permanently first: its later counts are not in the fleet. Run this where an aggregator is configured. It may be run again
/// after an interruption. Exit code 0: the counts are in the log; 2: error; 78: the configuration cannot be used. With --json it prints an object
/// with imported, whether this command put the counts into the log, and bytes, their size then.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Args {
    /// The state directory of the server, or of a milter without servers; or the ledger's file in it, or a backup of that file.
    #[arg(value_name = "STATE-DIR")]
    from: PathBuf,
    /// The configuration of an aggregator of this fleet.
    #[arg(long, value_name = "FILE", default_value = SERVER_PATH)]
    config: PathBuf,
    /// Only print the changes.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match import(args) {
        Ok((bytes, text)) => {
            print_result(args.json, &json!({ "imported": bytes.is_some(), "bytes": bytes }), text)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(e) => Ok(failed(&e, 2)),
    }
}

/// The size of the counts that were put into the log, if they were, and the answer to people.
type Done = (Option<usize>, String);

fn import(args: &Args) -> anyhow::Result<Done> {
    let (file, key) = config::load_server(&args.config)?;
    let settings = file.fleet.ok_or_else(|| no_fleet(&args.config))?;
    let seed = Arc::new(Seed::read(&args.from, key.id(), file.ledger.window.as_secs())?);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let done = runtime.block_on(open(&settings, seed, args.dry_run));
    done.with_context(|| settings.log.clone())
}

async fn open(settings: &Settings, seed: Arc<Seed>, dry_run: bool) -> anyhow::Result<Done> {
    let link = Arc::new(Link::new(&settings.log));
    with_log!(settings, link, |log| put(&log, seed, dry_run).await)
}

/// Puts the first step and the snapshot, or their missing parts.
async fn put<L: Log>(log: &L, seed: Arc<Seed>, dry_run: bool) -> anyhow::Result<Done> {
    let ends = log.ends().await?;
    let step = seed.step(ends.made);
    let place = match first_step(log).await? {
        Some((place, first)) if first == step => Some(place),
        Some((_, first)) => {
            let which = step_head(&first).map_or("something else", |_| "other counts");
            bail!(
                "the fleet has begun already, with {which}; a server's counts can be moved into a log without steps only (bulkmark \
                 fleet status shows it)"
            );
        }
        None if ends.steps > Place(0) => bail!(
            "the fleet has begun already, at step {}; a server's counts can be moved into a log without steps only",
            ends.steps.0
        ),
        None => None,
    };
    let is_there = match log.snapshot().await {
        Ok(_) => true,
        Err(LogError::Gone(_)) => false,
        Err(e) => return Err(e.into()),
    };
    if place.is_some() && is_there {
        return Ok((None, "the counts are in the log already".to_owned()));
    }
    if is_there {
        bail!(
            "the log has no steps, and a snapshot of some: a fleet was there before; see bulkmark fleet setup"
        );
    }
    if dry_run {
        return Ok((None, "the counts would be put into the log".to_owned()));
    }
    let place = match place {
        Some(place) => place,
        None => log.append_step(Place(0), step).await?.context(
            "the fleet began meanwhile, without these counts; stop its aggregators, and see docs/fleet.md",
        )?,
    };
    let (sender, parts) = mpsc::channel(PARTS);
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = 0;
        let mut all = true;
        seed.parts(ends.made, place.0, |part| {
            bytes += part.len();
            all = sender.blocking_send(Some(part)).is_ok();
            all
        });
        if all {
            let _ = sender.blocking_send(None);
        }
        bytes
    });
    log.put_snapshot(parts).await.context("run this again to continue")?;
    let bytes = reading.await?;
    Ok((Some(bytes), format!("the counts are in the log: {bytes} bytes")))
}

/// Returns the first step in the log, if it is the fleet's first.
async fn first_step<L: Log>(log: &L) -> anyhow::Result<Option<(Place, Vec<u8>)>> {
    if log.ends().await?.steps == Place(0) {
        return Ok(None);
    }
    let mut steps = match log.steps(Place(0)).await {
        Err(LogError::Gone(_)) => return Ok(None),
        steps => steps?,
    };
    let first = tokio::time::timeout(PATIENCE, steps.next()).await;
    let first = first.context("the log does not deliver its first step")??;
    Ok(Some((first.place, first.bytes)))
}
