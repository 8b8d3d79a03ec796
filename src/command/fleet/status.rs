// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark fleet status`

use super::members;
use crate::command::daemon_args::DaemonArgs;
use crate::command::output::{failed, output};
use crate::command::show::{THRESHOLD, ago, time};
use crate::config::{self, ConfigError, Kind};
use crate::control::{self, DaemonStatus};
use crate::server::Quota;
use bulkmark_counts::{Mark, StepHead, step_head};
use bulkmark_ledger::now;
use bulkmark_sync::Link;
use bulkmark_sync::fleet::{FleetMailing, FleetStatus, MemberStatus, Members, ReporterStatus};
use bulkmark_sync::log::{self, Client, Ends, Engine, Log, LogError, Place, Reader as _, Settings};
use bulkmark_sync::with_log;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for all requests to the log.
const PATIENCE: Duration = Duration::from_secs(20);

/// The number of last batches whose reporters are counted, and the time limit for reading them.
const BATCHES: u64 = 1000;
const READING: Duration = Duration::from_secs(5);

/// Show the state of a fleet's log: its ends, its chain, its clients, its members, and how far this machine is.
///
/// Asks the log as the daemon of this configuration would, and the daemon itself. Only an aggregator may read the reporters of
/// batches and the states that members report. Exit code 0: the log answers, and this machine's daemon is in step with it; 1: one of
/// them is not; 2: error; 78: the configuration cannot be used.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The collected state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Found {
    log: String,
    /// Why the log does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<EndsFound>,
    /// The version of the last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_step: Option<u64>,
    clients: Vec<ClientFound>,
    /// The states of all members; none if this machine may not read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<MemberStatus>>,
    /// The largest mailings of the members that publish theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    mailings: Option<Vec<FleetMailing>>,
    /// The error if they cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    members_error: Option<String>,
    /// None if the daemon does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<FleetStatus>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct EndsFound {
    made: u64,
    batches: u64,
    steps: u64,
    first_step: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ClientFound {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    influence: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    withdrawn: u32,
    /// The number of the client's batches among the last ones; none if this machine may not read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    batches: Option<u64>,
    /// The time of the last of them, by the log's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match find(args) {
        Ok(found) => {
            let mut out = output();
            if args.json {
                writeln!(out, "{}", serde_json::to_string(&found)?)?;
            } else {
                found.print(&mut out)?;
            }
            let well = found.error.is_none() && found.daemon.as_ref().is_some_and(|daemon| daemon.in_step);
            Ok(ExitCode::from(u8::from(!well)))
        }
        Err(e) => Ok(failed(&e, 2)),
    }
}

/// The error of a configuration that names no log.
pub(super) fn no_fleet(path: &Path) -> ConfigError {
    ConfigError::file(path, "expected [fleet] with the address of the log, found none")
}

fn find(args: &Args) -> anyhow::Result<Found> {
    let path = args.daemon.path();
    let kind = args.daemon.kind(&path)?;
    let (fleet, socket) = match kind {
        Kind::Milter | Kind::Interfaces => {
            let file = config::load(&path)?.file;
            (file.fleet, file.control)
        }
        Kind::Server => {
            let file = config::load_server(&path)?.0;
            (file.fleet, file.control)
        }
    };
    let settings = fleet.ok_or_else(|| no_fleet(&path))?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut found = Found::new(&settings);
        let daemon = control::status(&socket, THRESHOLD).await;
        found.daemon = daemon.ok().and_then(|status: DaemonStatus| status.fleet);
        let asked = tokio::time::timeout(PATIENCE, ask(&settings, &mut found)).await;
        match asked {
            Ok(Ok(())) => (),
            Ok(Err(e)) => found.error = Some(e.to_string()),
            Err(_) => found.error = Some(format!("no answer in {} s", PATIENCE.as_secs())),
        }
        Ok(found)
    })
}

async fn ask(settings: &Settings, found: &mut Found) -> Result<(), LogError> {
    let link = Arc::new(Link::new(&settings.log));
    // A milter's account of NATS imports neither batches nor the list of clients, so these requests would get no answer.
    let is_nats = settings.address()?.engine == Engine::Nats;
    with_log!(settings, link, |log| found.ask(&log, !(is_nats && settings.reports)).await)
}

impl Found {
    fn new(settings: &Settings) -> Self {
        Self {
            log: settings.log.clone(),
            error: None,
            ends: None,
            last_step: None,
            clients: Vec::new(),
            members: None,
            mailings: None,
            members_error: None,
            daemon: None,
        }
    }

    async fn ask<L: Log>(&mut self, log: &L, may_read_clients: bool) -> Result<(), LogError> {
        let ends = log.ends().await?;
        let Ends { made, batches, steps, first_step } = ends;
        self.ends = Some(EndsFound { made, batches: batches.0, steps: steps.0, first_step: first_step.0 });
        self.last_step = last_step(log, ends).await?.map(|(last, _)| last.version);
        if !may_read_clients {
            return Ok(());
        }
        let reported = match log.batches(Place(batches.0.saturating_sub(BATCHES))).await {
            // A milter has no permission.
            Err(LogError::Denied(_)) => None,
            reader => Some(reported(reader?, batches).await),
        };
        self.clients =
            log.clients().await?.into_iter().map(|client| client_found(client, reported.as_ref())).collect();
        if reported.is_some() {
            match Members::read(log).await {
                Ok(found) => (self.members, self.mailings) = (Some(found.status()), Some(found.mailings())),
                Err(e) => self.members_error = Some(e.to_string()),
            }
        }
        Ok(())
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "log {}", self.log)?;
        if let Some(error) = &self.error {
            writeln!(out, "  error: {}", bulkmark_types::remote_text(error))?;
        }
        if let Some(ends) = &self.ends {
            writeln!(out, "  batches up to place {}", ends.batches)?;
            match self.last_step {
                Some(version) => writeln!(
                    out,
                    "  steps from place {} to {}; the last one is number {version}",
                    ends.first_step, ends.steps
                )?,
                None => writeln!(out, "  no steps yet")?,
            }
        }
        if !self.clients.is_empty() {
            writeln!(out, "\nclients:")?;
        }
        for client in &self.clients {
            client.print(out)?;
        }
        members::print(
            out,
            self.members.as_deref().unwrap_or_default(),
            self.mailings.as_deref().unwrap_or_default(),
        )?;
        if let Some(error) = &self.members_error {
            let error = bulkmark_types::remote_text(error);
            writeln!(
                out,
                "\nwhat members say of themselves cannot be read: {error}; is fleet setup to be run again?"
            )?;
        }
        match &self.daemon {
            Some(daemon) => print_daemon(out, daemon),
            None => writeln!(out, "\nthis machine: its daemon does not answer, or is not in a fleet"),
        }
    }
}

/// Prints the lines of a daemon in a fleet.
pub(in crate::command) fn print_daemon(out: &mut impl Write, daemon: &FleetStatus) -> io::Result<()> {
    let how = if daemon.in_step { "in step with the log" } else { "not in step with the log" };
    let role = if daemon.aggregates { "an aggregator" } else { "a milter" };
    writeln!(out, "\nfleet: {role}, {how}")?;
    writeln!(out, "  step {} of epoch {}, hash {}", daemon.version, daemon.epoch, daemon.chain)?;
    write!(out, "  batches are counted up to place {}", daemon.covers)?;
    match (daemon.batches_behind, daemon.last_batch) {
        (Some(0), _) => writeln!(out, ", which is all")?,
        (Some(behind), Some(last)) => writeln!(out, " of {last}: {behind} are not yet")?,
        _ => writeln!(out)?,
    }
    match daemon.steps_behind {
        Some(0) => writeln!(out, "  all steps are read")?,
        Some(steps) => writeln!(out, "  {steps} steps behind")?,
        None => writeln!(out, "  does not read steps at the moment")?,
    }
    if let Some(seconds) = daemon.stepped_seconds_ago {
        write!(out, "  the last step was applied {} ago", ago(seconds))?;
        match daemon.won_seconds_ago {
            Some(seconds) => writeln!(out, "; the last one made here {} ago", ago(seconds))?,
            None => writeln!(out)?,
        }
    }
    if daemon.aggregates {
        writeln!(
            out,
            "  steps made here: {}, and {} that came too late",
            daemon.steps_won, daemon.steps_lost
        )?;
    }
    let junk = [("steps", daemon.junk_steps), ("batches", daemon.junk_batches)];
    for (name, count) in junk.into_iter().filter(|(_, count)| *count > 0) {
        writeln!(out, "  passed over among the {name}: {count} that cannot be used")?;
    }
    if daemon.batches_again > 0 {
        writeln!(out, "  own batches that were appended again: {}", daemon.batches_again)?;
    }
    for reporter in &daemon.reporters {
        let ReporterStatus { name, batches, last_at, too_fast } = reporter;
        let name = bulkmark_types::remote_text(name);
        let too_fast = if *too_fast { "; MORE THAN ITS RATE" } else { "" };
        let ago = ago(now().saturating_sub(*last_at));
        writeln!(out, "  {name} reported {ago} ago; {batches} batches{too_fast}")?;
    }
    for advice in &daemon.advice {
        writeln!(out, "  {}", bulkmark_types::remote_text(advice))?;
    }
    Ok(())
}

impl ClientFound {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "  {} ({}", self.name, self.kind)?;
        if let (Some(influence), Some(quota)) = (self.influence, &self.quota) {
            write!(out, ": at most {influence} to any count, quota {quota}")?;
        }
        if self.withdrawn > 0 {
            write!(out, ", taken back {} times", self.withdrawn)?;
        }
        write!(out, ")")?;
        match (self.batches, self.last_at) {
            (Some(batches), Some(at)) => {
                writeln!(out, ": {batches} of the last batches, the newest at {}", time(at))
            }
            (Some(_), None) => writeln!(out, ": none of the last batches"),
            _ => writeln!(out),
        }
    }
}

/// Returns the head of the last step, if it can be read; none if there is none.
pub(in crate::command) async fn last_step<L: Log>(
    log: &L,
    ends: Ends,
) -> Result<Option<(StepHead, Mark)>, LogError> {
    if ends.steps == Place(0) || ends.first_step > ends.steps {
        return Ok(None);
    }
    let before = ends.steps.0.saturating_sub(1).max(ends.first_step.0.saturating_sub(1));
    let mut steps = log.steps(Place(before)).await?;
    let last = tokio::time::timeout(READING, steps.next()).await;
    Ok(last.ok().transpose()?.and_then(|step| step_head(&step.bytes)))
}

/// Returns the reporters of the last batches up to this place: their number, and the time of the newest.
async fn reported(
    mut batches: impl log::Reader<Item = log::Batch>,
    last: Place,
) -> BTreeMap<String, (u64, u64)> {
    let mut found = BTreeMap::new();
    if last > Place(0) {
        // Batches that do not arrive in time are not counted.
        let _ = tokio::time::timeout(READING, add_up(&mut batches, last, &mut found)).await;
    }
    found
}

async fn add_up(
    batches: &mut impl log::Reader<Item = log::Batch>,
    last: Place,
    found: &mut BTreeMap<String, (u64, u64)>,
) {
    while let Ok(batch) = batches.next().await {
        let entry = found.entry(batch.client).or_default();
        *entry = (entry.0 + 1, entry.1.max(batch.at));
        if batch.place >= last {
            return;
        }
    }
}

fn client_found(client: Client, reported: Option<&BTreeMap<String, (u64, u64)>>) -> ClientFound {
    let known = reported.map(|reported| reported.get(&client.name));
    ClientFound {
        kind: if client.limits.is_some() { "partner" } else { "own" },
        influence: client.limits.map(|limits| limits.influence),
        quota: client.limits.map(|limits| Quota::of_millionths(limits.quota).to_string()),
        withdrawn: client.withdrawn,
        batches: known.map(|known| known.map_or(0, |(batches, _)| *batches)),
        last_at: known.flatten().map(|(_, at)| *at),
        name: client.name,
    }
}
