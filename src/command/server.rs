// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark server`

use super::daemon::{self, alert, answer, end_history, ended, open_ledger, reloading, serving, show};
use super::fleet_tasks::{self, Duty, Joined};
use super::supervisor::Supervisor;
use super::watch::watch;
use crate::activity::{Activity, Record};
use crate::config::{self, PLAIN_HTTP, SERVER_EXAMPLE, SERVER_PATH, ServerFile};
use crate::net::{Activation, Crowd, Endpoint, HttpListener, TlsKeys};
use crate::orders::{Orders, follow_peer_orders};
use crate::server::{self, Clients, METRICS_THRESHOLD, Service};
use crate::telemetry;
use anyhow::Context;
use arc_swap::ArcSwap;
use bulkmark_ledger::{Ledger, now};
use bulkmark_sync::fleet::Fleet;
use bulkmark_sync::{FollowMode, Links, Parameters, Remote, follow, follow_peer_bulk};
use bulkmark_types::FederationKey;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The time between two checks for removed clients, beside the check at each request.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The time between two removals of unused data.
const TIDY: Duration = Duration::from_secs(60);

/// Run a signature server: it takes the reports of its clients and sends the federation's counts to all of them.
///
/// It stays in the foreground. SIGHUP reads certificate and key again, SIGTERM ends it. Exit code 78: the configuration cannot be
/// used.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = SERVER_PATH)]
    config: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let passed = Activation::take("bulkmark-server");
    let (file, key) = config::load_server(&args.config)?;
    daemon::run(&file.log.clone(), server(&args.config, file, key, passed))
}

async fn server(path: &Path, file: ServerFile, key: FederationKey, passed: Activation) -> anyhow::Result<()> {
    let hangup = signal(SignalKind::hangup())?;
    let ending = ended()?;
    let tls = file.tls.clone().map(TlsKeys::load).transpose()?.map(Arc::new);
    let ledger = open(&file, &key).await?;
    let parameters = Parameters::new(&file.ledger, &key);
    let bound = listen(path, &file, passed, tls.clone()).await?;
    let settings = file.settings(bound.address());
    let activity = Activity::new(telemetry::lines_dropped, Record::default());
    activity.certificate_expires(tls.as_deref().and_then(TlsKeys::expiry));
    let mut tasks = Supervisor::new(Arc::clone(&activity.tasks));
    let Others { links, peers, fleet } = others(&file, &parameters, &ledger, &activity, &mut tasks).await?;
    let (of_service, done) = (ledger.clone(), Arc::clone(&activity));
    let service = Service::new(of_service, parameters, &settings, links, peers.clone(), fleet, done)?;
    answer(&file.control, service.daemon(), &mut tasks).await?;
    alert(&file.alerts, "", &service.daemon(), &mut tasks);
    follow_all(peers, (&ledger, service.orders()), &file.ledger, &mut tasks);
    if file.fleet.is_none() {
        begin_tasks(&service, &ledger, &mut tasks);
    }
    let shown = Arc::new(ArcSwap::from_pointee(config::in_force(path, SERVER_EXAMPLE)));
    let history = show(&mut tasks, &file.page(), service.daemon(), || METRICS_THRESHOLD, shown).await;
    log::info!("bulkmark {} server listens on {}", env!("CARGO_PKG_VERSION"), bound.address());
    serving();
    watch(&ledger, &mut tasks);
    let requests = async {
        let (router, crowd) = (Arc::clone(&service).router(), Crowd::new(file.limits.connections()));
        let open = bound.serve(router, crowd, || activity.connections.begin(), ending).await;
        drop(bound);
        service.end();
        open.closed().await;
    };
    tokio::select! {
        () = requests => (),
        () = reloads((path, file.clone()), hangup, &service, tls, &activity) => (),
    }
    drop(tasks);
    end_history(history.as_ref());
    ledger.close().await.context("the last reports could not be written")?;
    log::info!("bulkmark server ended");
    Ok(())
}

/// Opens the ledger, or begins one.
async fn open(file: &ServerFile, key: &FederationKey) -> anyhow::Result<Ledger> {
    let new = !file.state_dir.join(bulkmark_ledger::FILE_NAME).exists();
    let settings = if file.fleet.is_some() { file.ledger.clone() } else { peer_settings(file) };
    let ledger = open_ledger(&file.state_dir, file.role(), &settings, key).await?;
    if new {
        log::info!("created a new ledger in {}", file.state_dir.display());
    }
    Ok(ledger)
}

/// Begins the tasks of a server without a fleet for its clients and peers.
fn begin_tasks(service: &Arc<Service>, ledger: &Ledger, tasks: &mut Supervisor) {
    let (clients, waiting) = (Arc::clone(service), ledger.clone());
    tasks.run("clients", move || withdrawals(Arc::clone(&clients)));
    tasks.run("wait", move || wait_for_peers(waiting.clone()));
}

/// The servers or log whose counts are merged.
struct Others {
    links: Arc<Links>,
    peers: Vec<Arc<Remote>>,
    fleet: Option<Arc<Fleet>>,
}

/// Prepares the peers, which are not followed yet; or joins the log of a fleet, and follows it.
async fn others(
    file: &ServerFile,
    parameters: &Parameters,
    ledger: &Ledger,
    activity: &Arc<Activity>,
    tasks: &mut Supervisor,
) -> anyhow::Result<Others> {
    if let Some(log) = &file.fleet {
        let Joined { links, fleet } = fleet_tasks::join(
            log,
            &Duty::Aggregate(file.sync.interval),
            (ledger, &file.ledger),
            activity,
            tasks,
        )
        .await?;
        return Ok(Others { links, peers: Vec::new(), fleet: Some(fleet) });
    }
    let urls: Vec<&str> = file.peer.iter().map(|peer| &*peer.url).collect();
    let links = Arc::new(Links::new(&urls, true));
    let mut peers = Vec::new();
    for (i, peer) in file.peer.iter().enumerate() {
        let client = Remote::new(peer, Some(parameters.clone()), links.get(i).unwrap_or_default());
        peers.push(Arc::new(client.with_context(|| format!("peer {}", peer.url))?));
    }
    Ok(Others { links, peers, fleet: None })
}

/// Follows all peers: their counts, their notes of bulk, and the orders of their sites.
fn follow_all(
    peers: Vec<Arc<Remote>>,
    (ledger, orders): (&Ledger, Option<Arc<Orders>>),
    counts: &bulkmark_counts::Settings,
    tasks: &mut Supervisor,
) {
    for peer in peers {
        if let Some(orders) = orders.clone() {
            let from = Arc::clone(&peer);
            tasks.run("orders", move || follow_peer_orders(Arc::clone(&orders), Arc::clone(&from)));
        }
        let (of_ledger, from) = (ledger.clone(), Arc::clone(&peer));
        tasks.run("hear", move || follow_peer_bulk(of_ledger.clone(), Arc::clone(&from)));
        let (ledger, counts) = (ledger.clone(), counts.clone());
        tasks.run("follow", move || {
            let links = Arc::new(Links::new(&[], true));
            follow(
                ledger.clone(),
                counts.clone(),
                vec![Arc::clone(&peer)],
                links,
                FollowMode::All { snapshot_on_fork: false },
            )
        });
    }
}

/// The time that a server waits after its start for its peers' versions of its counts. A reachable peer answers at once.
const WAIT_FOR_PEERS: Duration = Duration::from_secs(10);

/// Returns the ledger's settings about peers: those that this server follows, or else those that follow it.
fn peer_settings(file: &ServerFile) -> bulkmark_counts::Settings {
    let mut settings = file.ledger.clone();
    let clients = Clients::load(&file.state_dir).unwrap_or_default();
    let peers = clients.list().iter().filter(|client| client.role == server::Role::Peer);
    let names: Vec<String> = peers.map(|client| client.name.clone()).collect();
    let federation = &mut settings.federation;
    federation.for_peers |= !names.is_empty();
    if federation.peers.is_empty() {
        federation.peers = names;
    }
    settings
}

/// Continues without peers that do not answer.
async fn wait_for_peers(ledger: Ledger) {
    loop {
        tokio::time::sleep(WAIT_FOR_PEERS).await;
        if !ledger.awaits_peers() {
            continue;
        }
        match ledger.stop_waiting(now()).await {
            Ok(None) => (),
            Ok(Some(peers)) => log::warn!(
                "no word from {} since the start, who may know that this ledger is an old copy: what comes from now on is \
                 counted under a new origin",
                peers.join(" and ")
            ),
            Err(e) => log::error!("{e}; reports are refused until all peers answered"),
        }
    }
}

/// Opens the socket for clients.
async fn listen(
    path: &Path,
    file: &ServerFile,
    mut passed: Activation,
    tls: Option<Arc<TlsKeys>>,
) -> anyhow::Result<HttpListener> {
    let plain = tls.is_none();
    let bound = match &file.listen {
        Endpoint::At(address) => {
            passed.ignore(path);
            HttpListener::bind(address, tls).await.with_context(|| format!("cannot listen on {address}"))?
        }
        Endpoint::Systemd => {
            let socket =
                passed.socket().with_context(|| format!("{}: listen = \"systemd\"", path.display()))?;
            HttpListener::new(socket, tls)
        }
    };
    if plain && !file.plain_http_anywhere && !bound.is_local() {
        anyhow::bail!("cannot listen on {}: {PLAIN_HTTP}", bound.address());
    }
    Ok(bound)
}

/// Withdraws the reports of clients that the administrator removed with their counts.
async fn withdrawals(service: Arc<Service>) {
    let mut checks = 0_u64;
    loop {
        if checks.is_multiple_of(TIDY.as_secs())
            && let Err(e) = service.keep_for_peers().await
        {
            log::warn!("updates are not kept for peers yet: {e}");
        }
        checks += 1;
        service.tidy_orders().await;
        if let Err(e) = service.withdraw().await {
            log::warn!("the reports of a removed client are not withdrawn yet: {e}");
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Reloads the parts that may change while the daemon runs. The whole configuration is read, too, so that an error is found now and not at the
/// next start.
async fn reloads(
    (path, started_with): (&Path, ServerFile),
    mut hangup: Signal,
    service: &Service,
    tls: Option<Arc<TlsKeys>>,
    activity: &Activity,
) {
    loop {
        if tokio::time::timeout(TIDY, hangup.recv()).await.is_err() {
            service.tidy();
            continue;
        }
        reloading(activity, || match tls.as_deref().map(TlsKeys::reload) {
            _ if !is_usable(path, &started_with) => false,
            None => true,
            Some(Ok(())) => {
                activity.certificate_expires(tls.as_deref().and_then(TlsKeys::expiry));
                log::info!("certificate and key were read again");
                true
            }
            Some(Err(e)) => {
                log::error!("{e}; the old certificate stays in force");
                false
            }
        });
    }
}

/// Whether the server could start with its present configuration. Changes take effect only then.
fn is_usable(path: &Path, started_with: &ServerFile) -> bool {
    match config::load_server(path) {
        Ok((file, _)) => {
            if file != *started_with {
                log::warn!("{}: it was changed, which takes effect at the next start", path.display());
            }
            true
        }
        Err(e) => {
            let first_line = e.to_string().lines().next().unwrap_or_default().to_owned();
            log::error!("{first_line}; the old configuration stays in force");
            false
        }
    }
}
