// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark milter`

use super::EX_CONFIG;
use crate::config::{self, Checked, DEFAULT_PATH, MilterFile};
use crate::ledger::{self, Ledger, OpenError, Role};
use crate::milter::control::Control;
use crate::milter::{Service, Socket, serve};
use crate::signature::FederationKey;
use crate::telemetry;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long a ledger that is in use is waited for, and how often it is tried.
const LEDGER_PATIENCE: Duration = Duration::from_secs(2);
const LEDGER_PAUSE: Duration = Duration::from_millis(50);

/// Run the milter daemon that Postfix or Sendmail asks about every message.
///
/// It stays in the foreground. SIGHUP reads the configuration again, SIGTERM ends it after the messages that are being
/// received. Exit code 78: the configuration cannot be used.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration file.
    #[arg(long, default_value = DEFAULT_PATH)]
    config: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let checked = match config::load(&args.config) {
        Ok(checked) => checked,
        Err(e) => {
            eprintln!("{e}");
            return Ok(ExitCode::from(EX_CONFIG));
        }
    };
    let target = checked.file.log.target;
    telemetry::init(&checked.file.log).context("cannot start logging")?;
    std::panic::set_hook(Box::new(|panic| log::error!("internal error, please report it: {panic}")));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(daemon(&args.config, checked));
    // Standard error gets it from main.
    if let Err(e) = &result
        && target != telemetry::Target::Stderr
    {
        log::error!("{e:#}");
    }
    log::logger().flush();
    result.map(|()| ExitCode::SUCCESS)
}

async fn daemon(path: &Path, checked: Checked) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let file = checked.file.clone();
    let new = !file.state_dir.join(ledger::FILE_NAME).exists();
    let ledger = open_ledger(&file, &checked.key).await?;
    if new {
        log::info!("began a new ledger in {}", file.state_dir.display());
    }
    let socket = Socket::bind(&file.listen, file.listen_mode).await?;
    let address = socket.address();
    let control = Control::bind(&file.control)
        .await
        .with_context(|| format!("cannot listen on the control socket {}", file.control.display()))?;
    let service = Service::new(checked.into_rules(), ledger.clone());
    let control = tokio::spawn(control.serve(Arc::clone(&service)));
    log::info!("bulkmark {} listens on {address}", env!("CARGO_PKG_VERSION"));
    notify(&[sd_notify::NotifyState::Ready]);
    let sessions = tokio::spawn(serve(
        socket,
        file.max_connections.get(),
        Arc::clone(&service),
        ended(terminate, interrupt),
    ));
    let reloads = async {
        let mut in_force = file;
        while hangup.recv().await.is_some() {
            reload(path, &service, &mut in_force);
        }
    };
    tokio::select! {
        ended = sessions => ended.context("the milter failed")?.context("the milter failed")?,
        () = reloads => (),
    }
    control.abort();
    ledger.close().await.context("the last reports could not be written")?;
    log::info!("bulkmark ended");
    Ok(())
}

/// Opens the ledger; waits a little for whoever is just reading it (`bulkmark check`, or a daemon that is ending).
async fn open_ledger(file: &MilterFile, key: &FederationKey) -> Result<Ledger, OpenError> {
    let deadline = Instant::now() + LEDGER_PATIENCE;
    loop {
        match Ledger::open(&file.state_dir, Role::Site, &file.ledger, key) {
            Err(OpenError::InUse { .. }) if Instant::now() < deadline => {
                tokio::time::sleep(LEDGER_PAUSE).await
            }
            result => return result,
        }
    }
}

async fn ended(mut terminate: Signal, mut interrupt: Signal) {
    tokio::select! {
        _ = terminate.recv() => (),
        _ = interrupt.recv() => (),
    }
    log::info!("ending: no more connections are taken");
    notify(&[sd_notify::NotifyState::Stopping]);
}

/// Puts a new configuration into force, or keeps the old one when it is wrong.
fn reload(path: &Path, service: &Service, in_force: &mut MilterFile) {
    match config::load(path) {
        Ok(checked) if checked.key.id() != service.rules.load().key.id() => {
            log::error!(
                "{}: the federation key was changed; the old configuration stays in force",
                path.display()
            );
        }
        Ok(mut checked) => {
            for key in keep_fixed(&mut checked.file, in_force) {
                log::warn!("{}: {key} was changed, which takes effect at the next start", path.display());
            }
            telemetry::set_level(checked.file.log.level);
            *in_force = checked.file.clone();
            service.rules.store(Arc::new(checked.into_rules()));
            log::info!("{}: read again", path.display());
        }
        Err(e) => {
            let first_line = e.to_string().lines().next().unwrap_or_default().to_owned();
            log::error!("{first_line}; the old configuration stays in force");
        }
    }
}

/// Sets back what cannot change while the daemon runs, and names it.
fn keep_fixed(new: &mut MilterFile, old: &MilterFile) -> Vec<&'static str> {
    let mut changed = Vec::new();
    macro_rules! keep {
        ($($name:literal: $($field:ident).+;)*) => {$(
            if new.$($field).+ != old.$($field).+ {
                new.$($field).+ = old.$($field).+.clone();
                changed.push($name);
            }
        )*};
    }
    keep! {
        "listen": listen;
        "listen-mode": listen_mode;
        "control": control;
        "state-dir": state_dir;
        "max-connections": max_connections;
        "[ledger]": ledger;
        "log.target": log.target;
        "log.facility": log.facility;
        "log.socket": log.socket;
    }
    changed
}

fn notify(state: &[sd_notify::NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(state) {
        log::warn!("cannot notify the service manager: {e}");
    }
}
