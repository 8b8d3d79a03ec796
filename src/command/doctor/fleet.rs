// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's log: whether it answers, admits this machine, is set up, has the same time, key and windows, and whether an aggregator counts the
//! reports.

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

/// Time limit for all requests to the log.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time that batches may wait before it is assumed that nobody counts them: a failed aggregator is replaced within 3 s.
const COUNTED: Duration = Duration::from_secs(6);
const AGAIN: Duration = Duration::from_millis(250);

/// Examines the files that the settings name.
pub(super) fn examine_files(settings: &Settings, user: &User, report: &mut Report) {
    let secret = [&settings.secret_file, &settings.cert_file].map(|file| (file, true));
    for (file, is_secret) in secret.into_iter().chain([(&settings.ca_file, false)]) {
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
            found.examine(counts, key, report);
        }
    }
    match link.clock() {
        Some(Ok(())) => report.ok("clock", "no more than 5 minutes from that of the log"),
        Some(Err(message)) => {
            report.error(
                "clock",
                message,
                "timedatectl here, and on the servers of the log, shows which one is wrong",
            );
        }
        None => (),
    }
    if let Some(status) = status {
        examine_daemon(status, report);
    }
}

/// The log's answers.
struct Found {
    ends: Ends,
    /// The last step; none before the first one, or if it cannot be read.
    last: Option<StepHead>,
    /// Whether no aggregator counted the waiting batches in time.
    waits: bool,
    /// Whether the last step covers batches that the log does not have, and no valid step followed it.
    beyond: bool,
    /// Permissions of this member that could harm others.
    exposures: Vec<String>,
}

async fn ask<L: Log>(log: &L) -> Result<Found, LogError> {
    let began = Instant::now();
    let first = log.ends().await?;
    loop {
        let ends = log.ends().await?;
        let last = last_step(log, ends).await?.map(|(last, _)| last);
        let covers = last.filter(|last| last.made == ends.made).map_or(0, |last| last.covers);
        // Later batches may still take their time.
        let waits = covers < first.batches.0;
        // The step may cover batches that came after the ends were read.
        let beyond = covers > ends.batches.0 && covers > log.ends().await?.batches.0;
        if !(waits || beyond) || began.elapsed() >= COUNTED {
            // Another engine may lack this.
            let exposures = log.exposures().await.unwrap_or_default();
            return Ok(Found { ends, last, waits, beyond, exposures });
        }
        tokio::time::sleep(AGAIN).await;
    }
}

impl Found {
    fn examine(&self, counts: &bulkmark_counts::Settings, key: &FederationKey, report: &mut Report) {
        let Self { ends, last, waits, beyond, exposures } = self;
        if let Some(first) = exposures.first() {
            report.warning(
                CHECK,
                format!(
                    "members have {} rights by which they can fill the disk or delay the others, such as {first}",
                    exposures.len()
                ),
                "revoke them as a superuser, and set max_prepared_transactions to 0: \
                 docs/fleet-postgres.md#on-the-machine-with-postgresql",
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

/// Examines the daemon's status.
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
            "if the log answers above, check again in a minute",
        );
    } else if fleet.in_step {
        report.ok(CHECK, in_step(fleet));
    } else {
        report.warning(
            CHECK,
            format!("the daemon is not in step with the log{}", lag(fleet)),
            "check again in a minute; its log has the reason",
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

/// Returns the advice for an error.
fn advice(error: &LogError) -> &'static str {
    error.advice().unwrap_or(match error {
        LogError::NotSetUp(_) => "run bulkmark fleet setup",
        LogError::Setup(_) => "correct [fleet], or the file that it names",
        _ => "is it running, is the address right, and does a firewall let us through?",
    })
}
