// SPDX-License-Identifier: GPL-3.0-or-later
//! The common parts of all daemons.

use super::supervisor::Supervisor;
use crate::activity::Activity;
use crate::alerts;
use crate::control::{Control, Daemon};
use crate::net::own_name;
use crate::page::{self, History, Page};
use crate::telemetry;
use anyhow::Context;
use arc_swap::ArcSwap;
use bulkmark_counts::{Role, Settings};
use bulkmark_ledger::{KeyChange, Ledger, OpenError, now};
use bulkmark_types::FederationKey;
use sd_notify::NotifyState;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// The time to wait for a ledger in use, and between two attempts.
const LEDGER_PATIENCE: Duration = Duration::from_secs(2);
const LEDGER_PAUSE: Duration = Duration::from_millis(50);

/// Runs a daemon with its log.
pub(super) fn run(
    log: &telemetry::Settings,
    daemon: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<ExitCode> {
    telemetry::init(log).context("cannot start logging")?;
    std::panic::set_hook(Box::new(|panic| log::error!("internal error, please report it: {panic}")));
    // reqwest uses the process's provider, of which there is only one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(daemon);
    // `main` prints it on standard error.
    if let Err(e) = &result
        && log.target != telemetry::Target::Stderr
    {
        log::error!("{e:#}");
    }
    log::logger().flush();
    result.map(|()| ExitCode::SUCCESS)
}

/// Opens a ledger; waits briefly for its present reader (`bulkmark check`, or a daemon that is ending). A ledger under another key is put aside,
/// and one under this key takes its place.
pub(super) async fn open_ledger(
    directory: &Path,
    role: Role,
    settings: &Settings,
    key: &FederationKey,
) -> Result<Ledger, OpenError> {
    let deadline = Instant::now() + LEDGER_PATIENCE;
    let mut changed = false;
    loop {
        match Ledger::open(directory, role, settings, key) {
            Err(OpenError::InUse { .. }) if Instant::now() < deadline => {
                tokio::time::sleep(LEDGER_PAUSE).await;
            }
            Err(e) if e.is_of_another_key() && !changed => {
                changed = true;
                let change = bulkmark_ledger::change_key(directory, key, now())?;
                log::warn!("{}", KeyChanged { directory, change: &change, key });
            }
            result => {
                if let Some(next) = key.next_id().filter(|_| result.is_ok()) {
                    log::info!(
                        "the federation key changes from {:016x} to {next:016x}: messages are reported under the new key, and their \
                         counts under the old one are added, until ledger.federation-key-file names the new key alone",
                        key.id()
                    );
                }
                return result;
            }
        }
    }
}

/// The message about a ledger that was put aside.
struct KeyChanged<'a> {
    directory: &'a Path,
    change: &'a KeyChange,
    key: &'a FederationKey,
}

impl fmt::Display for KeyChanged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { directory, change: KeyChange { kept, resumed }, key } = self;
        write!(
            f,
            "the ledger in {} was made under another federation key ({:016x}), and its counts are useless under this one ({:016x}). \
             It is kept as {}{}; ",
            directory.display(),
            kept.key_id.unwrap_or_default(),
            key.id(),
            kept.path.display(),
            Unsent(kept.unsent)
        )?;
        match resumed {
            None => f.write_str("a new one begins"),
            Some(path) => write!(f, "that of this key, which was kept as {}, goes on", path.display()),
        }
    }
}

/// Describes the reports that other servers lose with a ledger that is put aside, unless it comes back.
pub(super) struct Unsent(pub(super) u64);

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            reports => write!(f, ", with {reports} reports that no server took"),
        }
    }
}

/// Answers questions on the control socket.
pub(super) async fn answer(path: &Path, daemon: Arc<Daemon>, tasks: &mut Supervisor) -> anyhow::Result<()> {
    let control = Control::bind(path)
        .await
        .with_context(|| format!("cannot listen on the control socket {}", path.display()))?;
    let control = Arc::new(control);
    tasks.run("control", move || {
        let (control, daemon) = (Arc::clone(&control), Arc::clone(&daemon));
        async move { control.serve(daemon).await }
    });
    Ok(())
}

/// Starts the task that posts problems to the webhook, if there is one.
pub(super) fn alert(
    settings: &alerts::Settings,
    hostname: &str,
    daemon: &Arc<Daemon>,
    tasks: &mut Supervisor,
) {
    // The address was checked when the configuration was read.
    if let Ok(Some(url)) = settings.url() {
        let (daemon, name) = (Arc::clone(daemon), own_name(hostname));
        tasks.run("alerts", move || alerts::watch(Arc::clone(&daemon), url.clone(), name.clone()));
    }
}

/// Serves metrics and the status page. Mail does not depend on them, so if they fail, the daemon logs the error and continues. Returns the
/// history, which is written at the end.
pub(super) async fn show(
    tasks: &mut Supervisor,
    settings: &page::Settings,
    daemon: Arc<Daemon>,
    threshold: impl Fn() -> u32 + Send + Sync + 'static,
    config: Arc<ArcSwap<Value>>,
) -> Option<History> {
    let history = || History::open(Arc::clone(&daemon.activity), daemon.state_dir.clone());
    let bound = if settings.is_wanted() { Some(history()) } else { None };
    if let Some(history) = bound.clone() {
        tasks.run("history", move || history.clone().keep());
    }
    match Page::bind(settings, daemon, threshold, config).await {
        Ok(None) => (),
        Ok(Some(page)) => {
            log::info!("metrics and status are at {}", page.url());
            let page = Arc::new(page);
            tasks.run("page", move || {
                let page = Arc::clone(&page);
                async move { page.serve().await }
            });
        }
        Err(e) => log::error!("{e}; there are no metrics and no status page"),
    }
    bound
}

/// Writes the data of the page's charts, for the next start.
pub(super) fn end_history(history: Option<&History>) {
    if let Some(history) = history {
        history.save();
    }
}

/// Returns a future that completes when the daemon receives the signal to end.
pub(super) fn ended() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => (),
            _ = interrupt.recv() => (),
        }
        log::info!("stopping: no more connections are taken");
        notify(&[NotifyState::Stopping]);
    })
}

/// Notifies the service manager that the daemon is ready.
pub(super) fn serving() {
    notify(&[NotifyState::Ready]);
}

/// Reloads something, and notifies the service manager and the counters. `reload` returns whether it succeeded.
pub(super) fn reloading(activity: &Activity, reload: impl FnOnce() -> bool) {
    match NotifyState::monotonic_usec_now() {
        Ok(time) => notify(&[NotifyState::Reloading, time]),
        Err(e) => log::warn!("cannot notify the service manager: {e}"),
    }
    activity.reloaded(reload(), now());
    notify(&[NotifyState::Ready]);
}

/// Notifies the service manager, if there is one that listens.
pub(super) fn notify(state: &[NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(state) {
        log::warn!("cannot notify the service manager: {e}");
    }
}
