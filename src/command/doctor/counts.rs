// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon and its counts; or the ledger's file, if no daemon runs.

use super::files::{AS_ROOT, is_forbidden};
use super::report::Report;
use crate::command::show::{ago, called, next_capacity, some};
use crate::control::{self, DaemonStatus};
use crate::telemetry;
use bulkmark_counts::MAX_ORIGINS;
use bulkmark_ledger::{BulkStatus, FILE_NAME, Image, NextStart, OpenError, SliceStatus, now};
use bulkmark_sync::{Parameters, Upstream, log};
use bulkmark_types::FederationKey;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// A warning is given if a larger share of new messages shows the threshold.
const FALSE_BULK: f64 = 1e-6;

/// A window with so many filters was configured for too few signatures.
const MANY_SLICES: usize = 3;

/// The common parts of a milter and a server.
pub(super) struct Daemon<'a> {
    /// "milter", "interfaces" or "server".
    pub(super) name: &'static str,
    /// Its configuration, and whether that is the default path.
    pub(super) path: &'a Path,
    pub(super) packaged: bool,
    pub(super) control: &'a Path,
    pub(super) state_dir: &'a Path,
    pub(super) ledger: &'a bulkmark_counts::Settings,
    pub(super) threshold: u32,
    pub(super) log: &'a telemetry::Settings,
    /// The kind of the other servers, and the servers.
    pub(super) link: &'static str,
    pub(super) others: &'a [Upstream],
    /// The log of its fleet, if it is in one.
    pub(super) fleet: Option<&'a log::Settings>,
}

/// Asks the daemon, or reads the ledger if none runs.
pub(super) async fn examine(
    daemon: &Daemon<'_>,
    key: Option<&FederationKey>,
    report: &mut Report,
) -> Option<DaemonStatus> {
    let (name, called, shown) = (daemon.name, called(daemon.name), daemon.control.display());
    match control::status(daemon.control, daemon.threshold).await {
        Ok(status) => {
            examine_daemon(daemon, key, &status, report);
            match &status.ailment {
                Some(ailment) => {
                    let advice = "mail is not counted until then; the daemon tries again every five seconds";
                    report.error("ledger", ailment, advice);
                }
                None => report.ok(
                    "ledger",
                    "sound when the daemon opened it; bulkmark ledger verify checks it while no daemon runs",
                ),
            }
            examine_origins(status.ledger.origins, report);
            examine_slices(&status.ledger.slices, status.ledger.bulk.as_ref(), daemon.threshold, report);
            if let Some(line) = next_capacity(status.ledger.next_capacity, now()) {
                report.ok("capacity", line);
            }
            return Some(status);
        }
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            let advice = format!("systemctl start bulkmark-{name}; journalctl -u bulkmark-{name} says more");
            report.error("daemon", format!("no {called} answers at {shown}: {e}"), advice);
        }
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            report.error("daemon", format!("the control socket {shown} cannot be used: {e}"), AS_ROOT);
        }
        Err(e) => {
            let advice = format!("systemctl restart bulkmark-{name}");
            report.error("daemon", format!("the {called} at {shown} does not answer: {e}"), advice);
        }
    }
    examine_file(daemon, key, report);
    None
}

/// Warns long before new servers and partners can no longer be counted.
fn examine_origins(origins: usize, report: &mut Report) {
    if origins > MAX_ORIGINS / 4 * 3 {
        let text = format!("{origins} origins are known, and at {MAX_ORIGINS} no new one is counted");
        let advice = "each server, each partner and each restore of a server adds one; split the federation before that";
        report.warning("origins", text, advice);
    }
}

fn examine_daemon(
    daemon: &Daemon<'_>,
    key: Option<&FederationKey>,
    status: &DaemonStatus,
    report: &mut Report,
) {
    const CHECK: &str = "daemon";
    let (name, title) = (daemon.name, called(daemon.name));
    let restart = format!("systemctl restart bulkmark-{name}");
    let parameters = key.map(|key| Parameters::new(daemon.ledger, key));
    let differs = parameters.and_then(|parameters| parameters.check_all(&status.parameters).err());
    if status.role != name {
        let text =
            format!("a {} answers at {}, not a {title}", called(&status.role), daemon.control.display());
        report.error(CHECK, text, "give each daemon its own control socket");
    } else if status.version != env!("CARGO_PKG_VERSION") {
        let (theirs, ours) = (&status.version, env!("CARGO_PKG_VERSION"));
        report.warning(
            CHECK,
            format!("the running {title} is version {theirs}, this program is {ours}"),
            restart,
        );
    } else if let Some(differs) = differs {
        let text = format!("the running {title} has another configuration: {differs} (the daemon)");
        report.warning(CHECK, text, restart);
    } else {
        report.ok(CHECK, format!("the {title} answers, up for {}", ago(status.uptime_seconds)));
    }
}

fn examine_file(daemon: &Daemon<'_>, key: Option<&FederationKey>, report: &mut Report) {
    const CHECK: &str = "ledger";
    let path = daemon.state_dir.join(FILE_NAME);
    let shown = path.display();
    match path.try_exists() {
        Ok(true) => (),
        Ok(false) => return report.ok(CHECK, format!("there is none yet; the daemon will create {shown}")),
        Err(e) => return report.error(CHECK, format!("cannot use {shown}: {e}"), AS_ROOT),
    }
    if is_forbidden(&path) {
        return report.error(CHECK, format!("cannot read {shown}"), AS_ROOT);
    }
    match Image::open(&path, daemon.threshold) {
        Ok((image, status)) => {
            let next = key.map(|key| bulkmark_ledger::next_start(daemon.state_dir, image.role(), key));
            if let Some(Ok(NextStart::OtherKey { .. })) = next {
                let text = format!(
                    "{shown} was made under another federation key, {:016x}: at its start the daemon keeps it beside, and \
                     begins a new one",
                    image.key_id()
                );
                report.warning(CHECK, text, "if this is a mistake, put the old key back");
            } else {
                report.ok(CHECK, format!("{shown} is sound"));
            }
            examine_slices(&status.slices, status.bulk.as_ref(), daemon.threshold, report);
        }
        Err(e @ OpenError::Damaged { .. }) => {
            let advice = "stop the daemon, then restore a backup over it or move it away: that loses counts, but no mail";
            report.error(CHECK, e, advice);
        }
        Err(e @ OpenError::InUse { .. }) => {
            let advice =
                "ps -C bulkmark shows who has it; its control socket may not be the one in the configuration";
            report.error(CHECK, e, advice);
        }
        Err(e) => report.error(CHECK, e, "see docs/ledger.md, When something is wrong"),
    }
}

/// Examines the known bulk.
fn examine_bulk(bulk: &BulkStatus, report: &mut Report) {
    const CHECK: &str = "bulk";
    let BulkStatus { bound, signatures, left_out, .. } = bulk;
    let text = format!(
        "{} that were seen {bound} times or more are in the list of bulk",
        some(signatures, "signature")
    );
    if *left_out > 0 {
        let advice = "raise ledger.capacity: a window has room for half as many, and signatures beyond that are not known as bulk";
        report.warning(CHECK, format!("{text}; {left_out} found no room"), advice);
    } else {
        report.ok(CHECK, text);
    }
}

/// Examines the fill of the filters, and its effect on new messages.
fn examine_slices(slices: &[SliceStatus], bulk: Option<&BulkStatus>, threshold: u32, report: &mut Report) {
    const CHECK: &str = "counts";
    // User reports need little space.
    let slices: Vec<&SliceStatus> = slices.iter().filter(|slice| !slice.user_reports).collect();
    let chance: f64 = slices.iter().filter_map(|slice| slice.false_bulk).sum();
    let doubtful = chance > FALSE_BULK;
    let mut rows: BTreeMap<(u64, &str), usize> = BTreeMap::new();
    for slice in &slices {
        let counted = if slice.signatures.is_some() { "own" } else { "merged" };
        *rows.entry((slice.window, counted)).or_default() += 1;
    }
    let longest = rows.values().copied().max().unwrap_or_default();
    let windows = rows.keys().map(|(window, _)| window).collect::<BTreeSet<_>>().len();
    let newest: u64 = slices
        .iter()
        .filter(|slice| Some(slice.window) == slices.last().map(|last| last.window))
        .filter_map(|slice| slice.signatures)
        .sum();
    if let Some(bulk) = bulk {
        examine_bulk(bulk, report);
    }
    if rows.is_empty() {
        return report.ok(CHECK, "nothing has been counted yet");
    }
    // An empty sum is negative zero.
    let chance = if chance > 0.0 { format!("{chance:.0e}") } else { "0".to_owned() };
    let text = format!(
        "{}, {} counted here in the newest; a new one shows {threshold} with probability {chance}",
        some(windows, "window"),
        some(newest, "signature")
    );
    if doubtful || longest >= MANY_SLICES {
        let advice = "raise ledger.capacity above the signatures of a day (see docs/sizing.md), in a federation that of the servers";
        report.warning(CHECK, format!("{text}; {longest} filters for one window"), advice);
    } else {
        report.ok(CHECK, text);
    }
}
