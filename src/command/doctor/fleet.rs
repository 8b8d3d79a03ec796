// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's log: does it answer, does it let this machine in, is it set up, what time is it there, is it of our key and windows, and
//! does somebody count what is reported?

use super::files;
use super::report::Report;
use crate::command::fleet::last_step;
use crate::command::show::ago;
use crate::control::DaemonStatus;
use bulkmark_counts::StepHead;
use bulkmark_ledger::directory::User;
use bulkmark_sync::Link;
use bulkmark_sync::fleet::FleetStatus;
use bulkmark_sync::log::{Ends, Log, LogError, Settings};
use bulkmark_sync::with_log;
use bulkmark_types::FederationKey;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CHECK: &str = "log of the fleet";

/// How long all that is asked of the log may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long batches may wait before nobody is taken to count them: an aggregator that dies is replaced within 3 s.
const COUNTED: Duration = Duration::from_secs(6);
const AGAIN: Duration = Duration::from_millis(250);

/// The files that the settings name.
pub(super) fn examine_files(settings: &Settings, user: &User, report: &mut Report) {
    let secret = [&settings.password_file, &settings.nkey_file, &settings.key_file];
    let open = [&settings.ca_file, &settings.cert_file];
    for (file, is_secret) in secret.map(|file| (file, true)).into_iter().chain(open.map(|file| (file, false)))
    {
        if let Some(file) = file {
            files::examine_file(CHECK, file, is_secret, user, report);
        }
    }
    if settings.is_exposed() {
        report.warning(
            CHECK,
            "the way to it is not encrypted, and leaves this machine",
            "give the log's servers certificates, and take tls = false out of [fleet]",
        );
    }
}

/// Asks the log as the daemon would.
pub(super) async fn examine(
    settings: &Settings,
    counts: &bulkmark_counts::Settings,
    key: &FederationKey,
    status: Option<&DaemonStatus>,
    report: &mut Report,
) {
    let link = Arc::new(Link::new(&settings.log));
    let asked = tokio::time::timeout(PATIENCE, async {
        with_log!(settings, Arc::clone(&link), |log| ask(&log).await)
    });
    let silent = |_| Err(LogError::Unavailable(format!("no answer in {} s", PATIENCE.as_secs())));
    match asked.await.unwrap_or_else(silent) {
        Err(e) => report.error(CHECK, format!("{}: {e}", settings.log), advice(&e)),
        Ok(found) => {
            report.ok(CHECK, format!("{} answers, lets this machine in, and is set up", settings.log));
            found.tell(counts, key, report);
        }
    }
    match link.clock() {
        Some(Ok(())) => report.ok("clock", "no more than 5 minutes from that of the log"),
        Some(Err(what)) => {
            report.error(
                "clock",
                what,
                "timedatectl here, and on the servers of the log, shows which one is wrong",
            );
        }
        None => (),
    }
    if let Some(status) = status {
        examine_daemon(status, report);
    }
}

/// What the log said.
struct Found {
    ends: Ends,
    /// The last step; none before the first one, or when it cannot be read.
    last: Option<StepHead>,
    /// Whether batches wait that nobody counted in time.
    waits: bool,
    /// Whether the last step covers batches that the log does not have, and none followed it that does not.
    beyond: bool,
    /// What this member could harm the others by.
    exposures: Vec<String>,
}

async fn ask<L: Log>(log: &L) -> Result<Found, LogError> {
    let began = Instant::now();
    let first = log.ends().await?;
    loop {
        let ends = log.ends().await?;
        let last = last_step(log, ends).await?.map(|(last, _)| last);
        let covers = last.filter(|last| last.made == ends.made).map_or(0, |last| last.covers);
        // What came since this began may take its time.
        let waits = covers < first.batches.0;
        // The step may be of batches that came since the end was asked for.
        let beyond = covers > ends.batches.0 && covers > log.ends().await?.batches.0;
        if !(waits || beyond) || began.elapsed() >= COUNTED {
            // Another database may have no such thing.
            let exposures = log.exposures().await.unwrap_or_default();
            return Ok(Found { ends, last, waits, beyond, exposures });
        }
        tokio::time::sleep(AGAIN).await;
    }
}

impl Found {
    fn tell(&self, counts: &bulkmark_counts::Settings, key: &FederationKey, report: &mut Report) {
        let Self { ends, last, waits, beyond, exposures } = self;
        if let Some(first) = exposures.first() {
            report.warning(
                CHECK,
                format!(
                    "members may call {} functions by which they can fill the disk, such as {first}",
                    exposures.len()
                ),
                "revoke them as a superuser: docs/fleet-postgres.md#on-the-machine-with-postgresql",
            );
        }
        if let Some(last) = last {
            let (ours, theirs) = (key.id(), last.key_id);
            let window = counts.window.as_secs();
            if ours != theirs {
                report.error(
                    CHECK,
                    format!(
                        "the fleet counts under the key {theirs:016x}, and this machine's is {ours:016x}"
                    ),
                    "put the fleet's federation-key-file there",
                );
            } else if window != last.window {
                report.error(
                    CHECK,
                    format!("the fleet's windows are of {} s, and here of {window} s", last.window),
                    "use the same [ledger] window on all machines of the fleet",
                );
            } else {
                report.ok(
                    CHECK,
                    format!("step {} of epoch {}, of our key and windows", last.version, last.epoch),
                );
            }
        }
        if let Some(last) = last.filter(|_| *beyond) {
            report.error(
                "aggregators",
                format!(
                    "the last step in the log covers batches up to place {}, and the log ends at place {}: no honest aggregator made it",
                    last.covers, ends.batches.0
                ),
                "bulkmark fleet status --server says whether it is counted; docs/fleet.md#a-poisoned-chain says what to do",
            );
        } else if *waits {
            report.error(
                "aggregators",
                format!(
                    "batches wait up to place {}, and nobody counted them in {} s",
                    ends.batches.0,
                    COUNTED.as_secs()
                ),
                "on the aggregators: systemctl start bulkmark-server; bulkmark doctor --server",
            );
        } else if ends.batches.0 > 0 {
            report.ok("aggregators", "all that was reported is counted");
        } else {
            report.ok("aggregators", "nothing was reported yet");
        }
    }
}

/// What the daemon says of itself.
fn examine_daemon(status: &DaemonStatus, report: &mut Report) {
    const CHECK: &str = "fleet";
    let Some(fleet) = &status.fleet else {
        return report.error(
            CHECK,
            "the daemon that runs is not in a fleet",
            "it was started before [fleet] was configured: restart it",
        );
    };
    if let Some(error) = status.links.iter().find_map(|link| link.error.as_ref()) {
        report.warning(
            CHECK,
            format!("the daemon's last error was: {error}"),
            "if the log answers above, look again in a minute",
        );
    } else if fleet.in_step {
        report.ok(CHECK, in_step(fleet));
    } else {
        report.warning(
            CHECK,
            format!("the daemon is not in step with the log{}", lag(fleet)),
            "look again in a minute; its log says what it waits for",
        );
    }
    for advice in &fleet.advice {
        report.warning(CHECK, "the daemon goes on, and found", advice);
    }
}

fn in_step(fleet: &FleetStatus) -> String {
    let age = fleet.stepped_seconds_ago.map(|seconds| format!("; the last step came {} ago", ago(seconds)));
    format!("the daemon is in step with the log{}{}", lag(fleet), age.unwrap_or_default())
}

fn lag(fleet: &FleetStatus) -> String {
    match (fleet.steps_behind, fleet.batches_behind) {
        (Some(0) | None, Some(0) | None) => String::new(),
        (steps, batches) => {
            format!(": {} steps and {} batches behind", steps.unwrap_or(0), batches.unwrap_or(0))
        }
    }
}

/// What helps against this.
fn advice(error: &LogError) -> &'static str {
    error.advice().unwrap_or(match error {
        LogError::NotSetUp(_) => "run bulkmark fleet setup",
        LogError::Setup(_) => "correct [fleet], or the file that it names",
        _ => "is it running, is the address right, and does a firewall let us through?",
    })
}
